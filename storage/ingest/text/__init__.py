"""Lists of edges as text, compressed or not, parsed in parallel."""
