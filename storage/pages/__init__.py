"""Graphs larger than the device: placement, pages, the page cache and access heat."""
