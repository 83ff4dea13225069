"""Growth of frequent patterns on the CPU."""
