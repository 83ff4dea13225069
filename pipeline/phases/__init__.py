"""The phases of plans: counting and listing by search, and by kernels of their own."""
