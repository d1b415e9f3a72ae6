import unittest

from billing.invoice import Invoice


class Totals(unittest.TestCase):
    def test_an_empty_invoice_costs_nothing(self):
        self.assertEqual(Invoice().total(), 0)

    def test_shipping_is_free_from_fifty_on(self):
        invoice = Invoice()
        invoice.add("lamp", 4999)
        self.assertEqual(invoice.total(), 4999 + 490)
        invoice.add("hook", 1)
        self.assertEqual(invoice.total(), 5000)

    def test_lines_are_discounted_one_by_one(self):
        invoice = Invoice()
        invoice.add("pen", 200, 50)
        invoice.add("desk", 15000)
        self.assertEqual(invoice.subtotal(), 9000 + 15000)

    def test_a_discount_can_cost_the_free_shipping(self):
        invoice = Invoice()
        invoice.add("mug", 520, 10)
        self.assertEqual(invoice.total(), 4940 + 490)


if __name__ == "__main__":
    unittest.main()
