"""Frequent patterns: section and plan in `workload` and `plan`; `levels` mines level by level.

`pattern_grower` grows and chooses patterns. Their embeddings are in one table of this process (`local_embeddings`) or
in `partitions` of any process, aggregated in `support_phases` that `partitioned_embeddings` runs.
"""
