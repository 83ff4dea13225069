"""The sinks for the rows of a listing: files of results, or a reader."""
