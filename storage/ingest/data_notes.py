"""Notes of data that is dropped, merged or guessed while a graph is read: counted, and reported once.

Readers of files and converters of objects add to the `DataNotes` of their `EdgeStream`. The graph, its store and the
manifest of a run keep the notes.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

CHOICE = "choice"
"""The kind of a note on the columns that are read, which has its own text."""
GUESS = "guess"
"""The kind of a note on a guess that may be wrong, which has its own text."""
_INSIDE = ("longwall", "contextlib")  # packages whose calls lie between a user and a warning
_MOST_CHARACTERS = 2000  # of the text of a note that a store keeps


class _Kind(NamedTuple):
    one: str
    many: str
    warns: bool = True
    """Whether Python warns of it; other notes are for runs and manifests."""


KINDS = {
    "directions": _Kind("the direction of {:,} edge is dropped", "the directions of {:,} edges are dropped"),
    "loops": _Kind("{:,} loop is dropped", "{:,} loops are dropped"),
    "repeated": _Kind("{:,} repeated edge is merged", "{:,} repeated edges are merged"),
    "isolated": _Kind("{:,} vertex without an edge is dropped", "{:,} vertices without an edge are dropped"),
    "unused-labels": _Kind(
        "{:,} label of a vertex without an edge is ignored", "{:,} labels of vertices without an edge are ignored"
    ),
    "zeros": _Kind("the leading zeros of {:,} id are dropped", "the leading zeros of {:,} ids are dropped"),
    "names": _Kind("{:,} vertex may have a name that is not read", "{:,} vertices may have names that are not read"),
    "rows": _Kind("{:,} row that lacks an end is dropped", "{:,} rows that lack an end are dropped"),
    "comments": _Kind("{:,} comment line is skipped", "{:,} comment lines are skipped", warns=False),
    CHOICE: _Kind("", "", warns=False),
    GUESS: _Kind("", ""),
}
"""The kinds of notes: the sentence for one case, and for several."""


@dataclass(frozen=True)
class Noted:
    """One thing that happened to the data of a graph."""

    kind: str
    """A key of `KINDS`."""
    count: int
    """How often it happened."""
    text: str
    """One sentence, with the number."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return {"kind": self.kind, "count": self.count, "text": self.text}

    @property
    def warns(self) -> bool:
        """Whether Python warns of it."""
        return KINDS[self.kind].warns

    @classmethod
    def of(cls, found: object) -> "Noted":
        """Return the note from the result of `to_dict`; ValueError for anything else."""
        match found:
            case {"kind": str(kind), "count": int(count), "text": str(text), **more} if not more:
                if kind in KINDS and count > 0 and text.isprintable() and 0 < len(text) <= _MOST_CHARACTERS:
                    return cls(kind, count, text)
        raise ValueError("no note of a graph's data")


class DataNote(UserWarning):
    """A warning that data of a graph was dropped, merged or guessed.

    Parameters
    ----------
    text
        The message.
    notes
        Its parts, each with its number.

    Attributes
    ----------
    numbers
        The kind of each part, such as ``"loops"``, and its number.

    Examples
    --------
    >>> import longwall, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = longwall.graph([(1, 2), (2, 1), (3, 3)])
    >>> print(caught[0].message)
    the graph: 1 loop is dropped; 1 repeated edge is merged
    >>> caught[0].message.numbers
    {'loops': 1, 'repeated': 1}
    """

    def __init__(self, text: str, notes: Iterable[Noted] = ()) -> None:
        super().__init__(text)
        self.numbers: dict[str, int] = {}
        for note in notes:
            self.numbers[note.kind] = self.numbers.get(note.kind, 0) + note.count


class DataNotes:
    """Collects notes while data are read; threads may add to it.

    Parameters
    ----------
    said
        Called with a choice as soon as it is made.
    """

    def __init__(self, said: Callable[[str], None] | None = None) -> None:
        self._said, self._lock = said, Lock()
        self._counts: dict[tuple[str, str], int] = {}
        self._choices: dict[str, str] = {}

    def add(self, kind: str, count: int, where: str = "") -> None:
        """Count something that happened `count` times.

        Parameters
        ----------
        kind
            A key of `KINDS`.
        count
            If it is 0, no note is made.
        where
            Further details, such as the place: they end the sentence, in parentheses.
        """
        assert kind in KINDS
        assert kind not in (CHOICE, GUESS)
        if count > 0:
            with self._lock:
                self._counts[kind, where] = self._counts.get((kind, where), 0) + int(count)

    def say(self, text: str) -> None:
        """Add a choice that was made for the user, the columns that are read, unless it was added before."""
        self._choose(text, CHOICE)

    def guess(self, text: str) -> None:
        """Add a guess that may be wrong, of which Python warns, unless it was added before."""
        self._choose(text, GUESS)

    def _choose(self, text: str, kind: str) -> None:
        with self._lock:
            known = text in self._choices
            self._choices.setdefault(text, kind)
        if self._said is not None and not known:
            self._said(text)

    def take_counts(self, other: "DataNotes") -> None:
        """Add the counts of another collection, without its choices."""
        for (kind, where), count in other._counts.items():
            self.add(kind, count, where)

    def all(self) -> tuple[Noted, ...]:
        """Return all notes: choices first, then counts in the order of `KINDS`."""
        order = list(KINDS)
        counted = sorted(self._counts.items(), key=lambda item: order.index(item[0][0]))
        choices = (Noted(kind, 1, _shown(text)) for text, kind in self._choices.items())
        return (*choices, *(_noted(kind, where, count) for (kind, where), count in counted))


class Unsaid(DataNotes):
    """Keeps no notes: loops and repeated edges that a generator draws are a part of its method."""

    def add(self, kind: str, count: int, where: str = "") -> None:
        """See `DataNotes`."""


def _noted(kind: str, where: str, count: int) -> Noted:
    sentence = (KINDS[kind].one if count == 1 else KINDS[kind].many).format(count)
    return Noted(kind, count, f"{sentence} ({_shown(where)})" if where else sentence)


def _shown(text: str) -> str:
    """Return a text of the user as one printable line, so that a store can keep it."""
    line = (
        text
        if text.isprintable()
        else "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    )
    return line[: _MOST_CHARACTERS // 2]


def counts_line(source: object, notes: Iterable[Noted]) -> str:
    """Return one line with all counts, or "" if there is none."""
    texts = [note.text for note in notes if note.kind not in (CHOICE, GUESS)]
    return f"{source}: {'; '.join(texts)}" if texts else ""


def warn_of(source: object, notes: Iterable[Noted]) -> None:
    """Warn the caller of Longwall, once, of each guess, and of all data of a graph that was dropped or merged."""
    guesses = [note for note in notes if note.kind == GUESS]
    counts = [note for note in notes if note.warns and note.kind != GUESS]
    for text, parts in (*((note.text, [note]) for note in guesses), (counts_line(source, counts), counts)):
        if text:
            warn_caller(DataNote(text, parts))


def warn_caller(warning: Warning) -> None:
    """Warn the caller of Longwall: the first one outside of it."""
    warnings.warn(warning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Return the number of calls between `warn_caller` and the first caller outside of Longwall."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    return level
