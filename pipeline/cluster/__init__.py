"""Runs on a Dask cluster: the coordinator deals ranges out, replicas of the run on the workers do them."""
