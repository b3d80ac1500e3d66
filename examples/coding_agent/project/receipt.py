"""A receipt as text."""

from prices import total


def receipt(items: dict[str, int], voucher: int = 0) -> str:
    """One line for each item, and what is to be paid."""
    lines = [f"{name}: {cents / 100:.2f}" for name, cents in items.items()]
    return "\n".join([*lines, f"to pay: {total(list(items.values()), voucher) / 100:.2f}"])
