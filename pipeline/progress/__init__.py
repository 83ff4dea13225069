"""Progress as events, and their observers."""
