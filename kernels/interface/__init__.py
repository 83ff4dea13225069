"""The interface of an engine: its calls, and the data that these take and return."""
