"""Sums of homomorphism counts: terms of a pattern, and the table programs that count them."""
