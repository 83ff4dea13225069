"""Nodes and edges of files that have attributes, and the readers that stream them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from longwall.storage.errors import InputError
from longwall.storage.ingest.text.input_file import Progress
from longwall.storage.system.arguments import brief

Kind = Literal["node", "edge"]
CHARACTERS = 400
"""Per element: a block of elements with longer names on average is smaller."""
_MOST_LISTED = 10


@dataclass
class Element:
    """A node or an edge."""

    kind: str
    names: tuple[str, ...]
    """Both ends of an edge, or the id of a node; "" where it is missing."""
    value: str | None
    """That of the attribute that is wanted, without white space around it."""
    line: int = 0
    """Where it ends."""
    directed: bool = False
    """Whether the element is an edge with a direction."""

    @property
    def size(self) -> int:
        """The characters of its names and its value."""
        return sum(map(len, self.names)) + len(self.value or "")


class Elements(Protocol):
    """The nodes or the edges of a file."""

    nodes: int
    """The number of nodes seen so far."""
    texts: bool | None
    """Whether ids are texts; None: the format has no types."""
    directed: bool
    """Whether all edges have a direction, whatever their elements say; known at the end."""

    def error(self, what: str, line: int | None = None) -> InputError:
        """Make the error for a line, by default the present one."""
        ...

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes of such elements."""
        ...

    def read(self, progress: Progress | None, most: int | None = None) -> Iterator[list[Element]]:
        """Yield the elements, block by block; with `most`, those that end among the first bytes."""
        ...


@dataclass(frozen=True)
class Network:
    """A format of files with attributes."""

    open: Callable[[Path, Kind, str | None, int], Elements]
    """Opens a file: its path, the kind of elements, the attribute whose values are read, the most elements of a
    block."""
    usual_name: str
    """The attribute that usually names the vertices."""


def unknown_attribute(kind: str, wanted: str | None, listed: list[str]) -> str:
    """Return what a message says of an attribute that no element has; `listed` are those that they have."""
    more = ["..."] if len(listed) > _MOST_LISTED else []
    there = ", ".join([*map(brief, listed[:_MOST_LISTED]), *more]) or "none"
    return f"no {kind} has an attribute {brief(wanted)}; those that are declared: {there}"
