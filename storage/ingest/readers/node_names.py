"""The attribute of the nodes of GraphML, GEXF and JSON files that names the vertices."""

import sys
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.vertex_names import SAMPLE, look_like_names, may_name, note_names
from longwall.storage.ingest.readers.elements import Network, unknown_attribute
from longwall.storage.memory.sizes import round_size
from longwall.storage.system.arguments import brief

_ENTRY_BYTES = 200  # of two dictionaries, for a node
_LOOKED_AT = 2**20  # bytes, for attributes that look like names


class NodeNames:
    """Maps the ids of the nodes to the names of the vertices, in memory; without an attribute the id is the name.

    Parameters
    ----------
    path, network
        The file and its format.
    attribute
        The attribute with the names; None: ids are names.
    most
        The most nodes that are read at once.
    memory
        Bytes that the names may take.
    """

    def __init__(self, path: Path, network: Network, attribute: str | None, most: int, memory: int) -> None:
        self._path, self._network, self._attribute = path, network, attribute
        self._most, self._memory = most, memory
        self._names: dict[str, str] = {}

    def read(self) -> None:
        """Read the names, if an attribute is given.

        Raises
        ------
        InputError
            If no node has it, two nodes have the same name, or memory is short.
        """
        if self._attribute is None:
            return
        reader = self._network.open(self._path, "node", self._attribute, self._most)
        nodes: dict[str, str] = {}
        taken = 0
        for found in reader.read(None):
            for node in found:
                key, name = node.names[0], node.value
                if not name:
                    continue
                if nodes.setdefault(name, key) != key:
                    raise reader.error(
                        f"two nodes have the {self._attribute} {brief(name)}; give each a name of its own, or leave "
                        "out graph.vertex_name: the ids of the nodes are their names then",
                        node.line,
                    )
                self._names[key] = name
                taken += _ENTRY_BYTES + sys.getsizeof(key) + sys.getsizeof(name)
            if taken > self._memory:
                raise InputError(
                    f"{self._path}: the names of the nodes take more than the {round_size(self._memory)} that reading "
                    "has; raise memory.host, or leave out graph.vertex_name"
                )
        if not nodes:
            raise InputError(f"{self._path}: {unknown_attribute('node', self._attribute, reader.attributes)}")

    def of(self, node: str) -> str:
        """Return the name of a node, "" if it has none."""
        return node if self._attribute is None else self._names.get(node, "")

    def of_ends(self, ends: tuple[str, ...], line: int) -> tuple[str, ...]:
        """Return the names of both ends of an edge; InputError if one has none."""
        if self._attribute is None:
            return ends
        names = tuple(map(self.of, ends))
        if "" in names:
            node = ends[names.index("")]
            raise InputError(
                f"{self._path}, line {line}: node {brief(node)} has an edge but no {self._attribute}, its name; "
                "give it one, or leave out graph.vertex_name"
            )
        return names

    def note_unread(self, notes: DataNotes, count: int, label: str | None) -> None:
        """Note an attribute of the first nodes that looks like their names, other than the one that labels them."""
        asked, known = [], [self._network.usual_name]
        while known:
            attribute = known.pop(0)
            asked.append(attribute)
            reader = self._network.open(self._path, "node", attribute, SAMPLE)
            nodes = next(reader.read(None, _LOOKED_AT), [])[:SAMPLE]
            if attribute != label and look_like_names(
                [node.names[0] for node in nodes], [node.value for node in nodes]
            ):
                note_names(notes, attribute, count)
                return
            known = [name for name in reader.attributes if may_name(name) and name not in asked]
