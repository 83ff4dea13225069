"""Graphs larger than the device: pages, access heat, and where they lie."""
