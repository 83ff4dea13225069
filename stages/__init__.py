"""Extension, filtering, counting, aggregation and export over embedding tables."""
