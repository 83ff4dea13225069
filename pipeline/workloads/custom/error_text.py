"""What an error in users' code says, and where it came from."""

from __future__ import annotations

import traceback


def said(error: BaseException) -> str:
    """Return an error's name and message, on one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return ": ".join([type(error).__name__, *filter(None, [" ".join(text.split())])])


def line_of(error: BaseException, file: str) -> int | None:
    """Return the last line of a file that an error came through; None where it is in no line of it."""
    if isinstance(error, SyntaxError):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None
