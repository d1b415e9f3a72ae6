import unittest

from billing.pricing import bulk_discount, line_total


class BulkDiscount(unittest.TestCase):
    def test_few_units_cost_the_full_price(self):
        self.assertEqual(bulk_discount(1), 0)
        self.assertEqual(bulk_discount(9), 0)

    def test_a_tier_counts_from_its_minimum_on(self):
        self.assertEqual([bulk_discount(n) for n in (10, 50, 100)], [5, 10, 15])

    def test_between_two_minimums_the_lower_tier_counts(self):
        self.assertEqual([bulk_discount(n) for n in (11, 49, 51, 99, 101)], [5, 5, 10, 10, 15])


class LineTotal(unittest.TestCase):
    def test_the_discount_is_rounded_down(self):
        self.assertEqual(line_total(333, 11), 3663 - 183)

    def test_a_line_without_units_is_refused(self):
        with self.assertRaises(ValueError):
            line_total(100, 0)
        self.assertEqual(line_total(100, 1), 100)


if __name__ == "__main__":
    unittest.main()
