"""Sort and merge keys on the CPU."""
