"""Frequent patterns: `mining` goes level by level, `growth` grows and chooses, `here` or `spread` has embeddings."""
