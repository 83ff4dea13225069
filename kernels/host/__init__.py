"""Kernels without a twin on a GPU: they run on the host, whichever engine counts."""
