"""Search for query graphs in candidate lists, on the host: both engines share it."""
