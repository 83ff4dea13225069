"""Damaged copies of a file, and what reading them says."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import load_graph


def refusals(path: Path, pieces: Sequence[bytes], copies: int = 1000, **options: Any) -> list[str]:
    """Read damaged copies of a file in its place; return the messages of those that are refused.

    `options` are those of `load_graph`.
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
                changed[at:at] = draw.choice(pieces)
            else:
                changed[at:at] = changed[max(0, at - draw.randint(1, 200)) : at]
        path.write_bytes(changed)
        try:
            load_graph(path, **options)
        except InputError as error:
            messages.append(str(error))
    return messages
