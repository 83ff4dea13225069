"""What a graph store says of itself, in the metadata of its Zarr group: checked before any array is looked at."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from longwall.kernels.interface.graph_arrays import MAX_VERTICES
from longwall.storage.errors import InputError
from longwall.storage.graph.graph_sink import LabelTexts
from longwall.storage.graph.stats import GraphStats
from longwall.storage.ingest.data_notes import Noted
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import given_or_default
from longwall.storage.stored_files import Damage, parse_object, plain_file, read_range
from longwall.storage.system.version import longwall_version

FORMAT = "longwall-graph"
VERSION = 4
DTYPES = {
    "indptr": np.int64,
    "name_starts": np.int64,
    "name_bytes": np.uint8,
    "original_ids": np.int64,
    "split": np.int64,
    "labels": np.int32,
    "transaction_ids": np.int64,
    "transactions": np.int32,
    "indices": np.uint32,
    "edge_labels": np.int32,
}
"""The arrays of a store, in the order in which they are read: each is checked against those before."""

_FILE = "zarr.json"
_MARK = re.compile(rb'"format"\s*:\s*"' + FORMAT.encode() + b'"')
_BEGINNING = 2**16  # bytes in which the mark stands; most headers are shorter
_PARSED = 64  # bytes of memory for a byte of a long header, which names many labels: text, objects, and what is found


@dataclass(frozen=True)
class StoreHeader:
    """The header of a store: facts about its graph.

    Attributes
    ----------
    vertices, edges
        Their numbers.
    stats
        `GraphStats.to_dict` of the graph, if it is true.
    content_hash
        Of the arrays, and the labels.
    label_names
        See `graph_sink.LabelTexts`.
    id_type
        Of the ids of the input, "int64" or "uint64".
    notes
        The data that was dropped, merged or guessed as the graph was read.
    """

    vertices: int
    edges: int
    stats: dict[str, Any]
    content_hash: str
    label_names: dict[str, tuple[str, ...] | None]
    id_type: str = "int64"
    notes: tuple[Noted, ...] = ()


def is_store(path: str | Path) -> bool:
    """Say whether a path looks like a graph store, readable by this version or not."""
    try:
        with plain_file(Path(path) / _FILE, _FILE, links=True) as file:
            return _MARK.search(os.pread(file, _BEGINNING, 0)) is not None
    except (OSError, ValueError, Damage):
        return False


def write_header(
    folder: Path,
    stats: GraphStats,
    content_hash: str,
    label_names: LabelTexts,
    id_type: np.dtype[Any],
    notes: Sequence[Noted] = (),
) -> None:
    """Write the metadata of a store's group."""
    attributes = {
        "format": FORMAT,
        "version": VERSION,
        "counts": {"vertices": stats.num_vertices, "edges": stats.num_edges},
        "stats": stats.to_dict(),
        "content_hash": content_hash,
        "created_by": f"longwall {longwall_version()}",
    }
    if texts := {name: names for name, names in label_names.items() if names}:
        attributes["label_names"] = texts
    if id_type != DTYPES["original_ids"]:
        attributes["id_type"] = id_type.name
    if notes:
        attributes["notes"] = [note.to_dict() for note in notes]
    attributes["checksum"] = _checksum(attributes)
    document = {"attributes": attributes, "zarr_format": 3, "node_type": "group"}
    (folder / _FILE).write_text(json.dumps(document, indent=2))


@contextmanager
def read_header(path: Path, host: MemoryBudget | None) -> Iterator[StoreHeader]:
    """Read the metadata of a store's group.

    Parameters
    ----------
    path
        The store.
    host
        Pays for what is read, as long as it is in use, where that is long; this machine's default budget if None.

    Raises
    ------
    InputError
        It is the store of another version.
    Damage
        It is no store that Longwall wrote.
    BudgetExceeded
        It is too long for `host`.
    """
    with ExitStack() as held:
        file = held.enter_context(plain_file(path / _FILE, _FILE))
        size = os.fstat(file).st_size
        if size > _BEGINNING:
            host = host or held.enter_context(given_or_default(None)).host
            held.enter_context(host.reserve(_PARSED * size, "the metadata of the graph store"))
        yield _parse(path, read_range(file, 0, size, _FILE))


def _parse(path: Path, text: bytes) -> StoreHeader:
    document = parse_object(text, _FILE)
    attributes = document.pop("attributes", None)
    if not isinstance(attributes, dict):
        raise Damage(f"{_FILE}: there are no attributes")
    _check_version(path, attributes.get("version"))
    if document.get("consolidated_metadata") is not None:
        raise Damage(f"{_FILE}: consolidated metadata are not read")
    document.pop("consolidated_metadata", None)
    if document != {"zarr_format": 3, "node_type": "group"}:
        raise Damage(f"{_FILE}: this is no group that Longwall writes")
    names = {"format", "version", "counts", "stats", "content_hash", "created_by", "checksum"}
    if set(attributes) - {"label_names", "id_type", "notes"} != names or attributes["checksum"] != _checksum(
        attributes
    ):
        raise Damage(f"{_FILE}: the attributes were changed")
    match attributes:
        case {
            "format": "longwall-graph",
            "counts": {"vertices": int(vertices), "edges": int(edges)},
            "stats": {"label_counts": dict(), "closed_wedge_fraction": _} as stats,
            "content_hash": str(content_hash),
        } if vertices == edges == 0 or (2 <= vertices <= MAX_VERTICES and 1 <= edges <= comb(vertices, 2)):
            texts, id_type = _label_names(attributes.get("label_names", {})), attributes.get("id_type", "int64")
            if id_type in ("int64", "uint64"):
                notes = _notes(attributes.get("notes", []))
                return StoreHeader(vertices, edges, stats, content_hash, texts, id_type, notes)
    raise Damage(f"{_FILE}: the attributes are none of a graph")


def _label_names(found: object) -> dict[str, tuple[str, ...] | None]:
    """Return the labels that are texts."""
    if not isinstance(found, dict) or not set(found) <= {"vertices", "edges"}:
        raise Damage(f"{_FILE}: these are no names of labels")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Damage(f"{_FILE}: these are no names of labels")
        if not 0 < len(set(names)) == len(names):
            raise Damage(f"{_FILE}: two labels have the same name")
    return {kind: tuple(names) for kind, names in found.items()}


def _notes(found: object) -> tuple[Noted, ...]:
    """Return the notes of data that was dropped, merged or guessed."""
    try:
        if isinstance(found, list):
            return tuple(map(Noted.of, found))
    except ValueError:
        pass
    raise Damage(f"{_FILE}: these are no notes of a graph's data")


def _check_version(path: Path, found: object) -> None:
    if not isinstance(found, int) or found <= 0:
        raise Damage(f"{_FILE}: there is no version")
    if found != VERSION:
        age, advice = ("newer", "upgrade Longwall") if found > VERSION else ("older", "ingest the graph again")
        versions = f"store version {found}, this one reads {VERSION}"
        raise InputError(
            f"{path}: made by {'a' if age == 'newer' else 'an'} {age} version of Longwall ({versions}); {advice}"
        )


def _checksum(attributes: dict[str, Any]) -> int:
    """Return the CRC-32C of a store's attributes, whatever their order."""
    from google_crc32c import value

    content = {name: item for name, item in attributes.items() if name != "checksum"}
    try:
        checksum: int = value(json.dumps(content, sort_keys=True).encode())
    except (ValueError, RecursionError) as error:
        raise Damage(f"{_FILE}: the attributes were changed") from error
    return checksum
