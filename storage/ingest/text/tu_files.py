"""Find the files of a data set of TU Dortmund by their names."""

from pathlib import Path

from longwall.storage.ingest.text.input_file import paths_within, within_zip

_ENTRIES = "_A.txt"
INDICATOR = "_graph_indicator.txt"


def is_tu_data_set(path: Path) -> bool:
    """Whether a file has the entries of a data set whose indicator is beside it."""
    return path.name.endswith(_ENTRIES) and file_exists(file_with_ending(path, INDICATOR))


def entries_in(place: Path) -> Path | None:
    """Return the file of the entries, if a folder or a zip archive has exactly one data set; else None."""
    paths = paths_within(place) if place.suffix.lower() == ".zip" else place.glob(f"*{_ENTRIES}")
    found = [path for path in paths if is_tu_data_set(path)]
    return found[0] if len(found) == 1 else None


def file_exists(path: Path) -> bool:
    """Return whether a file exists, in a folder or in the zip archive that its path begins with."""
    archive, name = within_zip(path)
    return path in paths_within(archive) if name else path.is_file()


def file_with_ending(path: Path, ending: str) -> Path:
    """Return the file of a data set that has this ending, by the path of its entries."""
    return path.with_name(f"{path.name.removesuffix(_ENTRIES)}{ending}")
