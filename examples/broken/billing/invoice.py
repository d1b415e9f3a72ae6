"""A bill: its lines, its shipping, its total."""

from billing.pricing import line_total

SHIPPING_CENTS = 490
FREE_SHIPPING_FROM = 5000


class Invoice:
    """Collects lines and adds them up."""

    def __init__(self):
        self.lines = []

    def add(self, name, unit_cents, quantity=1):
        """Add quantity units of an article."""
        self.lines.append((name, line_total(unit_cents, quantity)))

    def subtotal(self):
        """Return the sum of all lines, after discounts, without shipping."""
        return sum(cents for _, cents in self.lines)

    def shipping(self):
        """Return the shipping, which is free from FREE_SHIPPING_FROM on."""
        if not self.lines or self.subtotal() >= FREE_SHIPPING_FROM:
            return 0
        return SHIPPING_CENTS

    def total(self):
        """Return what the customer pays."""
        return self.subtotal() + self.shipping()
