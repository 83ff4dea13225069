"""Counts of labelled queries: their candidates, the search for matches, sums of counts of their parts, and the plan."""
