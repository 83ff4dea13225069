"""The user's options for a table of edges."""

from dataclasses import dataclass, fields
from typing import Literal


@dataclass(frozen=True)
class TableOptions:
    """Options of the user about a table of edges; other facts are found in the table."""

    columns: tuple[str | int, str | int] | None = None
    """The columns of both ends: their names, or their numbers from 1."""
    edge_label: str | int | None = None
    """The column with the labels of the edges."""
    ids: Literal["auto", "integers", "names"] = "auto"
    """Whether vertices are integers or have names."""
    header: bool | None = None
    """Whether the first line of a text names the columns."""
    vertex_label: str | None = None
    """The attribute of nodes, or the column of a table of vertices, with the labels of the vertices."""
    vertex_name: str | None = None
    """The attribute of nodes with the names of the vertices."""
    empty: Literal["refuse", "drop"] = "refuse"
    """Whether rows that lack one of their ends are refused or dropped."""

    @property
    def given(self) -> list[str]:
        """The names of the options that are given."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]
