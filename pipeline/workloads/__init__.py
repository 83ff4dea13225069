"""One module per workload: how its plan is made and what its results are."""
