"""Tables of edges or labelled vertices: text and Parquet, with integers or names."""
