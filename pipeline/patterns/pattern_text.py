"""Patterns as text with names and labels: ``(a:Person)-(b:Person)-(c:City), (a)-(c)``.

A vertex stands in parentheses: a name, then a colon and a label. The name may be left out if the vertex is mentioned
once, and the label if any will do. Edges are written ``-``, or ``-[:5]-`` with a label. Labels are whole numbers,
words, or any text in double quotes, in which a double quote is written twice.
"""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

from longwall.pipeline.patterns.pattern import ANY_LABEL, MAX_LABEL, MAX_VERTICES, Pattern, make_pattern
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief

Label = int | str
_TOKEN = re.compile(r'(?P<space>\s+)|(?P<word>\w+)|"(?P<quoted>(?:[^"]|"")*)"|(?P<mark>[(),:\[\]-])')
_UNDIRECTED = "patterns have no directions: write - for each edge"
_NO_TOKEN = {'"': "the text in quotes does not end (write a quote inside it twice)"} | dict.fromkeys(
    "<>→←", _UNDIRECTED
)
_EXAMPLE = """'(a:1)-(b:"New York")-(c), (a)-(c)'"""


def is_pattern_text(text: str) -> bool:
    """Say whether a pattern is written with vertices in parentheses."""
    return text.lstrip().startswith("(")


def parse_pattern_text(text: str) -> Pattern:
    """Read a pattern from text; vertices are numbered in the order in which they are first mentioned.

    Raises
    ------
    InputError
        Naming the character where the text is wrong, or why the pattern cannot be searched for.
    """
    found = _Parser(text).parse()
    shown = f"pattern {brief(text)}"
    for number, name in enumerate(found.names):
        if not any(number in edge for edge in found.edges):
            raise InputError(f"{shown} is not connected: vertex {_called(number, name)} has no edge")
    pattern = make_pattern(found.edges, name=text)
    if all(label is None for label in found.labels):
        labels = None
    else:
        labels = tuple(label if isinstance(label, int) else ANY_LABEL for label in found.labels)
    words = tuple(label if isinstance(label, str) else None for label in found.labels)
    edge_labels = tuple(found.edges[edge] for edge in pattern.edges)
    return replace(
        pattern,
        labels=labels,
        names=_all_names(found.names),
        words=words if any(word is not None for word in words) else (),
        edge_labels=edge_labels if any(label is not None for label in edge_labels) else None,
    )


def _all_names(names: list[str]) -> tuple[str, ...]:
    """Return names in which each vertex without one has one that no other vertex has."""
    free = (f"v{number}" for number in range(2 * len(names)) if f"v{number}" not in names)
    return tuple(name or next(free) for name in names)


def pattern_text(pattern: Pattern) -> str:
    """Return the text of a pattern: each vertex with its label where it is first mentioned, an edge at a time."""
    seen: set[int] = set()

    def vertex(number: int) -> str:
        label = "" if number in seen else label_text(_label_of(pattern, number))
        seen.add(number)
        return f"({pattern.columns[number]}{label})"

    edge_labels = pattern.edge_labels or (None,) * len(pattern.edges)
    parts = []
    for (u, v), label in zip(pattern.edges, edge_labels, strict=True):
        dash = "-" if label is None else f"-[{label_text(label)}]-"
        parts.append(f"{vertex(u)}{dash}{vertex(v)}")
    return ", ".join(parts)


def _label_of(pattern: Pattern, vertex: int) -> Label | None:
    if pattern.words and pattern.words[vertex] is not None:
        return pattern.words[vertex]
    number = pattern.label(vertex)
    return None if number == ANY_LABEL else number


def label_text(label: Label | None) -> str:
    """Return what stands for a label, with its colon; nothing for None."""
    if label is None:
        return ""
    bare = isinstance(label, int) or (re.fullmatch(r"\w+", label) is not None and not label[0].isdigit())
    return f":{label}" if bare else ':"{}"'.format(str(label).replace('"', '""'))


class _Token(NamedTuple):
    kind: str
    """``word``, ``quoted``, ``end``, or the mark itself."""
    text: str
    at: int


