"""A run that replaces another one of its name.

The new run works in ``<name>+new``, and is resumed there. When it is done the old one is removed and the new one takes
its place. A crash at any point leaves the old or the new run whole; the next process that uses the name completes the
change.
"""

from __future__ import annotations

from longwall.pipeline.run_store.manifest import status_of
from longwall.pipeline.run_store.run_names import NEW
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import InputError, RunError


def replacement_of(target: RunStore) -> RunStore:
    """Make the place of a new run that will replace one, which is held; an earlier new run is removed.

    Raises
    ------
    InputError
        If `target` is not a run alone, or another process is busy with it.
    """
    new = target.sibling(target.name + NEW)
    try:
        target.require_replaceable()
        if new.exists():
            try:
                new.require_replaceable(whole=False)
                new.clear()
            finally:
                new.close()
        new.begin()
    except BaseException:
        target.close()
        raise
    return new


def replaced_by(store: RunStore) -> RunStore | None:
    """Return what a run replaces, held; None where it replaces nothing.

    Raises
    ------
    InputError
        If another process is busy with that.
    """
    if not store.name.endswith(NEW):
        return None
    target = store.sibling(store.name.removesuffix(NEW))
    if target.exists():
        target.hold()
    return target


def take_place(new: RunStore, target: RunStore) -> None:
    """Put a run that is done in the place of the one that it replaces; both are held.

    Raises
    ------
    RunError
        If that cannot be done now; `complete` does it later.
    """
    try:
        with target.exchange():
            _exchange(new, target)
    except (InputError, OSError) as error:
        raise RunError(
            f"{new.where}: the run is done, and cannot take the place of {target.where} ({error}): the next command "
            "that uses it tries again"
        ) from None


def complete(store: RunStore) -> RunStore:
    """Complete a change of places that was interrupted, if there was one; return where the run is then.

    Parameters
    ----------
    store
        Of a run, or of one that replaces it.

    Raises
    ------
    InputError
        If another process is busy with the old run, or something lies in it that no run writes.
    """
    target = store.sibling(store.name.removesuffix(NEW))
    new = store.sibling(target.name + NEW)
    if not new.exists():
        return store
    with target.exchange():
        try:
            if not _is_done(new):
                return store
            _exchange(new, target)
        finally:
            new.close()
            target.close()
    return target


def _is_done(new: RunStore) -> bool:
    """Whether there is a new run that is done, and with which no process is busy."""
    try:
        new.hold()
        return status_of(new) == "done"
    except (InputError, OSError):
        return False


def _exchange(new: RunStore, target: RunStore) -> None:
    if target.exists():  # nothing of it is needed: the new run is whole
        target.require_replaceable(whole=False)
        target.clear()
    new.move_to(target)
