"""The other end of `measure.call`: calls ``module:function`` with JSON arguments, writes its answer as JSON."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def _answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    module, function = name.split(":")
    try:
        return {"status": "done", "value": getattr(import_module(module), function)(**arguments)}
    except ModuleNotFoundError as error:
        return {"status": "skipped", "reason": f"{error.name} is not installed"}
    except MemoryError:
        return {"status": "failed", "reason": "out of memory"}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    text = json.dumps(_answer(sys.argv[1], json.loads(sys.argv[2])))
    target = Path(sys.argv[3])
    partial = target.with_suffix(".partial")
    partial.write_text(text)
    partial.rename(target)
