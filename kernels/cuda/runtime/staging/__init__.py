"""Lists that are read from host memory, brought to the device before they are read."""
