"""A limit of the address space (``ulimit -v``): libraries crash or hang while they are imported where it is too low."""

import resource

from longwall.storage.errors import InputError
from longwall.storage.system.concurrency import core_count

# Small runs need 500 to 600 MiB with two cores, and each further core 48 MiB for the threads of the linear algebra
# library and of the engine.
_BASE, _PER_CORE = 700, 50  # MiB


def require_address_space() -> None:
    """See that this process may use enough of it; before the libraries are imported.

    Raises
    ------
    InputError
        If it may not.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    cores = core_count()
    needed = _BASE + _PER_CORE * cores
    if limit != resource.RLIM_INFINITY and limit < needed << 20:
        raise InputError(
            f"this process may use {limit >> 20} MiB of address space, and {needed} MiB are needed with {cores} cores: "
            f"raise the limit (ulimit -v {needed << 10}), or use fewer cores (taskset)"
        )
