"""Whether tabs separate the fields of a table, as they do if the fields hold blanks or other separators."""

import re
from itertools import islice

from longwall.storage.ingest.text.parsed_rows import COMMENTS

_MOST_ROWS = 100
_NUMBERS = re.compile(rb"\s*[-+.]*\d\S*(?:\s+[-+.]*\d\S*)+\s*")
_INSIDE = re.compile(rb"\S +\S|[,;|]")
_SEPARATOR = re.compile(rb"[,;|]")


def tabs_separate(text: bytes) -> bool:
    """Say whether tabs separate the fields of the first rows, and nothing else can.

    All rows have the same number of tabs, and some field has blanks or other separators inside. Rows of other tables
    have a first field that is empty, has a separator, or consists of several numbers.
    """
    lines = (line.rstrip(b"\r") for line in text.split(b"\n", 2 * _MOST_ROWS)[: 2 * _MOST_ROWS])
    rows = list(islice((line for line in lines if line.strip() and line[:1] not in COMMENTS), _MOST_ROWS))
    fields = [row.split(b"\t") for row in rows]
    if not fields or len(fields[0]) < 2 or any(len(row) != len(fields[0]) for row in fields):
        return False
    if any(not row[0].strip() or _SEPARATOR.search(row[0]) or _NUMBERS.fullmatch(row[0]) for row in fields):
        return False
    return any(_INSIDE.search(field) for row in fields for field in row)
