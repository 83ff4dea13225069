"""Random words, and what is drawn with them."""
