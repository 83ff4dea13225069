"""The commented example configurations, one per workload."""
