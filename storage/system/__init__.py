"""What the operating system, threads, terminals and notebooks need: it knows no graph."""
