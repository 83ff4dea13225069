"""Runs on a Dask cluster: the coordinator dispatches ranges of its phases, worker processes do them."""
