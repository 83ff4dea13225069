"""The commands that free disk space: ``rm`` and ``gc``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Annotated

import typer

from longwall.pipeline.cli_output import write_stderr, write_stdout
from longwall.pipeline.terminal import completion
from longwall.storage.errors import InputError
from longwall.storage.system import signals
from longwall.storage.system.paths import user_path

if TYPE_CHECKING:
    from longwall.pipeline.run_store.removal import RemovableRun
    from longwall.pipeline.run_store.run_place import RunPlace

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="The folders of the runs, or their URLs.",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]
_SECONDS_BETWEEN_LOOKS = 0.2
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def add_cleaning(app: typer.Typer, reporting: Callable[..., AbstractContextManager[None]]) -> None:
    """Add the commands to a command line; `reporting` turns errors into messages and exit codes."""

    @app.command(epilog="Example:  longwall rm runs/demo --yes")
    def rm(
        runs: Runs,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them without a question.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Remove runs: their results, reports and checkpoints.

        At a terminal the command asks first; elsewhere it needs --yes. If one of several folders is not that of a run,
        or its run is in progress, none is removed. A file that no run writes stays, and its folder with it.
        """
        with reporting(as_json=as_json):
            _remove(runs, yes=yes, as_json=as_json)

    @app.command(epilog="Example:  longwall gc runs")
    def gc(
        folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the runs.")] = Path("runs"),
        spill: Annotated[
            Path,
            typer.Option(
                metavar="PATH", help="A folder of memory.spill; those in the configs of the runs are looked at, too."
            ),
        ] = Path("spill"),
        unfinished: Annotated[
            bool,
            typer.Option(
                "--unfinished", help="Also remove runs that failed, were interrupted or killed, which could be resumed."
            ),
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove what is listed.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """List what nothing uses any more, with its bytes; with --yes remove it.

        That is: spill folders of killed runs, what is left of runs that were killed as they began or were removed,
        checkpoints of finished runs, and compiled kernels of other versions of Longwall. Nothing is removed that a
        process has in use, or that longwall resume needs.
        """
        with reporting(as_json=as_json):
            _collect(user_path(folder), user_path(spill), unfinished=unfinished, yes=yes, as_json=as_json)


def _remove(addresses: Sequence[str], *, yes: bool, as_json: bool) -> None:
    from longwall.pipeline.run_store.removal import removable_run
    from longwall.storage.memory.sizes import round_size

    different = {str(place.store.where): place for place in map(_place, addresses)}
    with ExitStack() as held:
        runs = [held.enter_context(closing(removable_run(place))) for place in different.values()]
        total = sum(run.bytes for run in runs)
        if not yes and not _agreed(runs, total):
            write_stderr("nothing was removed")
            return
        for run in runs:
            with signals.undisturbed():  # half a removal would have to be repeated
                run.remove()
            if not as_json:
                write_stdout(f"removed {run.where} ({round_size(run.bytes)}){_kept(run)}")
    if as_json:
        removed = [{"run": run.where, "bytes": run.bytes, "kept": list(run.kept)} for run in runs]
        write_stdout(json.dumps({"removed": removed, "bytes": total}))
    elif len(runs) > 1:
        write_stdout(f"freed {round_size(total)}")


def _place(address: str) -> RunPlace:
    """Return the place of a run; if a finished run is to take it, that is done first."""
    from longwall.pipeline.run_store.replacement import complete_exchange
    from longwall.pipeline.run_store.run_place import place_at

    place = place_at(address)
    with suppress(OSError):
        return complete_exchange(place)
    return place


def _agreed(runs: Sequence[RemovableRun], total: int) -> bool:
    """Ask the user at the terminal.

    Raises
    ------
    InputError
        If there is no terminal.
    """
    from longwall.storage.memory.sizes import round_size

    whole = f"{len(runs)} run{'s' if len(runs) > 1 else ''}, {round_size(total)}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(f"{whole}: there is no terminal to ask at: add --yes to remove them")
    for run in runs:
        write_stderr(f"{run.where}  {run.status}  {round_size(run.bytes)}")
    try:
        print(f"remove {whole}? [y/N] ", end="", file=sys.stderr, flush=True)
        while not select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
            pass  # a signal that comes right before a read would be handled only after it
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        write_stderr("\ninterrupted: nothing was removed")
        raise typer.Exit(signals.exit_code()) from None


def _kept(run: RemovableRun) -> str:
    shown, more = run.kept[:3], len(run.kept) - 3
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return f"; the folder stays, since no run wrote {names}" if names else ""


def _collect(folder: Path, spill: Path, *, unfinished: bool, yes: bool, as_json: bool) -> None:
    from longwall.pipeline.run_store.leftovers import leftovers
    from longwall.pipeline.terminal.tables import table_text
    from longwall.storage.memory.sizes import round_size

    found = list(leftovers(folder, spill, unfinished=unfinished))
    gone = []
    for one in found:
        with signals.undisturbed():
            gone.append(yes and one.remove())
    if as_json:
        facts = [one.to_json() | {"removed": removed} for one, removed in zip(found, gone, strict=True)]
        write_stdout(json.dumps({"found": facts, "bytes": sum(one.bytes for one in found)}))
        return
    if not found:
        write_stdout("nothing is left over")
        return
    rows = [(round_size(one.bytes), one.kind, one.path) for one in found]
    write_stdout(table_text(("bytes", "what", "path"), rows, frozenset({"bytes"})))
    freed = sum(one.bytes for one, removed in zip(found, gone, strict=True) if removed == yes)
    write_stdout(f"removed {round_size(freed)}" if yes else f"{round_size(freed)}: add --yes to remove it")
