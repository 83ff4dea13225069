"""What `longwall explain` predicts of frequent patterns: `predict_levels`, from a `level_sample`, as text."""
