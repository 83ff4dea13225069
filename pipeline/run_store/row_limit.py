"""Cut the results of workers to the rows that a run wants: no worker of a cluster knows the rows of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from longwall.pipeline.run_store.commit_log import PartialResult


class RowCut:
    """The rows that a phase may still take.

    Parameters
    ----------
    rows
        Their number; None: all.
    """

    def __init__(self, rows: int | None):
        self._rows = self._left = rows

    @property
    def share(self) -> float | None:
        """The share of the rows that is there; None where all are wanted."""
        return None if self._rows is None or self._left is None else 1 - self._left / max(self._rows, 1)

    @property
    def reached(self) -> bool:
        """Whether no further row is wanted."""
        return self._left == 0

    def cut(self, partial: PartialResult) -> PartialResult:
        """Return what shall be committed: the first files of what is wanted, of the last one perhaps not all rows.

        Parameters
        ----------
        partial
            Its value is the number of the rows in its files or, where there are none, of what was counted; or a list
            of numbers of what was counted, of which the first ones are kept.
        """
        if self._left is None:
            return partial
        if not partial.files:
            kept = [self._take(number) for number in partial.value] if isinstance(partial.value, list) else None
            return replace(partial, value=self._take(partial.value) if kept is None else kept)
        files: list[dict[str, Any]] = []
        rows = 0
        for file in partial.files:
            granted = self._take(file["rows"])
            if granted:
                files.append(file if granted == file["rows"] else file | {"rows": granted, "cut": True})
            rows += granted
        return replace(partial, value=rows, files=tuple(files))

    def _take(self, number: int) -> int:
        assert self._left is not None
        granted = min(number, self._left)
        self._left -= granted
        return granted


def shortened(partial: PartialResult, run: Path) -> PartialResult:
    """Shorten the file that has more rows than are wanted, if there is one; return the result with what it is then.

    Parameters
    ----------
    partial
        Its files are in their places.
    run
        The folder of the run.
    """
    if not any(file.get("cut") for file in partial.files):
        return partial
    from longwall.stages.export import shorten

    files = []
    for file in partial.files:
        if file.get("cut"):
            plain = {key: value for key, value in file.items() if key != "cut"}
            files.append(plain | shorten(run / file["name"], file["rows"]))
        else:
            files.append(file)
    return replace(partial, files=tuple(files))
