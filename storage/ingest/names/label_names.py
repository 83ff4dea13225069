"""Labels that are texts: few and repeated, so that all of them are in memory; numbered as they come first."""

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.texts import HashedTexts

_MOST, _LONGEST = 2**16, 256  # labels, and characters of one


class LabelNames:
    """The texts that label vertices, or edges.

    Parameters
    ----------
    source
        What is read, for messages.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._numbers: dict[tuple[int, int], int] = {}
        self._names: list[str] = []
        self.used = False
        """Whether a label was a text since this was set to False."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The labels by number; None where none was a text."""
        return tuple(self._names) or None

    def numbers(self, labels: HashedTexts) -> npt.NDArray[np.int64]:
        """Return int64[k]: the number of each label.

        Raises
        ------
        InputError
            If there are too many different ones, or one is too long or not UTF-8.
        """
        self.used |= len(labels.ids) > 0
        _, firsts, inverse = np.unique(labels.ids, return_index=True, return_inverse=True)
        found = np.empty(len(firsts), np.int64)
        for at in np.argsort(firsts, kind="stable").tolist():  # in the order of the input
            row = int(firsts[at])
            key = int(labels.ids[row]), int(labels.checks[row])
            if key not in self._numbers:
                self._numbers[key] = len(self._names)
                self._names.append(self._checked(labels.show(row)))
            found[at] = self._numbers[key]
        return found[inverse]

    def _checked(self, name: str) -> str:
        if len(self._names) == _MOST:
            raise InputError(
                f"{self._source}: more than {_MOST:,} different labels; choose a column with fewer, or integers"
            )
        if len(name) > _LONGEST or "\ufffd" in name:
            what = f"has {len(name):,} characters, labels have at most {_LONGEST}" if len(name) > _LONGEST else ""
            raise InputError(f"{self._source}: the label {name[:40]!r} {what or 'is not UTF-8'}; shorten or correct it")
        return name
