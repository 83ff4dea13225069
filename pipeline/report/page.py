"""Pages of HTML, made of templates; everything that comes from a run is escaped."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from longwall.pipeline.report import numbers
from longwall.pipeline.report.facts import facts_of
from longwall.pipeline.report.view import view_of
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

    from longwall.pipeline.report.facts import Facts
    from longwall.pipeline.report.record import RunRecord

MARK = '<meta name="generator" content="longwall report">'
"""In every page that is written: another file of its name is not replaced."""


def run_page(record: RunRecord) -> str:
    """Return the report of a run.

    Raises
    ------
    InputError
        If its manifest is damaged.
    """
    return _environment().get_template("run.html.jinja").render(view_of(_facts(record)))


def comparison_page(first: RunRecord, second: RunRecord) -> str:
    """Return the comparison of two runs.

    Raises
    ------
    InputError
        If the manifest of one is damaged.
    """
    from longwall.pipeline.report.comparison import comparison_of

    return _environment().get_template("comparison.html.jinja").render(comparison_of(_facts(first), _facts(second)))


def _facts(record: RunRecord) -> Facts:
    try:
        return facts_of(record)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{record.where}: a file of this run is damaged ({type(error).__name__}: {error}): restore its "
            "manifest.json and history.json"
        ) from None


@cache
def _environment() -> Environment:
    """Return what templates are compiled with, once in a process; their code is kept beside the compiled kernels.

    Compiling takes as long as importing Jinja and writing the page together.
    """
    from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

    from longwall.kernels.private_folder import cache_folder

    class Compiled(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):  # a full disk: it is compiled again
                super().dump_bytecode(bucket)

    folder = cache_folder(None, "pages")
    kept: BytecodeCache | None = None if folder.path is None else Compiled(f"/proc/self/fd/{folder.descriptor}")
    environment = Environment(
        loader=PackageLoader("longwall.pipeline.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=kept,
    )
    environment.filters |= {"seconds": numbers.seconds, "count": numbers.count, "size": numbers.size}
    environment.globals["mark"] = MARK
    return environment
