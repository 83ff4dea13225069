"""The commented example configurations, one per workload, and the example graph that runs and functions can name."""