@dataclass
class _Found:
    """What a text says so far, by the numbers of vertices."""

    names: list[str] = field(default_factory=list)
    labels: list[Label | None] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    edges: dict[tuple[int, int], Label | None] = field(default_factory=dict)


class _Parser:
    """Reads a text from left to right."""

    def __init__(self, text: str):
        self._text, self._found = text, _Found()
        self._tokens = self._split()
        self._next = 0

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._refuse(at, _NO_TOKEN.get(self._text[at], "this character stands in quotes only"))
            kind = match.lastgroup or ""
            if kind != "space":
                text = match[kind].replace('""', '"') if kind == "quoted" else match[kind]
                tokens.append(_Token(text if kind == "mark" else kind, text, at))
            at = match.end()
        return [*tokens, _Token("end", "", at)]

    def parse(self) -> _Found:
        while True:
            first = self._vertex()
            while self._peek().kind == "-":
                at, label = self._peek().at, self._edge()
                second = self._vertex()
                self._join(first, second, label, at)
                first = second
            if self._peek().kind == "end":
                return self._found
            self._take(",", "an edge (-), a comma, or the end")

    def _vertex(self) -> int:
        at = self._peek().at
        self._take("(", "a vertex such as (a) or (a:1)")
        name = self._take("word", "").text if self._peek().kind == "word" else ""
        label = self._label() if self._peek().kind == ":" else None
        self._take(")", "a label such as :1, or )" if name and label is None else ")")
        found = self._found
        if not name or name not in found.numbers:
            if len(found.names) == MAX_VERTICES:
                self._refuse(at, f"this is vertex {MAX_VERTICES + 1}, at most {MAX_VERTICES} are supported")
            found.names.append(name)
            found.labels.append(None)
        number = found.numbers.setdefault(name, len(found.names) - 1) if name else len(found.names) - 1
        if label is not None:
            if found.labels[number] not in (None, label):
                self._refuse(at, f"({name}) has another label before")
            found.labels[number] = label
        return number

    def _edge(self) -> Label | None:
        self._take("-", "")
        if self._peek().kind == "-":  # "--" is an edge, too
            self._take("-", "")
            return None
        if self._peek().kind != "[":
            return None
        self._take("[", "")
        label = self._label() if self._peek().kind == ":" else None
        self._take("]", "a label such as :1, or ]")
        self._take("-", "-")
        return label

    def _label(self) -> Label:
        self._take(":", "")
        token = self._peek()
        if token.kind == "word" and (colon := self._tokens[self._next + 1]).kind == ":":
            shown = re.split(r"[^\w:.-]", self._text[token.at :], maxsplit=1)[0]
            self._refuse(colon.at, f'a label with a colon stands in double quotes, such as :"{shown}"')
        if token.kind not in ("word", "quoted") or not token.text:
            self._refuse(token.at, "expected a label: a number, a word, or text in double quotes")
        self._next += 1
        if token.kind == "quoted" or not re.fullmatch(r"[0-9]+", token.text):
            if token.kind == "word" and token.text[0].isdigit():
                self._refuse(token.at, "a label that begins with a digit is a number, or in double quotes")
            return token.text
        if len(token.text) > len(str(MAX_LABEL)) or int(token.text) > MAX_LABEL:
            self._refuse(token.at, f"a label is at most {MAX_LABEL}")
        return int(token.text)

    def _join(self, first: int, second: int, label: Label | None, at: int) -> None:
        if first == second:
            self._refuse(at, f"({self._found.names[first]}) is joined to itself; patterns are simple graphs")
        edge = (min(first, second), max(first, second))
        known = self._found.edges.setdefault(edge, label)
        if label is not None and known not in (None, label):
            self._refuse(at, "this edge has another label before")
        self._found.edges[edge] = known if label is None else label

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            self._refuse(token.at, f"expected {expected}")
        self._next += 1
        return token

    def _refuse(self, at: int, what: str) -> NoReturn:
        where = f"character {at + 1}" if at < len(self._text) else "its end"
        raise InputError(f"pattern {brief(self._text)}, at {where}: {what}; write it as {_EXAMPLE}")


def _called(number: int, name: str) -> str:
    return f"({name})" if name else f"number {number + 1}"
