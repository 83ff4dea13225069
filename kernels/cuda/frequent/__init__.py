"""Growth of frequent patterns on the GPU."""
