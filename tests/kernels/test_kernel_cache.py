"""Compiled kernels are kept where only their user can write, and a machine without such a place compiles in memory."""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longwall.kernels.cuda.runtime import open_device as device
from longwall.kernels.jit import kernel_cache, private_folder
from longwall.kernels.jit.private_folder import NotPrivate, open_private

CALL = "import outer; print(outer.twice(20), sum(outer.twice.stats.cache_hits.values()))"
INNER = """
import numba
from longwall.kernels.jit.kernel_cache import cached
@cached
@numba.njit
def factor():
    return {factor}
"""
OUTER = """
import numba
from inner import factor
from longwall.kernels.jit.kernel_cache import cached
@cached
@numba.njit
def twice(number):
    return factor() * number
"""
STREAMS = """
import sys
from longwall.kernels.jit.compile import compiled
@compiled
def twice(number):
    return 2 * number
if __name__ == "__main__":
    streams = sys.stdout, sys.stderr
    assert twice(20) == 40
    import colorama.initialise as colorama
    assert "numba" in sys.modules
    assert (sys.stdout, sys.stderr) == streams
    assert colorama.orig_stdout is None
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with a kernel that calls another one."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "inner.py").write_text(INNER.format(factor=2))
    (folder / "outer.py").write_text(OUTER)
    return folder


def call(sources: Path, **environment: Path | str) -> tuple[int, int]:
    """Call the kernel in a process of its own. Return its answer, and how often it was found in the cache."""
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=sources,
        env=_cleared() | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answer, hits = map(int, done.stdout.split())
    return answer, hits


def _cleared() -> dict[str, str]:
    gone = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "CUPY_CACHE_DIR", "CUPY_CACHE_IN_MEMORY")
    return {name: value for name, value in os.environ.items() if name not in gone}


def indices(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbi"))


def test_kernels_are_kept_in_a_folder_of_the_user(sources: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert call(sources, HOME=home) == (40, 0)
    assert call(sources, HOME=home) == (40, 1)
    kept = home / ".cache" / "longwall" / "kernels"
    assert len(indices(kept)) == 2
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not indices(sources)


@pytest.mark.parametrize("others", [0, 300], ids=["closed", "others"])
def test_a_program_may_close_the_descriptor_of_the_folder(sources: Path, tmp_path: Path, others: int) -> None:
    """As daemons do; kernels must not be kept in, or loaded from, the folder that has the number now."""
    foreign, home = tmp_path / "foreign", tmp_path / "home"
    foreign.mkdir()
    home.mkdir()
    daemon = (
        "import os, inner, outer; inner.factor(); os.closerange(3, 256)\n"
        f"others = [os.open({str(foreign)!r}, os.O_RDONLY) for _ in range({others})]\n"
        "assert outer.twice(20) == 40; outer.twice(2.5)"
    )
    environment = _cleared() | {"HOME": str(home)}
    subprocess.run([sys.executable, "-c", daemon], cwd=sources, env=environment, check=True, timeout=120)
    assert not list(foreign.iterdir())
    assert call(sources, HOME=home) == ((40, 0) if others else (40, 1))


@pytest.mark.slow
def test_compiling_leaves_the_standard_streams_alone(tmp_path: Path) -> None:
    pytest.importorskip("colorama", reason="without colorama Numba does not colour its messages")
    (tmp_path / "streams.py").write_text(STREAMS)
    environment = _cleared() | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "streams.py"], cwd=tmp_path, env=environment, check=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_the_user_chooses_the_folder(sources: Path, tmp_path: Path, variable: str) -> None:
    environment: dict[str, Path | str] = {"HOME": "/proc", variable: tmp_path / "chosen"}
    assert call(sources, **environment) == (40, 0)
    assert call(sources, **environment) == (40, 1)
    assert indices(tmp_path / "chosen")


class Malice:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> object:
        return open, (str(self.path), "w")


@pytest.mark.slow
def test_no_index_is_read_where_others_can_write(sources: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    assert call(sources, NUMBA_CACHE_DIR=shared) == (40, 0)
    shared.chmod(0o777)
    found = indices(shared)
    assert found
    for path in found:
        path.write_bytes(pickle.dumps(Malice(tmp_path / "ran")))
    assert call(sources, NUMBA_CACHE_DIR=shared, HOME=tmp_path) == (40, 0)
    assert not (tmp_path / "ran").exists()
    assert indices(tmp_path / ".cache")  # of the user's own


def test_a_folder_that_is_not_private_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    os.close(open_private(own))
    for mode in (0o720, 0o702):
        own.chmod(mode)
        with pytest.raises(NotPrivate, match="own: other users may write to it"):
            open_private(own)
    own.chmod(0o755)
    os.close(open_private(own))
    (tmp_path / "link").symlink_to(own)
    with pytest.raises(NotPrivate, match="link: it is a link"):
        open_private(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(NotPrivate, match="file: "):
        open_private(tmp_path / "file")
    if os.geteuid() == 0:
        os.chown(own, 12345, -1)
        with pytest.raises(NotPrivate, match="own: it belongs to another user"):
            open_private(own)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"\x80\x04garbage", b"", b"\0" * 40])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_is_damaged_is_compiled_again(sources: Path, tmp_path: Path, damage: bytes, ending: str) -> None:
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 0)
    for path in tmp_path.rglob(f"*.{ending}"):
        path.write_bytes(damage)
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 0)
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 1)


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(sources: Path, tmp_path: Path) -> None:
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 0)
    (sources / "inner.py").write_text(INNER.format(factor=3))
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (60, 0)
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (60, 1)
    (sources / "inner.py").write_text(INNER.format(factor=2))
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 1)


@pytest.mark.slow
def test_what_other_folders_have_counts_if_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel contains those that it calls and constants, which may lie in any folder, also at second hand."""
    monkeypatch.setattr(kernel_cache, "_KERNELS", tmp_path)
    modules = {
        "cpu/rows/rows.py": "from longwall.kernels.cpu.arcs.arcs import sum_of\n",
        "cpu/arcs/arcs.py": "from longwall.kernels.interface.limits import MOST\n",
        "interface/limits.py": "MOST = 1\n",
        "cpu/other/other.py": "MOST = 1\n",
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def stamp() -> str:
        kernel_cache._source.cache_clear()
        return kernel_cache._stamp.__wrapped__(tmp_path / "cpu" / "rows")

    try:
        before = stamp()
        for name in modules:
            (tmp_path / name).write_text(f"{modules[name]}# changed\n")
            assert (stamp() != before) == (name != "cpu/other/other.py"), name
            (tmp_path / name).write_text(modules[name])
        assert stamp() == before
    finally:
        kernel_cache._source.cache_clear()


@pytest.mark.slow
def test_the_same_kernels_in_another_folder_are_not_compiled_again(sources: Path, tmp_path: Path) -> None:
    assert call(sources, XDG_CACHE_HOME=tmp_path) == (40, 0)
    other = shutil.copytree(sources, tmp_path / "other" / sources.name)
    shutil.rmtree(sources)
    assert call(other, XDG_CACHE_HOME=tmp_path) == (40, 1)


def test_kernels_of_the_newest_states_of_the_sources_are_kept(tmp_path: Path) -> None:
    for number in range(12):
        for name in ("sources", "sources_of_others"):
            place = tmp_path / f"{name}_{number:016x}"
            place.mkdir()
            (place / "kernel.nbi").touch()
            os.utime(place, (number, number))
    kernel_cache._remove_old(tmp_path / f"sources_{11:016x}")
    assert {path.name for path in tmp_path.glob("sources_0*")} == {f"sources_{number:016x}" for number in range(4, 12)}
    assert len(list(tmp_path.glob("sources_of_others_*"))) == 12


@pytest.mark.slow
def test_a_full_disk_keeps_no_kernel_from_its_work(sources: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-B", "-c", CALL],
        cwd=sources,
        env=_cleared() | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.stdout.split() == ["40", "0"]


def run_without_cache(folder: Path, *words: str, **environment: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longwall", *words],
        cwd=folder,
        env=_cleared() | {"HOME": "/proc"} | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_commands_work_where_no_cache_can_be_written(tmp_path: Path) -> None:
    """As in a container whose user is a random number; it is said once."""
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    made = run_without_cache(tmp_path, "ingest", "graph.txt", "graph.zarr")
    assert made.returncode == 0, made.stderr
    (tmp_path / "run.toml").write_text('graph.path = "graph.zarr"\nworkload.kind = "triangles"\nengine.kind = "cpu"\n')
    done = run_without_cache(tmp_path, "run", "run.toml")
    assert done.returncode == 0, done.stderr
    assert "count    1\n" in done.stdout
    for said in (made.stderr, done.stderr):
        (line,) = (line for line in said.splitlines() if "compiled in every run" in line)
        assert "/proc/.cache" in line
        assert "XDG_CACHE_HOME" in line


@pytest.mark.slow
def test_a_folder_that_is_not_used_is_named(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    own = {"NUMBA_CACHE_DIR": shared, "XDG_CACHE_HOME": tmp_path / "own"}
    done = run_without_cache(tmp_path, "ingest", "graph.txt", "graph.zarr", **own)
    assert done.returncode == 0, done.stderr
    assert f"NUMBA_CACHE_DIR is not used for compiled kernels: {shared}: other users may write to it" in done.stderr
    assert not list(shared.iterdir())
    assert indices(tmp_path / "own")


def test_cupy_keeps_its_kernels_in_a_folder_of_the_user_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", _cleared() | {"XDG_CACHE_HOME": str(tmp_path)})
    device._place_cache.__wrapped__()
    assert os.environ["CUPY_CACHE_DIR"] == str(tmp_path / "longwall" / "cupy")
    assert "CUPY_CACHE_IN_MEMORY" not in os.environ
    shutil.rmtree(tmp_path / "longwall")
    (tmp_path / "longwall").touch()
    monkeypatch.setattr(private_folder, "_notes", {})
    device._place_cache.__wrapped__()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert "they cannot be kept" in private_folder.cache_notes()
