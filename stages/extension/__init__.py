"""The extension stage: guided by a plan, unguided, and by growing patterns."""
