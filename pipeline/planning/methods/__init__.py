"""Methods that count the embeddings of a pattern, a file each; `longwall.pipeline.planning.planner` lists them."""
