"""How two engines of a process share the tasks of a phase."""
