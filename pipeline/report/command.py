"""The body of ``longwall report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from longwall.pipeline.report.page import MARK, comparison_page, run_page
from longwall.pipeline.report.publish import write_report
from longwall.pipeline.report.record import read_record
from longwall.pipeline.run_store.manifest import why_no_run
from longwall.pipeline.run_store.run_names import REPORT
from longwall.pipeline.run_store.run_place import place_at
from longwall.storage.errors import InputError, not_written
from longwall.storage.system.paths import user_path

if TYPE_CHECKING:
    from longwall.pipeline.run_store.store import RunStore

_MARK_WITHIN = 2000  # bytes from the beginning of a page
COMPARISON = Path("comparison.html")


def report(run: str, other: str | None = None, output: Path | None = None) -> str:
    """Write the report of a run, or the comparison of two.

    Parameters
    ----------
    run, other
        Folders of runs, or their URLs.
    output
        The file to write; None: ``report.html`` in the run's folder, ``comparison.html`` in the working folder.

    Returns
    -------
    str
        Where the page is.

    Raises
    ------
    InputError
        If one is no run, a process is busy with it, or the file is there and is no such page.
    OSError, RunError
        If the page cannot be written.
    """
    if other is not None:
        page = comparison_page(read_record(_store(run)), read_record(_store(other)))
        return _write(output or COMPARISON, page)
    if output is not None:
        return _write(output, run_page(read_record(_store(run))))
    place = place_at(run)
    try:
        place.hold()
        write_report(place.store)
    except (FileNotFoundError, NotADirectoryError):
        raise why_no_run(run, FileNotFoundError()) from None
    finally:
        place.close()
    return f"{place.store.where}/{REPORT}"


def _store(run: str) -> RunStore:
    place = place_at(run)
    if not place.exists():
        raise why_no_run(run, FileNotFoundError())
    return place.store


def _write(path: Path, page: str) -> str:
    """Write a page to a file of the user's, which may be there only if it is such a page."""
    path = user_path(path)
    if path.exists():
        if not path.is_file():
            raise InputError(f"{path} is no file: give another --output")
        with path.open("rb") as file:
            if MARK.encode() not in file.read(_MARK_WITHIN):
                raise InputError(f"{path} exists, and is no report of Longwall: remove it, or give another --output")
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise not_written(f"{path} cannot be written", error, "give another --output") from None
    return str(path)
