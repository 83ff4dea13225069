"""Budgets and a spill folder for those who were given none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longwall.storage.account import Accounts
from longwall.storage.budget import Budget
from longwall.storage.spill import SpillFolder

_SPILL = Path("spill")


@contextmanager
def open_resources(accounts: Accounts | None, spill: SpillFolder | None) -> Iterator[tuple[Accounts, SpillFolder]]:
    """Fill in what is not given: this machine's default budgets, and a folder in `spill` that goes away again."""
    accounts = accounts or Accounts.of(Budget.resolve(spill=_SPILL))
    if spill is not None:
        yield accounts, spill
        return
    with SpillFolder(_SPILL) as own:
        yield accounts, own
