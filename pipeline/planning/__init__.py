"""Plans: matching orders, search programs, homomorphism counts, and predictions of their cost."""
