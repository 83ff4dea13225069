"""What the first run on a machine compiles while it reads the graph."""
