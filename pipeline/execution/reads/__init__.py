"""What phases read of a graph that the device does not hold, planned before it is read."""
