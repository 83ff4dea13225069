"""Arrays, sparse matrices and lists of pairs as streams of edges; block by block, so that no copy is as large."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.id_words import ID_RANGE, id_words
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock
from longwall.storage.ingest.vertex_labels import LabelArrays
from longwall.storage.system.arguments import type_name

Array = Any  # a NumPy or a CuPy array
Int64s = npt.NDArray[np.int64]

_BLOCK = 1 << 17  # rows


def as_array(name: str, values: Any) -> Array:
    """Return an array or a list of numbers as an array of integers, which is not copied.

    Raises
    ------
    InputError
        If there is something else in it; `name` says what it is.
    """
    try:
        on_device = hasattr(values, "__cuda_array_interface__")
        array = values if isinstance(values, np.ndarray) or on_device else np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: its rows have different lengths; give two ids for each edge") from None
    if isinstance(array, np.ndarray):
        if type(array) is not np.ndarray and np.ma.is_masked(array):  # else numpy.ma would be imported, 9 ms
            raise InputError(f"{name}: some entries are masked; fill them, or leave out their rows")
        array = np.asarray(array)  # of a matrix of NumPy's, or of another such class
    if isinstance(values, list | tuple) and array.dtype.kind in "iu" and array.ndim == 2:
        kinds = set(map(type, chain.from_iterable(values)))
        if bool in kinds or np.bool_ in kinds:
            raise InputError(f"{name}: expected integers, not bools; convert them")  # NumPy takes True for 1
    if array.dtype.kind not in "iu" and array.size:
        if array.dtype.kind == "O" or not hasattr(values, "dtype"):
            objects = np.asarray(values, object)
            if all(isinstance(one, int | np.integer) for one in objects.flat):
                return integers(name, objects.flat).reshape(objects.shape)
        kind = f"{array.dtype.name} numbers" if array.dtype.kind in "fc" else _kind_of(array)
        raise InputError(f"{name}: expected integers, not {kind}; number the vertices first, or convert them")
    return array


def _kind_of(array: Array) -> str:
    if array.dtype.kind == "O":
        return f"objects such as {type_name(array.flat[0])}"
    names = {"U": "texts", "S": "texts", "T": "texts", "b": "bools"}
    return names.get(array.dtype.kind, str(array.dtype))


def edge_blocks(name: str, src: Array, dst: Array, labels: Array | None = None) -> Iterator[EdgeBlock]:
    """Yield the edges between two arrays, with their labels.

    Raises
    ------
    InputError
        At the first edge with an end or a label that cannot be.
    """
    for begin in range(0, len(src), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        one, other = (_on_host(values[part]) for values in (src, dst))
        given = None
        if labels is not None:
            wide = _checked(f"{name}: the labels", labels[part], begin, 2**31, "use integers from 0 to 2^31 - 1")
            given = wide.astype(np.int32)
        (src_words, dst_words), unsigned = id_words((one, other), partial(_below_zero, name, begin, (one, other)))
        yield EdgeBlock(src_words, dst_words, given, unsigned=unsigned)


def _below_zero(name: str, begin: int, columns: Sequence[npt.NDArray[Any]], at: int, row: int) -> InputError:
    """Make the error for an id below 0 among others from 2^63 on."""
    return InputError(f"{name}, entry {begin + row}: {columns[at][row]}, and other ids from 2^63 on; {ID_RANGE}")


def _checked(name: str, values: Array, begin: int, end: int, advice: str) -> Int64s:
    host = _on_host(values)
    bad = host < 0 if host.dtype.kind == "i" else np.zeros(len(host), bool)
    if host.dtype.kind != "i" or end < 2**63:
        bad |= host >= end
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}, entry {begin + row}: {host[row]}; {advice}")
    return np.array(host, np.int64)


def pair_arrays(source: Any) -> tuple[Array, Array]:
    """Return the ends of edges that are given as an array of pairs, or as a tuple of two arrays.

    Raises
    ------
    InputError
        If they have other shapes.
    """
    name = "the edges"
    if isinstance(source, tuple) and len(source) == 2 and all(hasattr(one, "dtype") for one in source):
        src, dst = (as_array(name, one) for one in source)
        if src.ndim != 1 or src.shape != dst.shape:
            raise InputError(f"{name}: two arrays of one length are needed, not of shapes {src.shape} and {dst.shape}")
        return src, dst
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(one, list) for one in source):
        raise InputError(f"{name}: two lists may be two edges or both ends of all; give a list of pairs, or two arrays")
    pairs = as_array(name, source)
    if not pairs.size:
        pairs = pairs.reshape(0, 2)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        turned = "; transpose it, array.T" if hasattr(source, "dtype") and pairs.ndim == 2 and len(pairs) == 2 else ""
        raise InputError(f"{name}: an array of shape (edges, 2) is needed, not {pairs.shape}{turned}")
    return pairs[:, 0], pairs[:, 1]


def matrix_blocks(matrix: Any, declared: Declared) -> Iterator[EdgeBlock]:
    """Yield the places of a sparse matrix's entries other than 0.

    Raises
    ------
    InputError
        If it is not square.
    """
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the matrix: a square one is needed, not one of shape {matrix.shape}")
    declared.vertices, declared.matrix = matrix.shape[0], True
    rows = matrix.tocsr()  # itself, if it has this form
    if not getattr(rows, "has_canonical_format", True):
        rows = rows.copy()  # the caller's stays as it is
        rows.sum_duplicates()  # entries at the same place are one entry, their sum
    indptr = _on_host(rows.indptr)
    for begin in range(0, rows.nnz, _BLOCK):
        part = slice(begin, min(begin + _BLOCK, rows.nnz))
        values = _on_host(rows.data[part])
        there = values != 0
        if values.dtype.kind in "fc" and (bad := np.isnan(values)).any():
            at = part.start + int(np.argmax(bad))
            row, column = int(np.searchsorted(indptr, at, side="right")) - 1, int(rows.indices[at])
            raise InputError(f"the matrix: the entry at ({row}, {column}) is NaN; remove it, or give it a value")
        ends = np.searchsorted(indptr, np.arange(part.start, part.stop), side="right") - 1
        yield EdgeBlock(ends[there], _on_host(rows.indices[part])[there].astype(np.int64))


def _on_host(array: Array) -> npt.NDArray[Any]:
    return np.asarray(array if isinstance(array, np.ndarray) else array.get())


def integers(name: str, values: Iterable[Any]) -> npt.NDArray[Any]:
    """Return Python's or NumPy's integers as int64[k], or as uint64[k] where there are some from 2^63 on.

    Raises
    ------
    InputError
        If one of them is something else, or they do not fit one of these types.
    """
    listed = list(values)
    for kind in set(map(type, listed)):
        if not issubclass(kind, int | np.integer) or kind is bool:
            other = next(one for one in listed if type(one) is kind)
            raise InputError(f"{name}: expected integers, not {type_name(other)} ({other!s:.40})")
    listed = list(map(int, listed))  # NumPy's would wrap round
    low, high = min(listed, default=0), max(listed, default=0)
    if low < 0 and high >= 2**63:
        raise InputError(f"{name}: {low} and {high} do not fit one type of 64 bits; {ID_RANGE}")
    try:
        return np.array(listed, np.uint64 if high >= 2**63 else np.int64)
    except OverflowError:
        raise InputError(f"{name}: {max(low, high, key=abs)}; {ID_RANGE}") from None


def label_arrays(labels: Any) -> LabelArrays:
    """Return labels that are given as a tuple of two arrays.

    Raises
    ------
    InputError
        If they are no integers.
    """
    vertices, values = (as_array("the labels", one) for one in labels)
    if vertices.ndim != 1 or vertices.shape != values.shape:
        shapes = f"{vertices.shape} and {values.shape}"
        raise InputError(
            f"the labels: two arrays of one length are needed, vertices and labels, not of shapes {shapes}"
        )
    numbers = _checked("the labels", values, 0, 2**63, "use integers from 0 to 2^31 - 1")
    return LabelArrays(_on_host(vertices), numbers)
