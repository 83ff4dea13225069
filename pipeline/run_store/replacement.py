"""A run that replaces another one of its name.

The new run works in ``<name>+new``, and is resumed there. When it is done the old one is removed and the new one takes
its place. A crash at any point leaves the old or the new run whole; the next process that uses the name completes the
exchange.
"""

from __future__ import annotations

from longwall.pipeline.run_store.manifest import is_run, status_of
from longwall.pipeline.run_store.run_names import NEW, is_own
from longwall.pipeline.run_store.run_place import RunPlace
from longwall.storage.errors import InputError, RunError


def place_for_replacement(target: RunPlace) -> RunPlace:
    """Make the place of a new run that will replace one, which is held; an earlier new run is removed.

    Raises
    ------
    InputError
        If `target` is not a run alone, or another process is busy with it.
    """
    new = target.sibling(target.name + NEW)
    try:
        _require_only_own(target)
        if not is_run(target.store):
            raise InputError(
                f"{target.store.where}: this folder is to be replaced, but holds no manifest.json of a run: move it "
                "away, or choose another run.name"
            )
        if new.exists():
            _remove_remains(new)
            new.close()
        new.make()
    except BaseException:
        new.close()
        target.close()
        raise
    return new


def replaced_by(new: RunPlace) -> RunPlace | None:
    """Return what a run replaces, held; None where it replaces nothing.

    Raises
    ------
    InputError
        If another process is busy with that.
    """
    if not new.name.endswith(NEW):
        return None
    target = new.sibling(new.name.removesuffix(NEW))
    if target.exists():
        target.hold()
    return target


def take_place(new: RunPlace, target: RunPlace) -> None:
    """Put a run that is done in the place of the one that it replaces; both are held.

    Raises
    ------
    RunError
        If that cannot be done now; `complete_exchange` does it later.
    """
    try:
        target.with_names_locked(lambda: _exchange(new, target))
    except (InputError, OSError) as error:
        raise RunError(
            f"{new.store.where}: the run is done, and cannot take the place of {target.store.where} ({error}): the "
            "next command that uses it tries again"
        ) from None


def complete_exchange(place: RunPlace) -> RunPlace:
    """Complete an exchange of runs that was interrupted, if there was one; return where the run is then.

    Parameters
    ----------
    place
        Of a run, or of one that replaces it.

    Raises
    ------
    InputError
        If another process is busy with the old run, or something lies in it that no run writes.
    """
    target = place.sibling(place.name.removesuffix(NEW))
    new = place.sibling(target.name + NEW)
    if not new.exists():
        return place

    def complete() -> RunPlace:
        try:
            if not _is_done(new):
                return place
            _exchange(new, target)
        finally:
            new.close()
            target.close()
        return target

    return target.with_names_locked(complete)


def unfinished_replacement(place: RunPlace) -> RunPlace | None:
    """Return the place of a run that is to replace one and is not done; None if there is none."""
    new = place.sibling(place.name + NEW)
    try:
        begun = not place.name.endswith(NEW) and new.exists() and status_of(new.store) not in (None, "done")
    except (InputError, OSError):
        return None
    return new if begun else None


def _is_done(new: RunPlace) -> bool:
    """Whether there is a new run that is done, and with which no process is busy."""
    try:
        new.hold()
        return status_of(new.store) == "done"
    except (InputError, OSError):
        return False


def _exchange(new: RunPlace, target: RunPlace) -> None:
    if target.exists():  # nothing of it is needed: the new run is whole
        _remove_remains(target)
    new.move_to(target)


def _remove_remains(place: RunPlace) -> None:
    """Remove a run, or what is left of one whose removal was interrupted."""
    _require_only_own(place)
    place.remove()


def _require_only_own(place: RunPlace) -> None:
    """Check that there is nothing but files of a run, and that no process can be busy with it; hold it."""
    place.require_idle()
    for name in sorted(place.store.list()):
        if not is_own(name):
            raise InputError(
                f"{place.store.where}/{name}: no run writes this, and the folder is to be replaced: move it away, or "
                "choose another run.name"
            )
