"""One reader per graph file format."""
