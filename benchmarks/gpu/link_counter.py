"""Count what a GPU receives over PCIe, by NVML."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_RECEIVED = 198  # NVML_FI_DEV_PCIE_COUNT_RX_BYTES
_UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT
_SECONDS = 0.02  # between two looks: a counter of 32 bits wraps around in 80 ms
_CHECKED = 1 << 30  # bytes


class _Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


class LinkCounter:
    """Counts the bytes that arrive on the device that CuPy (`xp`) works with.

    Attributes
    ----------
    works
        Whether there is a counter that counts a copy of known size right; virtual machines may have none.
    total
        Bytes of the last count.
    """

    def __init__(self, xp: Any):
        self.works, self.total = False, 0
        try:
            self._nvml, self._handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
            bus = xp.cuda.runtime.deviceGetPCIBusId(0).encode()
            if self._nvml.nvmlInit_v2() or self._nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self._handle)):
                return
            self._look()
        except (OSError, AttributeError):
            return
        self.works = True
        with self.counting():
            xp.asarray(np.ones(_CHECKED, np.uint8))
            xp.cuda.runtime.deviceSynchronize()
        xp.get_default_memory_pool().free_all_blocks()
        self.works = 0.9 < self.total / _CHECKED < 1.4

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count while the context is open, if the counter works."""
        if not self.works:
            yield
            return
        self.total, over = 0, threading.Event()
        before, _ = self._look()

        def follow(before: int) -> None:
            last = False
            while not last:
                last = over.wait(_SECONDS)
                now, wrap = self._look()
                self.total += (now - before) % wrap
                before = now

        thread = threading.Thread(target=follow, args=(before,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _look(self) -> tuple[int, int]:
        """The counter, and where it wraps around."""
        field = _Field(field=_RECEIVED)
        if self._nvml.nvmlDeviceGetFieldValues(self._handle, 1, ctypes.byref(field)) or field.status:
            raise OSError("NVML does not tell what the device received")
        wrap = 1 << (32 if field.type == _UNSIGNED_INT else 64)
        return field.value % wrap, wrap
