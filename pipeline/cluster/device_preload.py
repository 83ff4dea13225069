"""Loaded by workers that have a device of their own: it is opened while they connect."""

from typing import Any


def dask_setup(worker: Any) -> None:  # noqa: ARG001 - as Dask calls it
    """Begin to open the device of this process."""
    from longwall.kernels import prepare_engine

    prepare_engine("cuda")
