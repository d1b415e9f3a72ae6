"""Bills for a small shop. All amounts are whole cents."""
