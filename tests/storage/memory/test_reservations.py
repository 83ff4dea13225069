"""Reservations never exceed their budget, whatever threads make them, and a refusal says what to do."""

import threading
from pathlib import Path

import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from longwall.storage.errors import RunError
from longwall.storage.memory.machine_budget import cgroup_free, cgroup_limit, default_disk_bytes
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget


def test_a_reservation_uses_bytes_until_it_is_released():
    budget = MemoryBudget("memory.host", 1000)
    reserved = budget.reserve(600, "a table")
    assert (budget.used, budget.free, budget.peak) == (600, 400, 600)
    reserved.resize(100, "a table")
    assert (reserved.size, budget.used, budget.free, budget.peak) == (100, 100, 900, 600)
    reserved.release()
    assert (reserved.size, budget.used, budget.free, budget.peak) == (0, 0, 1000, 600)


def test_all_of_the_budget_may_be_booked_and_not_one_byte_more():
    budget = MemoryBudget("memory.host", 1000)
    with budget.reserve(1000, "a table"):
        assert budget.free == 0
        with budget.reserve(0, "nothing"), pytest.raises(BudgetExceeded):
            budget.reserve(1, "a byte")
    assert budget.free == 1000


def test_the_refusal_is_one_message_that_says_what_would_do():
    budget = MemoryBudget("memory.host", 3 << 20)
    budget.reserve(1 << 20, "the graph")
    with pytest.raises(RunError) as refusal:
        budget.reserve(5 << 20, "a chunk of 7 rows")
    assert str(refusal.value) == (
        "no room for a chunk of 7 rows (5 MiB): memory.host = 3 MiB has 2 MiB left: raise memory.host"
    )


def test_a_refused_reservation_uses_nothing():
    budget = MemoryBudget("memory.disk", 1000)
    reserved = budget.reserve(700, "a run")
    with pytest.raises(BudgetExceeded):
        budget.reserve(301, "another run")
    with pytest.raises(BudgetExceeded):
        reserved.resize(1001, "a run")
    assert (reserved.size, budget.used, budget.peak) == (700, 700, 700)
    reserved.resize(1000, "a run")
    assert budget.free == 0


def test_releasing_twice_does_no_harm():
    budget = MemoryBudget("memory.host", 1000)
    other = budget.reserve(300, "a table")
    with budget.reserve(500, "scratch") as reserved:
        reserved.release()
        reserved.release()
    assert budget.used == other.size == 300


def test_an_exception_releases_what_a_context_has_booked():
    budget = MemoryBudget("memory.host", 1000)
    with pytest.raises(ZeroDivisionError), budget.reserve(500, "scratch"):
        1 / 0  # noqa: B018 - it is there to fail
    assert budget.used == 0


def test_a_budget_that_no_option_sets_says_what_else_helps():
    budget = MemoryBudget("the share of free memory", 10, "free memory, or use a machine with more")
    with pytest.raises(BudgetExceeded, match=r"the share of free memory = 10 B has 10 B left: free memory, or use a m"):
        budget.reserve(11, "a table")


def test_the_disk_budget_is_that_of_the_nearest_existing_folder_above_the_spill_folder(tmp_path, monkeypatch):
    asked = []

    class Usage:
        free = 1000

    def usage(path: str) -> Usage:
        asked.append(path)
        return Usage()

    monkeypatch.setattr("psutil.disk_usage", usage)
    monkeypatch.chdir("/")
    assert default_disk_bytes(tmp_path / "not" / "yet") == 800
    monkeypatch.chdir(tmp_path)
    default_disk_bytes(Path("spill"))
    assert asked == [str(tmp_path)] * 2


LIMITS = {"v1": ("memory.limit_in_bytes", "memory.usage_in_bytes"), "v2": ("memory.max", "memory.current")}


def machine(root: Path, version: str, line: str, groups: dict[str, tuple[object, int]]) -> Path:
    """A root folder with cgroups: path -> (limit, used)."""
    mount = root / "sys/fs/cgroup" / ("memory" if version == "v1" else "")
    for path, numbers in groups.items():
        (mount / path).mkdir(parents=True, exist_ok=True)
        for name, number in zip(LIMITS[version], numbers, strict=True):
            (mount / path / name).write_text(f"{number}\n")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"12:pids:/elsewhere\n{line}\n1:name=systemd:/x\n")
    return root


