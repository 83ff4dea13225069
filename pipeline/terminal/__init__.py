"""What commands show at a terminal: tables of results and of runs."""
