"""Counts on a smaller graph, if that is cheaper, a file each; `longwall.pipeline.planning.planner` lists them."""
