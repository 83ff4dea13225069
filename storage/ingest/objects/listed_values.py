"""Vertices and labels that are Python's own integers or texts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.texts import HashedTexts, Texts, hash_texts
from longwall.storage.ingest.objects.arrays import edge_blocks, integers
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeNames
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource
from longwall.storage.system.arguments import type_name

Int64s = npt.NDArray[np.int64]


def edges_between(what: str, ends: Sequence[Any], labels: Int64s | None) -> Iterator[EdgeBlock]:
    """Yield edges; `ends` has both ends of the first, both of the second, ..., integers or texts.

    Raises
    ------
    InputError
        If they are something else, or some are texts and some are not; `what` says what they are.
    """
    if not (ends and isinstance(ends[0], str)):
        numbers = integers(what, ends)
        yield from edge_blocks("the edges", numbers[0::2], numbers[1::2], labels)
        return
    hashed = _hashed(what, ends)
    yield EdgeNames(hashed, "entry {}".format).block(None if labels is None else labels.astype(np.int32))


def label_numbers(what: str, values: Sequence[Any], names: LabelNames) -> Int64s:
    """Return labels as int64[k]; those that are texts get their numbers from `names`."""
    if values and isinstance(values[0], str):
        return names.numbers(_hashed(what, values))
    numbers = integers(what, values)
    bad = (numbers < 0) | (numbers >= 2**31)
    if bad.any():
        raise InputError(f"{what}: {numbers[np.argmax(bad)]}; use integers from 0 to 2^31 - 1")
    return numbers


def vertex_block(what: str, vertices: Sequence[Any], labels: Int64s, place: Callable[[int], str]) -> LabelBlock:
    """Return labelled vertices, which are integers or texts.

    Parameters
    ----------
    what
        What the vertices are, for messages.
    vertices, labels : int64[k]
        The vertices, and the number of the label of each.
    place
        See `LabelBlock`.

    Raises
    ------
    InputError
        If they are something else.
    """
    if vertices and isinstance(vertices[0], str):
        hashed = _hashed(what, vertices)
        return LabelBlock(hashed.ids, labels, place, hashed.show)
    ids = integers(what, vertices)
    return LabelBlock(ids.view(np.int64), labels, place, unsigned=ids.dtype == np.uint64)


class ListedLabels(LabelSource):
    """Labels of vertices in two lists.

    Parameters
    ----------
    what, vertices
        What the vertices are, for messages, and the vertices.
    kind, values
        What the labels are, for messages, and the labels.
    """

    source = "labels"

    def __init__(self, what: str, vertices: Sequence[Any], kind: str, values: Sequence[Any]) -> None:
        self.texts = LabelNames(kind)
        numbers = label_numbers(kind, values, self.texts)
        self._block = vertex_block(what, vertices, numbers, "entry {}".format)
        self._what, self._named = what, bool(vertices) and isinstance(vertices[0], str)

    def blocks(self) -> Iterator[LabelBlock]:
        """Return all labels as one block; InputError if the vertices of the graph are of another kind."""
        if self._named != self.named:
            here, there = ("texts", "integers") if self._named else ("integers", "texts")
            raise InputError(f"{self._what} are {here}, but the vertices of the graph are {there}; give both one type")
        yield self._block


def _hashed(what: str, values: Sequence[Any]) -> HashedTexts:
    import pyarrow as pa

    for kind in set(map(type, values)):
        if not issubclass(kind, str):
            other = next(one for one in values if type(one) is kind)
            raise InputError(f"{what}: some are texts, and {other!s:.40} is {type_name(other)}; give all one type")
    if "" in values:
        raise InputError(f"{what}: one is an empty text; name it")
    try:
        texts = pa.array(values, pa.large_string())
    except UnicodeEncodeError as error:
        shown = f"{error.object!a:.40}"
        raise InputError(f"{what}: {shown} has a half of a surrogate pair, which UTF-8 has not; change it") from None
    return hash_texts(Texts.of_arrow(texts))
