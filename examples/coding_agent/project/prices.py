"""Prices of a small shop, in cents."""


def total(prices: list[int], voucher: int = 0) -> int:
    """What is to be paid: the sum without the voucher, and never less than nothing."""
    return sum(prices) - voucher


def with_tax(cents: int, percent: int = 19) -> int:
    """A price with tax, rounded to whole cents."""
    return round(cents * (100 + percent) / 100)
