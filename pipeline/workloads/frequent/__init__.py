"""Frequent patterns: section and plan in `workload` and `plan`; `levels` mines level by level.

`pattern_grower` grows and chooses patterns; `local_embeddings` or `partitioned_embeddings` holds their embeddings.
"""
