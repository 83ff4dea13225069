"""The accountant: what is booked never exceeds the budget, whoever books, and a refusal is one clear sentence."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwall.storage.account import Account, Accounts, OverBudget
from longwall.storage.budget import Budget
from longwall.storage.errors import RunError


def test_a_booking_takes_bytes_and_gives_them_back():
    account = Account("memory.host", 1000)
    booking = account.book(600, "a table")
    assert (account.used, account.free, account.peak) == (600, 400, 600)
    booking.resize(100, "a table")
    assert (booking.size, account.used, account.free, account.peak) == (100, 100, 900, 600)
    booking.release()
    assert (booking.size, account.used, account.free, account.peak) == (0, 0, 1000, 600)


def test_all_of_the_budget_may_be_booked_and_not_one_byte_more():
    account = Account("memory.host", 1000)
    with account.book(1000, "a table"):
        assert account.free == 0
        with account.book(0, "nothing"), pytest.raises(OverBudget):
            account.book(1, "a byte")
    assert account.free == 1000


def test_the_refusal_is_one_sentence_that_says_what_would_do():
    account = Account("memory.host", 3 << 20)
    account.book(1 << 20, "the graph")
    with pytest.raises(RunError) as refusal:
        account.book(5 << 20, "a chunk of 7 rows")
    assert str(refusal.value) == (
        "a chunk of 7 rows needs 5 MiB, memory.host = 3 MiB has 2 MiB left: raise memory.host"
    )


def test_a_refused_booking_takes_nothing():
    account = Account("memory.disk", 1000)
    booking = account.book(700, "a run")
    with pytest.raises(OverBudget):
        account.book(301, "another run")
    with pytest.raises(OverBudget):
        booking.resize(1001, "a run")
    assert (booking.size, account.used, account.peak) == (700, 700, 700)
    booking.resize(1000, "a run")
    assert account.free == 0


def test_releasing_twice_does_no_harm():
    account = Account("memory.host", 1000)
    other = account.book(300, "a table")
    with account.book(500, "scratch") as booking:
        booking.release()
        booking.release()
    assert account.used == other.size == 300


def test_an_exception_releases_what_a_context_has_booked():
    account = Account("memory.host", 1000)
    with pytest.raises(ZeroDivisionError), account.book(500, "scratch"):
        1 / 0  # noqa: B018 - it is there to fail
    assert account.used == 0


def test_the_accounts_of_a_run_are_named_after_the_options():
    accounts = Accounts.of(Budget(device=None, host=10, disk=20))
    assert (accounts.host.option, accounts.host.limit) == ("memory.host", 10)
    assert (accounts.disk.option, accounts.disk.limit) == ("memory.disk", 20)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("book"), st.integers(0, 150)),
        st.tuples(st.just("resize"), st.integers(0, 5), st.integers(0, 150)),
        st.tuples(st.just("release"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(limit=st.integers(1, 200), steps=steps)
def test_the_books_balance(limit, steps):
    """Against a plain list of sizes: a request is granted exactly when the sum stays in the budget."""
    account, bookings, sizes, peak = Account("memory.host", limit), [], [], 0
    for kind, *numbers in steps:
        if kind == "book":
            if sum(sizes) + numbers[0] <= limit:
                bookings.append(account.book(numbers[0], "x"))
                sizes.append(numbers[0])
            else:
                with pytest.raises(OverBudget):
                    account.book(numbers[0], "x")
        elif bookings:
            at = numbers[0] % len(bookings)
            if kind == "release":
                bookings[at].release()
                sizes[at] = 0
            elif numbers[1] <= sizes[at] or sum(sizes) - sizes[at] + numbers[1] <= limit:
                bookings[at].resize(numbers[1], "x")
                sizes[at] = numbers[1]
            else:
                with pytest.raises(OverBudget):
                    bookings[at].resize(numbers[1], "x")
        peak = max(peak, sum(sizes))
        assert [booking.size for booking in bookings] == sizes
        assert (account.used, account.free, account.peak) == (sum(sizes), limit - sum(sizes), peak)


def test_many_threads_never_book_more_than_there_is():
    account = Account("memory.host", 1000)
    seen: list[int] = []
    granted = [0] * 8
    start = threading.Barrier(len(granted))

    def work(number: int) -> None:
        start.wait()
        for turn in range(2000):
            try:
                with account.book(100 + (turn * 7 + number) % 150, "a chunk") as booking:
                    seen.append(account.used)
                    booking.resize(booking.size // 2, "a chunk")
                    granted[number] += 1
            except OverBudget:
                continue

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(granted))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.used == 0
    assert max(seen) <= account.peak <= 1000
    assert all(granted)
