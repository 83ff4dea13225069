"""The tables of homomorphism counts, made on an engine."""
