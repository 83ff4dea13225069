"""Wake a run's device before the command line is imported: the driver takes 0.2 s, and no GIL."""

import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from longwall.kernels.driver import may_have_device, wake_driver

_MOST_BYTES = 1 << 16  # of a config that is read this early


def wake_driver_early(words: Sequence[str]) -> None:
    """Begin to wake the driver if the words of a command plainly ask this process to compute on a device."""
    if words[:1] == ["run"] and may_have_device() and _asks_for_device(words[1:]):
        Thread(target=wake_driver, name="wake-driver", daemon=True).start()


def _asks_for_device(words: Sequence[str]) -> bool:
    """Return whether the first config is for a device of this process; loading it finds its faults."""
    if any("=" in word and key in word for word in words for key in ("engine", "scheduler")):
        return False  # an option may say otherwise
    with suppress(Exception):
        from tomllib import loads

        path = next(Path(word) for word in words if word.endswith(".toml"))
        known = path.stat()
        if stat.S_ISREG(known.st_mode) and known.st_size <= _MOST_BYTES:
            config = loads(path.read_text(encoding="utf-8"))
            engine = config.get("engine", {})
            return "scheduler" not in config and "devices" not in engine and engine.get("kind", "auto") != "cpu"
    return False
