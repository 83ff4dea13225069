"""Budgets and a spill folder for those who were given none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longwall.storage.memory.machine_budget import Budget
from longwall.storage.memory.reservations import Accounts, MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder

_SPILL = Path("spill")


@contextmanager
def open_resources(accounts: Accounts | None, spill: SpillFolder | None) -> Iterator[tuple[Accounts, SpillFolder]]:
    """Fill in what is not given: this machine's default budgets, and a folder in `spill` that goes away again."""
    accounts = accounts or _defaults()
    if spill is not None:
        yield accounts, spill
        return
    with SpillFolder(_SPILL, advice="work in another folder, or free memory") as own:
        yield accounts, own


def _defaults() -> Accounts:
    # There is no option that sets them: the messages say what else helps.
    budget = Budget.resolve(spill=_SPILL)
    return Accounts(
        MemoryBudget("the share of free memory", budget.host, "free memory, or use a machine with more"),
        MemoryBudget("the share of free disk space", budget.disk, "free space there, or work in another folder"),
    )
