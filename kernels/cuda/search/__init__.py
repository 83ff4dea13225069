"""Search programs, embedding tables of prefixes, and extension on the GPU."""
