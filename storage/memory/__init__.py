"""Memory budgets, reservations, and the spill folder."""
