"""Arrays of a graph store: sharded Zarr arrays that threads encode, decode and hash."""
