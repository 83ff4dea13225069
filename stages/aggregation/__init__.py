"""The aggregation stage: by pattern, by key, and the support of patterns."""
