"""Searches: the order in which the vertices of a pattern are matched, and the program that matches them."""
