"""Functions of one line, for those who want an answer and no run folder."""
