"""The commands beside runs: ``show``, ``runs``, ``configs`` and ``doctor``."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from longwall.pipeline.cli_output import ExitCode, write_stdout
from longwall.pipeline.progress.observers import silence
from longwall.pipeline.terminal import completion
from longwall.pipeline.terminal.options import RunFolder
from longwall.storage.errors import InputError
from longwall.storage.system.paths import user_path

Table = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        help="counts, embeddings, ...",
        show_default="counts",
        autocompletion=completion.tables_of_run,
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Rows to show.", show_default="20; with --csv all")]
ForSpreadsheets = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="With --csv: write ' before texts that begin with =, +, -, @, a tab or a carriage return: spreadsheets "
        "take them for formulas.",
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the runs.")]
_NUMBERS = frozenset({"seconds", "answer", "rows"})
_DEFAULT_LIMIT, _MOST_ROWS = 20, 10_000
_ROOM_FOR_ALL = 80  # columns; narrower terminals show no time of the beginning


def add_commands(app: typer.Typer, reporting: Callable[..., AbstractContextManager[None]]) -> None:
    """Add the commands to a command line; `reporting` turns errors into messages and exit codes."""

    @app.command(epilog="Example:  longwall show runs/demo counts --limit 5")
    def show(
        run: RunFolder,
        table: Table = None,
        limit: Limit = None,
        as_csv: Annotated[bool, typer.Option("--csv", help="Write the table as CSV.")] = False,
        for_spreadsheets: ForSpreadsheets = False,
        tables: Annotated[bool, typer.Option("--tables", help="List the tables of the run.")] = False,
    ) -> None:
        """Show a table of a run's results; its rows have no order, unless export.sort was true."""
        with reporting():
            if for_spreadsheets and not as_csv:
                raise InputError("--spreadsheet: only --csv has a use for it; add --csv")
            _show(run, table, limit, as_csv, for_spreadsheets, tables)

    @app.command(epilog="Example:  longwall runs runs")
    def runs(
        folder: Folder = Path("runs"),
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    ) -> None:
        """List the runs in a folder, the newest last; seconds are those of all attempts.

        With --json an object has more: the path, bytes, versions, and the times of a run.
        """
        with reporting(as_json=as_json):
            _runs(user_path(folder), as_json)

    @app.command(epilog="Example:  longwall configs demo")
    def configs(
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="NAME",
                help="The config to print.",
                show_default="lists them",
                autocompletion=completion.shipped_configs,
            ),
        ] = None,
        output: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write it to a file.", show_default=False)
        ] = None,
    ) -> None:
        """List the commented configs that come with Longwall, or print one, to begin with."""
        with reporting():
            from longwall.pipeline.terminal.shipped_configs import config_list, config_text, write_config

            if output is not None:
                write_config(name, user_path(output))
            else:
                write_stdout(config_list() if name is None else config_text(name))

    @app.command()
    def doctor(
        disk: Annotated[Path, typer.Option(metavar="FOLDER", help="Measure the disk of this folder.")] = Path(),
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
        warm: Annotated[
            bool, typer.Option("--warm", help="Compile all kernels first, so that no run has to; it takes minutes.")
        ] = False,
    ) -> None:
        """Say what works on this machine, and what to install."""
        with reporting(as_json=as_json):
            facts = _examined(user_path(disk), warm=warm)
        write_stdout(json.dumps(facts) if as_json else _lines(facts))
        if "CPU: no" in facts["runs work on"]:
            raise typer.Exit(ExitCode.RUN_FAILED)


def _examined(disk: Path, *, warm: bool) -> dict[str, str]:
    """Return the facts that `longwall doctor` prints, and compile all kernels if `warm`."""
    from longwall.pipeline.terminal.doctor import examine

    facts = examine(disk)
    if warm:
        from longwall.pipeline.terminal.warm import warm_kernels

        facts["kernels"] = warm_kernels(on_gpu=facts["GPU"].startswith("works"))
    return facts


def _lines(facts: dict[str, str]) -> str:
    """Return facts as text, of which nothing controls a terminal."""
    from longwall.storage.system.plain_text import harmless

    width = max(map(len, facts))
    return "\n".join(f"{name:{width}}  {harmless(fact)}" for name, fact in facts.items())


def _show(run: str, table: str | None, limit: int | None, as_csv: bool, for_spreadsheets: bool, tables: bool) -> None:
    from longwall.pipeline.patterns.pattern_names import with_name
    from longwall.pipeline.terminal.show import batches, rows_of, tables_of, write_csv
    from longwall.pipeline.terminal.tables import table_text
    from longwall.storage.system.plain_text import harmless

    store, there = tables_of(run)
    if tables:
        write_stdout("\n".join(map(harmless, there)))
        return
    wanted = table or "counts"
    if wanted not in there:
        choices = ", ".join(map(harmless, there)) or "none"
        raise InputError(f'{run} has no table "{wanted:.60}": choose one of {choices}')
    if as_csv:
        try:
            parts = batches(store, there[wanted], limit or 0)
            shown = sys.stdout.isatty()
            write_csv(parts, sys.stdout.buffer, for_spreadsheets=for_spreadsheets, shown=shown)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            silence(sys.stdout)
            raise typer.Exit(1) from None
        return
    most = _DEFAULT_LIMIT if limit is None else limit
    if not 0 < most <= _MOST_ROWS:
        raise InputError(f"--limit: a terminal shows 1 to {_MOST_ROWS:,} rows, not {most:,}; add --csv to have all")
    names, rows, right = rows_of(batches(store, there[wanted], most))
    if "pattern" in names:
        at = names.index("pattern")
        rows = [[*row[:at], with_name(row[at]), *row[at + 1 :]] for row in rows]
    there_is = [at for at in range(len(names)) if any(row[at] is not None for row in rows)]
    shown = [
        [f"{row[at]:,}" if names[at] in {"count", "support"} and row[at] is not None else row[at] for at in there_is]
        for row in rows
    ]
    write_stdout(table_text([names[at] for at in there_is], shown, right) if rows else "no rows")


def _runs(folder: Path, as_json: bool) -> None:
    from longwall.pipeline.patterns.pattern_names import known_name
    from longwall.pipeline.terminal.runs import runs_in
    from longwall.pipeline.terminal.tables import table_text

    found = runs_in(folder)
    if as_json:
        for one in found:
            write_stdout(json.dumps(one.to_json()))
        return
    rows: list[tuple[str | None, ...]] = [
        (
            one.name,
            one.status,
            one.workload,
            known_name(one.pattern) or one.pattern,
            None if (seconds := one.total_seconds or one.seconds) is None else f"{seconds:,.2f}",
            None if one.answer is None else f"{'at least ' if one.lower_bound else ''}{one.answer:,}",
            None if one.started is None else one.started[:16].replace("T", " "),
        )
        for one in found
    ]
    names: tuple[str, ...] = ("name", "status", "workload", "pattern", "seconds", "answer", "started (UTC)")
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < _ROOM_FOR_ALL:
        names, rows = names[:-1], [row[:-1] for row in rows]
    lines = [table_text(names, rows, _NUMBERS) if rows else f"no runs in {folder}"]
    for one in found:
        if one.replaces and one.status not in ("running", "damaged"):
            command = shlex.join(["longwall", "resume", str(folder / one.name)])
            lines.append(f"{one.name} is to replace {one.replaces} and is not done: {command} goes on with it")
    write_stdout("\n".join(lines))
