"""Whether a CUDA device can be used here, and why not."""

from typing import Any

from longwall.kernels.engine import EngineUnavailable


def open_device() -> Any:
    """Give CuPy, once it has shown that it works.

    Returns
    -------
    module
        The imported `cupy`.

    Raises
    ------
    EngineUnavailable
        With the reason: CuPy is missing, there is no device, or the driver does not fit.
    """
    try:
        import cupy
    except ImportError:
        raise EngineUnavailable("CuPy is not installed: pip install 'longwall[cuda]'") from None
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            raise EngineUnavailable("no CUDA device is visible")
        cupy.zeros(1, cupy.uint8) + 1
    except EngineUnavailable:
        raise
    except Exception as reason:  # CuPy raises different types for a missing driver, library or device.
        text = str(reason).strip().splitlines()
        raise EngineUnavailable(f"CUDA does not work here: {text[0] if text else reason!r}") from None
    return cupy
