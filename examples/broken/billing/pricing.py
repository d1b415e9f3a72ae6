"""What one line of a bill costs."""

# (minimum quantity, percent off), the largest quantity first.
TIERS = ((100, 15), (50, 10), (10, 5))


def bulk_discount(quantity):
    """Return the percent off for a line of quantity units.

    A tier counts from its minimum quantity on.
    """
    for minimum, percent in TIERS:
        if quantity > minimum:
            return percent
    return 0


def line_total(unit_cents, quantity):
    """Return the price of quantity units after the bulk discount."""
    if quantity < 1:
        raise ValueError("a line needs at least one unit")
    full = unit_cents * quantity
    return full - full * bulk_discount(quantity) // 100
