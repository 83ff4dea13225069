"""GAMMA's five calls as a library."""
