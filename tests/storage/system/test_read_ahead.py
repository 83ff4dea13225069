"""Objects that are read ahead are those that were asked for, whichever thread asks, in whatever order."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.storage.system.concurrency import ReadAhead


@settings(max_examples=50, deadline=None)
@given(
    st.sets(st.integers(0, 40), min_size=1).flatmap(
        lambda numbers: st.tuples(st.just(sorted(numbers)), st.lists(st.sampled_from(sorted(numbers)), max_size=60))
    ),
    st.integers(1, 4),
)
def test_every_number_gives_its_object_however_often_it_is_asked_for(numbers_and_asked, depth):
    numbers, asked = numbers_and_asked
    with ReadAhead([(number, str(number)) for number in numbers], str.upper, depth) as ahead:
        assert [ahead.get(number) for number in asked] == [str(number) for number in asked]


@pytest.mark.parametrize("starts", [(0,), (0, 50)])
def test_what_is_asked_for_in_order_is_read_once(starts):
    read: list[int] = []
    with ReadAhead([(number, number) for number in range(100)], lambda n: read.append(n) or n, 2) as ahead:
        for step in range(100 // len(starts)):
            for start in starts:
                assert ahead.get(start + step) == start + step
    assert set(read) == set(range(100))
    assert len(read) <= 100 + 2 * (len(starts) - 1)


def test_no_more_is_read_than_there_is_room_for():
    read: list[int] = []
    with ReadAhead([(number, number) for number in range(100)], read.append, 3) as ahead:
        for number in (0, 20, 40, 60):
            ahead.get(number)
        last = threading.Event()
        ahead._pool.submit(last.set)  # behind all that was asked of the thread
        assert last.wait(60)
    assert len(read) <= 4 + 3 * 4


def test_an_object_that_cannot_be_read_fails_where_it_is_wanted():
    def read(number: int) -> int:
        if number == 1:
            raise OSError("gone")
        return number

    with ReadAhead([(number, number) for number in range(3)], read, 2) as ahead:
        assert ahead.get(0) == 0
        assert ahead.get(2) == 2
        with pytest.raises(OSError, match="gone"):
            ahead.get(1)
