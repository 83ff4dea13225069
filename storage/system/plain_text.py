"""Text for terminals and pages: control characters of texts from files, names and errors are written out."""

import sys


def harmless(value: object) -> str:
    """Return text without control characters: a text from a file must not control the terminal."""
    text = visible(str(value))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def harmless_lines(text: str) -> str:
    """Apply `harmless` to each line of a text."""
    return "\n".join(map(harmless, text.split("\n")))


def visible(text: str) -> str:
    r"""Return text with invisible and reordering characters written out, as ``\x1b`` or ``\u202e``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
