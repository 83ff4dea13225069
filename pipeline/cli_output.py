"""What the command line writes: results to standard output, and everything else to standard error."""

import json
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from longwall.pipeline.terminal.tables import table_text
from longwall.storage.system.plain_text import harmless, harmless_lines

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import PatternCount
    from longwall.pipeline.result import Result

_MOST_LINES = 30  # of patterns that are printed
_BY_SIZE = ("cliques", "maximal-cliques")  # workloads whose patterns are printed beside their sum


class ExitCode(IntEnum):
    """How the program ends; 0 is success, and an interrupted one says by which signal."""

    RUN_FAILED = 1
    BAD_INPUT = 2


def report_error(text: str) -> None:
    """Write an error message to standard error, each of its lines as an error."""
    for line in text.split("\n"):
        write_stderr(f"error: {line}")


def print_failure(
    name: str, message: str, exit_code: int, *, keys: Sequence[str] = (), run: str = "", config: str = ""
) -> None:
    """Write a failure as one JSON object to standard output, for programs; people read standard error."""
    failure: dict[str, object] = {"type": name, "message": message}
    failure |= {"key": keys[0], "keys": list(keys)} if keys else {}
    failure |= {"config": config} if config else {}
    failure |= {"run": run} if run else {}
    write_stdout(json.dumps({"error": failure | {"exit_code": exit_code}}))


def write_stderr(text: str) -> None:
    """Write lines to standard error, without control characters; ignore a stream that cannot be written."""
    from longwall.pipeline.progress.observers import silence

    try:
        print(harmless_lines(text), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def write_stdout(text: str, *, besides: str = "") -> None:
    """Write lines to standard output, without control characters; if that fails, end with an error and `besides`."""
    from longwall.pipeline.progress.observers import silence

    try:
        print(harmless_lines(text), flush=True)
    except OSError as error:
        silence(sys.stdout)
        if besides or not isinstance(error, BrokenPipeError):  # a reader that has seen enough needs no message
            report_error(f"standard output cannot be written ({error.strerror}){besides}")
        raise typer.Exit(ExitCode.RUN_FAILED) from None


def print_result(result: "Result", *, as_json: bool, quiet: bool) -> None:
    """Write what a run found: lines for a person, or one JSON object on standard output and these lines beside it."""
    if as_json and not quiet:
        write_stderr(_summary(result))
    text = json.dumps(result.to_json()) if as_json else _summary(result, table=sys.stdout.isatty())
    write_stdout(text, besides=f"; the run is done, its results are in {results_of(result)}")


def results_of(result: "Result") -> str:
    """Return where the results of a run are, relative to the working folder if they are below it."""
    path = result.path
    if isinstance(path, Path) and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return harmless(f"{path}/results")


def _summary(result: "Result", *, table: bool = False) -> str:
    """Return what a run found as lines for a person; `table`: several patterns as a table that fits the terminal."""
    lines = []
    if result.count is not None:
        lines.append(f"count    {'at least ' if result.truncated else ''}{result.count:,}")
    if result.count is None or (result.workload in _BY_SIZE and len(result.patterns) > 1):
        lines += (_pattern_table if table else _pattern_lines)(result.patterns)
    if result.truncated:
        lines.append("         workload.limit or export.limit ended the search: there may be more")
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.timings.items())
    every = "" if result.total_seconds is None else f"; {result.total_seconds:.2f} in all attempts"
    lines.append(f"seconds  {result.seconds:.2f} ({parts}){every}")
    lines.append(f"engine   {result.engine}")
    lines.append(f"results  {results_of(result)}")
    return "\n".join(lines)


def _pattern_lines(patterns: Sequence["PatternCount"]) -> list[str]:
    """Return a line per pattern: its count, its support where it has one, its edges and labels."""
    from longwall.pipeline.patterns.pattern_names import with_name

    lines = []
    for one in patterns[:_MOST_LINES]:
        count = "" if one.count is None else f"{'at least ' if one.lower_bound else ''}{one.count:,}"
        value = "" if one.value is None else f"  {json.dumps(one.value)}"
        support = "" if one.support is None else f"  support {one.support:,}"
        known = ["any" if label is None else harmless(label) for label in one.labels or ()]
        labels = f"  labels {','.join(known)}" if known else ""
        if one.name is not None:
            lines.append(f"{count:>15}  {harmless(one.name)}  {one.seconds or 0.0:.3f} s")
            continue
        edge_labels = "" if one.edge_labels is None else f"  edge labels {','.join(map(harmless, one.edge_labels))}"
        lines.append(f"{count:>15}  {with_name(one.pattern)}{labels}{edge_labels}{support}{value}")
    return lines + _left_out(patterns)


def _pattern_table(patterns: Sequence["PatternCount"]) -> list[str]:
    """Return patterns as lines of a table: numbers to the right, and no column without values."""
    from longwall.pipeline.patterns.pattern_names import with_name

    rows: list[dict[str, str | None]] = [
        {
            "count": None if one.count is None else f"{'at least ' if one.lower_bound else ''}{one.count:,}",
            "support": None if one.support is None else f"{one.support:,}",
            "query": one.name,
            "seconds": None if one.seconds is None else f"{one.seconds:.3f}",
            "pattern": with_name(one.pattern) if one.name is None else None,
            "labels": _joined(one.labels) if one.name is None else None,
            "edge labels": _joined(one.edge_labels),
            "value": None if one.value is None else json.dumps(one.value),
        }
        for one in patterns[:_MOST_LINES]
    ]
    names = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
    if not rows:
        return []
    text = table_text(
        names, [[row[name] for name in names] for row in rows], frozenset({"count", "support", "seconds"})
    )
    return text.splitlines() + _left_out(patterns)


def _joined(labels: Sequence[object] | None) -> str | None:
    return None if labels is None else ",".join("any" if label is None else str(label) for label in labels)


def _left_out(patterns: Sequence["PatternCount"]) -> list[str]:
    """Return a line that says how many patterns are not printed, if any are not."""
    more = len(patterns) - _MOST_LINES
    return [f"         and {more:,} more patterns: see the results"] if more > 0 else []


def readable(value: object) -> str:
    """Return a fact about a graph as a person reads it."""
    if isinstance(value, dict):
        return "none" if not value else ", ".join(f"{harmless(key)}: {readable(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(map(readable, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return harmless(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
