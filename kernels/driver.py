"""Look for a device, and wake its driver, before CuPy and NumPy are imported: so this module imports little."""

import ctypes
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_DRIVER = Path("/dev/nvidiactl")


def may_have_device() -> bool:
    """Return whether this machine probably has a device, and CuPy to use it with."""
    return _DRIVER.exists() and find_spec("cupy") is not None


def wake_driver() -> None:
    """Let the driver make the context of the first device, for CuPy: without the GIL, while others import modules."""
    with suppress(OSError, AttributeError):  # CuPy names the missing library
        driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
