"""Where the rows of a listing go: files of results, or a reader."""
