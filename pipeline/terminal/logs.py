"""``--log-level``: what Longwall logs, on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from longwall.storage.errors import InputError

if TYPE_CHECKING:
    import logging

LEVELS = ("debug", "info", "warning", "error")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: str) -> None:
    """Write what Longwall logs from a level up to standard error; a second call changes the level.

    Raises
    ------
    InputError
        If there is no such level.
    """
    if level not in LEVELS:
        raise InputError(f"--log-level: expected {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, not {level:.60}")
    import logging

    logger = logging.getLogger("longwall")
    for old in [one for one in logger.handlers if one.get_name() == _FORMAT]:
        logger.removeHandler(old)
    handler: logging.StreamHandler[TextIO] = logging.StreamHandler(_PresentStderr())  # type: ignore[arg-type]
    handler.set_name(_FORMAT)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(level.upper())


class _PresentStderr:
    """Standard error as it is when it is written to: a progress bar puts itself below what comes."""

    def write(self, text: str) -> None:
        """Write as far as that can be written."""
        from longwall.pipeline.progress.observers import silence
        from longwall.storage.system.plain_text import harmless_lines

        try:
            sys.stderr.write(harmless_lines(text))
        except (OSError, ValueError):
            silence(sys.stderr)

    def flush(self) -> None:
        """Flush as far as that can be done."""
        from longwall.pipeline.progress.observers import silence

        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            silence(sys.stderr)
