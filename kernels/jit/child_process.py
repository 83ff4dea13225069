"""Processes of this Python that import the same modules."""

import json
import os
import sys
from pathlib import Path

_BEGIN = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_words(code: str) -> list[str]:
    """Return the command of a process that runs some code, with this one's import path; arguments may follow.

    Raises
    ------
    OSError
        If this Python does not know its executable, as where another program embeds it.
    """
    if not sys.executable:
        raise OSError("this Python does not know its executable")
    path = [str(Path(place).absolute()) for place in sys.path if isinstance(place, (str, os.PathLike))]
    return [sys.executable, "-P", "-c", _BEGIN + code, json.dumps(path)]
