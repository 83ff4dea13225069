"""Pools of device memory that give everything back to the device in the end.

CuPy leaves with the device what a pool has cached when the pool itself is collected, until the process ends.
"""

import gc
import weakref
from contextlib import suppress
from typing import Any

_ended: list[tuple[Any, Any]] = []  # devices and pools without owner: arrays of them may still be in use


def open_pool(xp: Any, owner: object) -> Any:
    """Return a CuPy memory pool, which gives back all it has once its owner and all its arrays are gone."""
    _give_back()
    pool = xp.cuda.MemoryPool()
    weakref.finalize(owner, _end, xp.cuda.Device(), pool).atexit = False
    return pool


def _end(device: Any, pool: Any) -> None:
    _ended.append((device, pool))
    _give_back()


def _give_back() -> None:
    for ended in list(_ended):
        device, pool = ended
        in_use = False
        with suppress(Exception), device:  # of a lost device there is nothing to give back
            pool.free_all_blocks()
            in_use = pool.used_bytes() > 0
        if not in_use:
            with suppress(ValueError):  # another thread was first
                _ended.remove(ended)


def _after_collection(phase: str, _: dict[str, int]) -> None:
    if phase == "stop" and _ended:
        _give_back()


gc.callbacks.append(_after_collection)  # an array may be gone with a cycle that held it, after the pool's owner
