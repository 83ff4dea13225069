"""The device: memory, compilation, launches, errors."""
