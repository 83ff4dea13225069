"""All set partitions of a few items: the sums over them are inclusion-exclusion for distinctness."""

from collections.abc import Iterator, Sequence


def set_partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Return every way to split the items into non-empty blocks."""
    if not items:
        yield []
        return
    first = items[0]
    for partition in set_partitions(items[1:]):
        yield [[first], *partition]
        for i, block in enumerate(partition):
            yield [*partition[:i], [first, *block], *partition[i + 1 :]]
