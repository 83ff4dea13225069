"""Pages of HTML from templates; texts of a run are escaped, and their invisible characters are written out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from longwall.pipeline.report import numbers
from longwall.pipeline.report.facts import facts_of
from longwall.pipeline.report.view import view_of
from longwall.storage.errors import InputError
from longwall.storage.system.plain_text import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

    from longwall.pipeline.report.record import RunRecord

MARK = '<meta name="generator" content="longwall report">'
"""In every page that is written: another file of its name is not replaced."""


def run_page(record: RunRecord) -> str:
    """Return the report of a run.

    Raises
    ------
    InputError
        If a file of it is damaged.
    """
    with _reading(record):
        return _environment().get_template("run.html.jinja").render(view_of(facts_of(_shown(record))))


def comparison_page(first: RunRecord, second: RunRecord) -> str:
    """Return the comparison of two runs.

    Raises
    ------
    InputError
        If a file of one is damaged.
    """
    from longwall.pipeline.report.comparison import comparison_of

    facts = []
    for record in (first, second):
        with _reading(record):
            facts.append(facts_of(_shown(record)))
    with _reading(first):
        return _environment().get_template("comparison.html.jinja").render(comparison_of(*facts))


def _shown(record: RunRecord) -> RunRecord:
    return record._replace(**{name: _visible(part) for name, part in record._asdict().items() if name != "heat"})


def _visible(value: Any) -> Any:
    """Write out the characters of texts, also in dicts and lists, that reorder or hide others."""
    if isinstance(value, str):
        return "\n".join(map(visible, value.split("\n")))
    if isinstance(value, dict):
        return {_visible(key): _visible(one) for key, one in value.items()}
    return [_visible(one) for one in value] if isinstance(value, list | tuple) else value


@contextmanager
def _reading(record: RunRecord) -> Iterator[None]:
    """Turn what goes wrong with files that no run wrote so into a message."""
    from jinja2 import TemplateError

    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TemplateError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{record.where}: manifest.json or history.json is damaged ({what}): restore it") from error


@cache
def _environment() -> Environment:
    """Return what templates are compiled with, once in a process; their code is kept beside the compiled kernels.

    Compiling takes as long as importing Jinja and writing the page together.
    """
    from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

    from longwall.kernels.jit.private_folder import cache_folder

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
