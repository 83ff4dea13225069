"""Aligned tables that fit the terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Literal

from longwall.storage.system.plain_text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIPE_WIDTH = 1 << 16  # what reads a pipe wants whole lines


def table_text(names: Sequence[str], rows: Sequence[Sequence[object]], right: frozenset[str] = frozenset()) -> str:
    """Return a table as text, as wide as the terminal: numbers whole, and longer texts cut.

    Parameters
    ----------
    names
        Of the columns.
    rows
        Their values; None is shown as nothing.
    right
        The columns that are aligned to the right, and never cut.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(no_color=True, width=max(width, 20), color_system=None, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    cells = [[Text("" if value is None else harmless(value)) for value in row] for row in rows]
    wholes = [max([cell_len(name), *(row[i].cell_len for row in cells)]) for i, name in enumerate(names)]
    for index, name in enumerate(names):
        capacity = max(width - sum(wholes) - 2 * len(names) + wholes[index], 8)
        whole = wholes[index]
        aligned = name in right
        ending: Literal["crop", "ellipsis"] = "crop" if (console.encoding or "").lower() == "ascii" else "ellipsis"
        table.add_column(
            Text(harmless(name)),
            justify="right" if aligned else "left",
            min_width=whole if aligned else min(whole, 4 if name == "pattern" else 12),
            max_width=min(whole, capacity) if name == "pattern" else None,
            no_wrap=True,
            overflow=ending,
        )
    for row in cells:
        table.add_row(*row)
    with console.capture() as captured:
        console.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    return "\n".join(line for line in lines if line)
