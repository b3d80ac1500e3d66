import unittest

from prices import total, with_tax


class Prices(unittest.TestCase):
    def test_a_voucher_is_taken_off(self) -> None:
        self.assertEqual(total([250, 100], voucher=50), 300)

    def test_nobody_is_paid_for_a_voucher(self) -> None:
        self.assertEqual(total([250], voucher=300), 0)

    def test_tax_is_rounded(self) -> None:
        self.assertEqual(with_tax(999), 1189)
