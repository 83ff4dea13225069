"""Predict what a run takes: seconds, bytes of every tier, and what holds it up; on this machine and on others."""
