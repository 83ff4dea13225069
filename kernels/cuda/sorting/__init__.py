"""Sort and merge keys on the GPU."""
