"""Text that drives nothing: what files, names and errors say is shown with its control characters written out."""

import sys


def harmless(value: object) -> str:
    """Return text without control characters: what a file says must not drive the terminal."""
    text = visible(str(value))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def harmless_lines(text: str) -> str:
    """Return lines of text as `harmless` does each of them."""
    return "\n".join(map(harmless, text.split("\n")))


def visible(text: str) -> str:
    r"""Return text in which characters that are not seen, or change how others are, stand as ``\x1b`` or ``\u202e``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
