"""Graph store, readers, generators, embedding tables and budgets."""
