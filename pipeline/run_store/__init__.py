"""What is on disk of a run: its folder or URL, the log of commits, and array files."""
