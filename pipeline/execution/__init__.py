"""How the tasks of a phase are done: workers, their memory, chunks, and what they measure."""
