"""As `cuda.bindings.runtime` of CUDA 13: calls that only advise are noted in `cupy.emulated.calls`."""
# ruff: noqa: N801, N802, N803, N815

from enum import IntEnum
from typing import Any

from cupy import emulated


class cudaError_t(IntEnum):
    """What a call gives first."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorUnknown = 999


class cudaMemLocationType(IntEnum):
    """What kind of place a location is."""

    cudaMemLocationTypeInvalid = 0
    cudaMemLocationTypeDevice = 1
    cudaMemLocationTypeHost = 2
    cudaMemLocationTypeHostNuma = 3
    cudaMemLocationTypeHostNumaCurrent = 4


class cudaMemoryAdvise(IntEnum):
    """Kinds of advice."""

    cudaMemAdviseSetReadMostly = 1
    cudaMemAdviseUnsetReadMostly = 2
    cudaMemAdviseSetPreferredLocation = 3
    cudaMemAdviseUnsetPreferredLocation = 4
    cudaMemAdviseSetAccessedBy = 5
    cudaMemAdviseUnsetAccessedBy = 6


class cudaMemLocation:
    """Where memory should be; fields are set one by one."""

    def __init__(self) -> None:
        self.type = cudaMemLocationType.cudaMemLocationTypeInvalid
        self.id = 0


def cudaMemPrefetchAsync(devPtr: Any, count: int, location: cudaMemLocation, flags: int, stream: Any) -> tuple[Any]:
    """Note the wish."""
    return _noted("cudaMemPrefetchAsync", int(devPtr), count, location, flags, int(stream))


def cudaMemAdvise(devPtr: Any, count: int, advice: Any, location: cudaMemLocation) -> tuple[Any]:
    """Note the advice."""
    return _noted("cudaMemAdvise", int(devPtr), count, cudaMemoryAdvise(advice), location)


def _noted(*call: Any) -> tuple[cudaError_t]:
    if emulated.lost:
        return (cudaError_t.cudaErrorUnknown,)
    places = [(place.type, place.id) if isinstance(place, cudaMemLocation) else place for place in call]
    if any(isinstance(place, cudaMemLocation) and not place.type for place in call):
        return (cudaError_t.cudaErrorInvalidValue,)
    emulated.calls.append(tuple(places))
    return (cudaError_t.cudaSuccess,)
