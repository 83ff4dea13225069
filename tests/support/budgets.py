"""Small budgets for tests."""

from typing import Any, NamedTuple

from longwall.stages.homomorphisms.tables import TableMemory
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.spill_folder import SpillFolder


class Budgets(NamedTuple):
    """Budgets of the host's memory and of the disk."""

    host: MemoryBudget
    disk: MemoryBudget

    def at(self, spill: SpillFolder, **options: Any) -> Resources:
        """Return resources of these budgets and a spill folder; `options` as those of `Resources`."""
        return Resources(*self, spill, **options)


def make_budgets(host: int = 1 << 28, disk: int = 1 << 30) -> Budgets:
    """Return budgets of so many bytes."""
    return Budgets(MemoryBudget("memory.host", host), MemoryBudget("memory.disk", disk))


def table_memory(size: int = 1 << 28) -> TableMemory:
    """Return memory for tables in a budget of a number of bytes."""
    return TableMemory(make_budgets(size).host, on_device=False)
