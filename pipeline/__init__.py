"""What to run, in what order and where: config, plans, workloads, executor, run directory, command line."""
