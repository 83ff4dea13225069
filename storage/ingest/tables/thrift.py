"""Read and write Thrift's compact protocol, in which Parquet writes its footer and the headers of its pages.

See https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from collections.abc import Iterator
from typing import Any

TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_DEEPEST = 16  # values in values
_LONGEST = 64  # bits of an integer

Struct = dict[int, Any]
"""Number of a field -> integer, bool, struct or list; None for other values."""


class NotThrift(ValueError):
    """The bytes cannot be read."""


class Cursor:
    """A place in bytes, which moves as values are read.

    All methods raise `IndexError` where the bytes end too early, and `NotThrift` where they mean nothing.

    Parameters
    ----------
    data
        The bytes.

    Attributes
    ----------
    at
        The offset of the next byte.
    """

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data
        self._depth = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of a struct; `value` or `skip` has to be called in between."""
        number = 0
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotThrift
        data = self._data
        while head := data[self.at]:
            self.at += 1
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15
        self.at += 1
        self._depth -= 1

    def items(self) -> Iterator[int]:
        """Yield the kind of each item of a list or a set; as for `fields`."""
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        kind = head & 15
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotThrift
        for _ in range(size):
            yield BYTE if kind in (TRUE, FALSE) else kind
        self._depth -= 1

    def value(self, kind: int) -> Any:
        """Read a value; see `Struct`."""
        if kind in (INT16, INT32, INT64):
            return self._integer()
        if kind == STRUCT:
            return {number: self.value(of) for number, of in self.fields()}
        if kind == LIST:
            return [self.value(of) for of in self.items()]
        if kind in (TRUE, FALSE):
            return kind == TRUE
        self.skip(kind)
        return None

    def skip(self, kind: int) -> None:
        """Pass a value over."""
        if kind in (INT16, INT32, INT64):
            self._unsigned()
        elif kind == BINARY:
            self._pass(self._unsigned())
        elif kind == STRUCT:
            for _, of in self.fields():
                self.skip(of)
        elif kind in (LIST, SET):
            for of in self.items():
                self.skip(of)
        elif kind in (BYTE, DOUBLE):
            self._pass(1 if kind == BYTE else 8)
        elif kind not in (TRUE, FALSE):
            raise NotThrift  # Parquet has no maps

    def _pass(self, length: int) -> None:
        self.at += length
        if self.at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        data, at = self._data, self.at
        value = shift = 0
        while (byte := data[at]) > 127:
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if shift >= _LONGEST:
                raise NotThrift
        self.at = at + 1
        return value | byte << shift


def encoded(kind: int, value: Any) -> bytes:
    """Write a value.

    Parameters
    ----------
    kind
        INT16, INT32, INT64, BINARY, LIST or STRUCT.
    value
        An integer; bytes; of a list, the kind of the items and the items; of a struct, the kind and the value of each
        field by its number. Fields whose kind is TRUE or FALSE have no value.
    """
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == LIST:
        of, items = value
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([240 | of]) + _varint(len(items))
        return head + b"".join(encoded(of, item) for item in items)
    if kind == STRUCT:
        parts, before = [], 0
        for number, (of, inner) in value.items():
            assert before < number <= before + 15, "fields ascend, and few are left out"
            parts.append(bytes([number - before << 4 | of]))
            if of not in (TRUE, FALSE):
                parts.append(encoded(of, inner))
            before = number
        return b"".join(parts) + b"\0"
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
