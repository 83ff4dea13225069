"""The graph store: a `Graph` as a Zarr v3 group, written whole or not at all, checked when opened."""

import errno
import json
import os
import shutil
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError, RunError
from longwall.storage.graph import Graph, content_hash
from longwall.storage.readers.source import input_errors
from longwall.storage.stats import GraphStats

FORMAT = "longwall-graph"
VERSION = 1

_CHUNK_BYTES = 2**20
_CHUNKS_PER_SHARD = 64
_DTYPES = {
    "indptr": np.int64,
    "indices": np.uint32,
    "split": np.int64,
    "original_ids": np.int64,
    "labels": np.int32,
    "edge_labels": np.int32,
}
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_OPTIONAL = ("labels", "edge_labels")


def is_store(path: str | Path) -> bool:
    """Say whether a path looks like a graph store, readable by this version or not."""
    try:
        metadata = json.loads((Path(path) / "zarr.json").read_bytes())
        return bool(metadata["attributes"]["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph store; it appears under `path` complete or not at all.

    Raises
    ------
    InputError
        The path exists, or its parent folder does not or cannot be written.
    RunError
        Writing failed, for example on a full disk.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.tmp-{uuid.uuid4().hex[:8]}")
    try:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path}: exists already; choose another path, or remove it first")
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
        partial.mkdir()
        _write(graph, partial)
        _sync(partial)
        partial.rename(path)
    except OSError as error:
        if error.errno in _NOT_ALLOWED:
            raise InputError(f"{path}: no permission to write to {path.parent}; choose another path") from error
        raise RunError(f"{path}: the store could not be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(graph: Graph, path: Path) -> None:
    import zarr
    from zarr.codecs import ZstdCodec

    group = zarr.create_group(path, zarr_format=3)
    for name, array in _arrays(graph):
        chunk = _CHUNK_BYTES // array.itemsize
        shard = chunk * min(_CHUNKS_PER_SHARD, -(-len(array) // chunk))
        stored = group.create_array(
            name,
            shape=array.shape,
            dtype=array.dtype,
            chunks=(min(chunk, len(array)),),
            shards=(shard,) if len(array) > chunk else None,
            compressors=ZstdCodec(level=1),
        )
        stored[:] = array
    # Last, so that a group without attributes is never taken for a store.
    group.update_attributes(
        {
            "format": FORMAT,
            "version": VERSION,
            "counts": {"vertices": graph.num_vertices, "edges": graph.num_edges},
            "stats": graph.stats.to_dict(),
            "content_hash": graph.content_hash,
            "created_by": f"longwall {version('longwall')}",
        }
    )


def _arrays(graph: Graph) -> list[tuple[str, npt.NDArray[Any]]]:
    return [(name, getattr(graph, name)) for name in _DTYPES if getattr(graph, name) is not None]


def _sync(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_store(path: str | Path) -> Graph:
    """Read a graph store into memory and check it against its own counts and hash.

    Raises
    ------
    InputError
        There is no graph store, it may not be read, or a newer version of Longwall made it.
    RunError
        The store is damaged.
    """
    path = Path(path)
    with input_errors(path):
        path.stat()
        if not is_store(path):
            raise InputError(f"{path}: this is not a graph store; make one with 'longwall ingest'")
        try:
            return _read(path)
        except PermissionError:
            raise
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
            raise _damaged(path) from error


def _read(path: Path) -> Graph:
    import zarr

    group = zarr.open_group(path, mode="r", zarr_format=3)
    attributes: dict[str, Any] = group.attrs.asdict()
    found = attributes["version"]
    if isinstance(found, int) and found > VERSION:
        raise InputError(
            f"{path}: made by a newer version of Longwall (store version {found}, this one reads {VERSION}); "
            "upgrade Longwall"
        )
    if found != VERSION:
        raise _damaged(path)
    arrays: dict[str, Any] = dict.fromkeys(_DTYPES)
    for name, stored in group.arrays():
        if name in _DTYPES:
            if stored.dtype != _DTYPES[name]:
                raise _damaged(path)
            arrays[name] = stored[:]
    counts = attributes["counts"]
    vertices, slots = counts["vertices"], 2 * counts["edges"]
    lengths = dict(zip(_DTYPES, (vertices + 1, slots, vertices, vertices, vertices, slots), strict=True))
    for name, length in lengths.items():
        if arrays[name] is None and name in _OPTIONAL:
            continue
        if len(arrays[name]) != length:
            raise _damaged(path)
    hashed = {name: array for name, array in arrays.items() if name != "split"}
    if content_hash(**hashed) != attributes["content_hash"] or not _split_is_right(**arrays):
        raise _damaged(path)
    return Graph(**arrays, stats=GraphStats.from_dict(attributes["stats"]), content_hash=attributes["content_hash"])


def _split_is_right(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.uint32], split: npt.NDArray[np.int64], **_: Any
) -> bool:
    """Check that each row's split stands between its last smaller and its first larger neighbour."""
    start, end = indptr[:-1], indptr[1:]
    if ((split < start) | (split > end)).any():
        return False
    vertices = np.arange(len(split))
    before = (split == start) | (indices[np.maximum(split - 1, 0)] < vertices)
    after = (split == end) | (indices[np.minimum(split, len(indices) - 1)] > vertices)
    return bool((before & after).all())


def _damaged(path: Path) -> RunError:
    return RunError(f"{path}: the graph store is damaged or incomplete; ingest the graph again")
