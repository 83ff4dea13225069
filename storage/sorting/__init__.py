"""Sorting any number of keys in bounded memory."""
