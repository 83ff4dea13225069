"""Damaged copies of a file, and what reading them says."""

import random
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import load_graph

_PIECES = (
    *(b"\n", b"\r", b"\t", b" ", b"\0", b"\xff", b"1", b"9" * 30, b"-", b",", b'"', b'""', b"\\", b"\\u", b"%", b"*"),
    *(b"<", b"</data>", b"<default>", b"&x;", b"]]>", b"{", b"[", b" id ", b"node", b"group", b"*Arcs\n", b"t # 1\n"),
)


def refusals(path: Path, copies: int, source: Path | None = None, **options: Any) -> list[str]:
    """Read damaged copies of a file in its place; return the messages of those that are refused.

    Parameters
    ----------
    path
        The file.
    copies
        Their number.
    source
        The path that a reader opens, if the file is a part of a graph.
    options
        Those of `load_graph`.
    """
    content, draw = path.read_bytes(), random.Random(3)
    messages = []
    for _ in range(copies):
        changed = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(changed))
            kind = draw.randrange(4)
            if kind == 0:
                changed[at] = draw.randrange(256)
            elif kind == 1:
                del changed[at : at + draw.randint(1, 60)]
            elif kind == 2:
                changed[at:at] = draw.choice(_PIECES)
            else:
                changed[at:at] = changed[max(0, at - draw.randint(1, 200)) : at]
        path.write_bytes(changed)
        try:
            load_graph(source or path, **options)
        except InputError as error:
            messages.append(str(error))
    return messages
