"""``python -m longwall`` runs the command line."""

from longwall.pipeline.cli import main

main()
