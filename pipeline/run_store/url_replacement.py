"""A run at a URL that replaces another one of its name; see :mod:`longwall.pipeline.run_store.replacement`.

Nothing can be renamed there. So the new run, once it is done beside the old one, is copied to the old one's place; its
manifest comes last, and until then the new run is whole where it was made.
"""

from __future__ import annotations

from longwall.pipeline.run_store.manifest import read_manifest
from longwall.pipeline.run_store.run_names import NEW, busy, is_own, require_own
from longwall.storage.errors import InputError
from longwall.storage.remote.remote_folder import RemoteFolder

_MANIFEST = "manifest.json"


def replacement_of(mirror: RemoteFolder) -> RemoteFolder:
    """Give the place of a new run that will replace one; what an earlier new run left there is removed.

    Raises
    ------
    InputError
        If there is something else than a run, or a process may be busy with it: there are no locks at a URL.
    """
    new = RemoteFolder(mirror.url + NEW)
    for place in (mirror, new):
        there = place.sizes()
        require_own(place.url, there)
        others = sorted(name for name in there if not is_own(name))
        if others:
            raise InputError(
                f"{place.url}/{others[0]}: no run writes this, and the folder is to be replaced: move it away, or "
                "choose another run.name"
            )
        status = status_of(place, there)
        if status is None and set(there) - ({"config.toml"} if place is new else set()):
            raise InputError(
                f"{place.url}: this folder is to be replaced, but holds no manifest.json of a run: move it away, or "
                "choose another run.name"
            )
        if status == "running":
            raise InputError(f"{busy(place.url)}; if it was killed, resume it, or remove {place.url}")
    remove_run(new)
    return new


def complete(mirror: RemoteFolder) -> RemoteFolder:
    """Put a new run that is done in the place of the old one; gives where the run is then.

    Parameters
    ----------
    mirror
        The folder of a run, or of one that replaces it.
    """
    target = RemoteFolder(mirror.url.removesuffix(NEW))
    new = RemoteFolder(target.url + NEW)
    there = new.sizes()
    if status_of(new, there) != "done":
        return mirror
    mine = sorted(name for name in there if is_own(name) and name != _MANIFEST)
    remove_run(target)
    new.copy_to(target, mine)
    new.copy_to(target, [_MANIFEST])
    remove_run(new)
    return target


def remove_run(mirror: RemoteFolder, places: tuple[str, ...] = ("",)) -> None:
    """Remove the files of a run, or those of some of its folders; the manifest first, without which it is no run."""
    mine = [name for name in mirror.sizes() if is_own(name) and name.startswith(places)]
    if _MANIFEST in mine:
        mirror.remove([_MANIFEST])
        mine.remove(_MANIFEST)
    mirror.remove(mine)
    if mirror.has_folders:
        mirror.remove_empty_folders()


def status_of(mirror: RemoteFolder, there: dict[str, int]) -> str | None:
    """What the manifest says; None where there is none."""
    if _MANIFEST not in there:
        return None
    try:
        status: str = read_manifest(mirror.read(_MANIFEST))["status"]
    except ValueError:
        return None
    return status
