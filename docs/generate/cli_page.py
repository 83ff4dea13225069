"""The page of commands and options, made of the help texts of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from longwall.pipeline.cli import app

ABOUT = """# Command line

`longwall COMMAND --help` shows the same at a terminal. `longwall --install-completion` lets your shell complete
commands, configs, runs, tables, patterns, and the keys and values of `--set`. What the program ends with is on the page
about [exit codes](exit-codes.md).

With `--log-level debug` before its name, a command logs to standard error from that level up (`debug`, `info`,
`warning`, `error`); in Python the standard library's logger `longwall` does the same. On a terminal progress shows the
phase, the work, the time left, the rate, and how much of each budget is used. `NO_COLOR` and `TERM=dumb` are respected.
Elsewhere, as in the log of a batch job, progress is lines that begin with the time, and with `--progress json` one JSON
object a line: see [progress as JSON](exit-codes.md#progress).
"""
_CODE = re.compile(r"(?<![\w`-])(--?[a-z][\w-]*|<[\w.]+>(?:/[\w.<>]*[\w>])*|\.[a-z]\w+|[a-z]+\.[a-z]+=[^\s;,]+)(?!\w)")


def page() -> str:
    """Return the page in Markdown: a heading for each command."""
    root: Any = typer.main.get_command(app)
    lines = [ABOUT, "## `longwall`", "", *_described(root, "longwall [OPTIONS] COMMAND")]
    for name, command in root.commands.items():
        lines += [f"## `longwall {name}`", "", *_described(command, _usage(name, command))]
    return "\n".join(lines)


def _usage(name: str, command: Any) -> str:
    arguments = [_metavar(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join(["longwall", name, *arguments, "[OPTIONS]"])


def _described(command: Any, usage: str) -> Iterator[str]:
    """Yield the lines of a command: how it is called, what it does, arguments and options, an example."""
    yield from ("```text", usage, "```", "")
    for paragraph in (command.help or "").split("\n\n"):
        yield from (_code(" ".join(paragraph.split())), "")
    for title in ("argument", "option"):
        some = [one for one in command.params if one.param_type_name == title and not one.hidden]
        if some:
            rows = [_row(one) for one in some]
            shown = 3 if any(row[2] for row in rows) else 2
            head = [[title, "meaning", "default"], ["---"] * 3]
            yield from (f"| {' | '.join(row[:shown])} |" for row in head + rows)
            yield ""
    example = re.fullmatch(r"Example:  (longwall .*)", command.epilog or "")
    if example:
        yield from ("For example:", "", "```sh", example[1], "```", "")


def _row(one: Any) -> list[str]:
    """Return names, meaning and default."""
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    if one.param_type_name == "argument":
        names = f"`{_metavar(one)}`"
    elif one.metavar:
        names += f" `{one.metavar}`"
    return [names, _code(one.help or ""), _default(one)]


def _metavar(one: Any) -> str:
    text = one.metavar or one.name.upper()
    return text if one.required or text.startswith("[") else f"[{text}]"


def _default(one: Any) -> str:
    """Return what holds where an option is not given."""
    if isinstance(one.show_default, str):
        return _code(one.show_default)
    default = one.default() if callable(one.default) else one.default
    if one.required or default in (None, False, [], ()):
        return ""
    return f"`{default}`"


def _code(text: str) -> str:
    """Set options, keys and suffixes in a text as code."""
    return _CODE.sub(r"`\1`", text).replace("|", "\\|")
