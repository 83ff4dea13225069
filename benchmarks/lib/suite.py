"""What suites of benchmarks have in common: a section of Markdown, and failures. Standard library only."""

import argparse
import time
from abc import ABC, abstractmethod
from pathlib import Path

from benchmarks.lib.machine import describe_machine


class Suite(ABC):
    """One run of a benchmark.

    Parameters
    ----------
    settings
        With `work`, a folder for graphs and runs, and `out`, a file for the section or None.

    Attributes
    ----------
    failures
        What went wrong; anything makes the exit status 1.
    lines
        The section so far.
    """

    def __init__(self, settings: argparse.Namespace):
        self.settings = settings
        self.work = Path(settings.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.failures: list[str] = []
        self.lines: list[str] = []

    @abstractmethod
    def measure(self) -> None:
        """Check and measure; say what was found."""

    def run(self) -> int:
        """Measure, print, write; gives the exit status."""
        self.measure()
        self.say(*(f"- **FAILED**: {failure}" for failure in self.failures))
        if self.settings.out is not None:
            self.settings.out.write_text("\n".join(self.lines) + "\n")
        return 1 if self.failures else 0

    def head(self, title: str) -> None:
        """Begin the section: what was measured on what, and when."""
        machine = describe_machine()
        self.say(
            f"### {title}",
            "",
            f"- {machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']} at the start; "
            f"commit {machine['commit']}; {time.strftime('%Y-%m-%d')}",
        )

    def say(self, *lines: str) -> None:
        """Add lines to the section, and print them."""
        self.lines += lines
        for line in lines:
            print(line, flush=True)
