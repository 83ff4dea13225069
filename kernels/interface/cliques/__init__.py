"""What kernels for cliques take and return: the degeneracy order, and leaves of pivot trees."""
