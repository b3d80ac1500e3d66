import unittest

from receipt import receipt


class Receipt(unittest.TestCase):
    def test_it_ends_with_what_is_to_be_paid(self) -> None:
        self.assertEqual(receipt({"tea": 350, "cake": 420}, voucher=200), "tea: 3.50\ncake: 4.20\nto pay: 5.70")