@each_case(("version", "prefix"), [("v2", "0::"), ("v1", "4:cpu,memory:")])
@each_case(
    ("path", "groups", "capacity"),
    [
        ("/a/b", {"a/b": (900, 100), "a": (1000, 700), "": (2**60, 5)}, 300),
        ("/a/b", {"a/b": (150, 100), "a": (1000, 700)}, 50),
        ("/a/b", {"a/b": ("max", 100), "a": ("max", 700)}, float("inf")),
        ("/a", {"a": ("max", 100), "other": (10, 9)}, float("inf")),
        ("/", {"": (500, 100)}, 400),
        ("/docker/of the host", {"": (500, 100)}, 400),
        ("/../..", {"": (500, 100)}, 400),
    ],
)
def test_the_least_room_of_all_cgroups_above_the_process_counts(tmp_path, version, prefix, path, groups, capacity):
    assert cgroup_free(machine(tmp_path, version, prefix + path, groups)) == capacity


@pytest.mark.parametrize(
    ("version", "line", "stat"),
    [
        ("v2", "0::/a", "anon 30\ninactive_file 60\nactive_file 5\n"),
        ("v1", "4:memory:/a", "inactive_file 5\ntotal_inactive_file 60\n"),
    ],
)
def test_cached_files_do_not_take_room(tmp_path, version, line, stat):
    root = machine(tmp_path, version, line, {"a": (100, 95)})
    assert cgroup_free(root) == 5
    next(root.rglob("a")).joinpath("memory.stat").write_text(stat)
    assert cgroup_free(root) == 65


def test_the_innermost_limit_is_told_from_none(tmp_path):
    memory = ("memory", "memory.limit_in_bytes")
    root = machine(tmp_path / "2", "v2", "0::/a/b", {"a": (100, 95), "a/b": ("max", 3)})
    assert cgroup_limit("memory.max", memory, root) == "100"
    root = machine(tmp_path / "1", "v1", "4:memory:/a/b", {"a": (200, 95), "a/b": (2**63 - 4096, 3)})
    assert cgroup_limit("memory.max", memory, root) == "200"
    assert cgroup_limit("cpu.max", ("cpu", "cpu.cfs_quota_us"), root) == ""
    assert cgroup_limit("memory.max", memory, tmp_path / "none") == ""


def test_without_cgroups_there_is_no_limit(tmp_path):
    assert cgroup_free(tmp_path) == float("inf")


steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 150)),
        st.tuples(st.just("resize"), st.integers(0, 5), st.integers(0, 150)),
        st.tuples(st.just("release"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(limit=st.integers(1, 200), steps=steps)
def test_the_books_balance(limit, steps):
    """Against a plain list of sizes: a request is granted exactly when the sum stays in the budget."""
    budget, reservations, sizes, peak = MemoryBudget("memory.host", limit), [], [], 0
    for kind, *numbers in steps:
        if kind == "reserve":
            if sum(sizes) + numbers[0] <= limit:
                reservations.append(budget.reserve(numbers[0], "x"))
                sizes.append(numbers[0])
            else:
                with pytest.raises(BudgetExceeded):
                    budget.reserve(numbers[0], "x")
        elif reservations:
            at = numbers[0] % len(reservations)
            if kind == "release":
                reservations[at].release()
                sizes[at] = 0
            elif numbers[1] <= sizes[at] or sum(sizes) - sizes[at] + numbers[1] <= limit:
                reservations[at].resize(numbers[1], "x")
                sizes[at] = numbers[1]
            else:
                with pytest.raises(BudgetExceeded):
                    reservations[at].resize(numbers[1], "x")
        peak = max(peak, sum(sizes))
        assert [reserved.size for reserved in reservations] == sizes
        assert (budget.used, budget.free, budget.peak) == (sum(sizes), limit - sum(sizes), peak)


def test_many_threads_never_book_more_than_there_is():
    budget = MemoryBudget("memory.host", 1000)
    seen: list[int] = []
    granted = [0] * 8
    start = threading.Barrier(len(granted))

    def work(number: int) -> None:
        start.wait()
        for turn in range(2000):
            try:
                with budget.reserve(100 + (turn * 7 + number) % 150, "a chunk") as reserved:
                    seen.append(budget.used)
                    reserved.resize(reserved.size // 2, "a chunk")
                    granted[number] += 1
            except BudgetExceeded:
                continue

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(granted))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.used == 0
    assert max(seen) <= budget.peak <= 1000
    assert all(granted)


def test_what_was_written_is_added_up() -> None:
    budget = MemoryBudget("memory.disk", 10)
    assert budget.writing == (0, 0.0)
    budget.add_writing(100, 0.5)
    budget.add_writing(50, 0.25)
    assert budget.writing == (150, 0.75)
