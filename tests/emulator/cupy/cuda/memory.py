"""As `cupy.cuda.memory`."""

from cupy._memory import (
    BaseMemory,
    ManagedMemory,
    Memory,
    MemoryPointer,
    MemoryPool,
    OutOfMemoryError,
    UnownedMemory,
    malloc_managed,
    set_allocator,
    using_allocator,
)

__all__ = [
    "BaseMemory",
    "ManagedMemory",
    "Memory",
    "MemoryPointer",
    "MemoryPool",
    "OutOfMemoryError",
    "UnownedMemory",
    "malloc_managed",
    "set_allocator",
    "using_allocator",
]
