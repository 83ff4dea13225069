"""A Dask cluster on this machine whose workers pass for machines of their own, and the memory that each takes."""

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_KIB = 1024


class SmallMachines:
    """A scheduler, and workers that each listen at a loopback address of their own; a context manager.

    Longwall takes workers at different addresses for workers of different machines: each opens the graph by itself.

    Parameters
    ----------
    folder
        The folder for files of the scheduler and the workers.
    workers, threads
        The number of workers, and of the threads of each.

    Attributes
    ----------
    address
        The address of the scheduler.
    """

    def __init__(self, folder: Path, workers: int, threads: int):
        self._folder, self._file = folder, folder / "scheduler.json"
        self._scheduler = self._start(
            "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._file), "--host", "127.0.0.1"
        )
        until = time.monotonic() + _START_SECONDS
        while not (self._file.exists() and self._file.read_text().endswith("}")):
            if time.monotonic() > until:
                raise RuntimeError("the scheduler has not come")
            time.sleep(_LOOK_SECONDS)
        self.address: str = json.loads(self._file.read_text())["address"]
        plain = ("--nthreads", str(threads), "--no-dashboard", "--memory-limit", "0", "--no-nanny")
        self._workers = [
            self._start(
                *("worker", self.address, *plain, "--host", f"127.0.0.{2 + number}"),
                *("--local-directory", str(folder)),
            )
            for number in range(workers)
        ]
        self._most: dict[int, dict[str, int]] = {one.pid: {} for one in self._workers}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    def most(self) -> list[dict[str, int]]:
        """Return the most bytes of each worker: its resident memory, its anonymous memory, and its pages of files.

        Returns
        -------
        list of dict
            ``"VmHWM"``, ``"RssAnon"`` and ``"RssFile"`` (the last two sampled every 20 ms); ``"read"``: bytes that the
            worker has read from files, also from the page cache; and ``"ticks"`` of the processor, of which a second
            has ``os.sysconf("SC_CLK_TCK")``.
        """
        return [dict(one) for one in self._most.values()]

    def __enter__(self) -> "SmallMachines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._looking.join()
        for one in (*self._workers, self._scheduler):
            one.kill()
            one.wait()

    def _start(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        with (self._folder / "noise.txt").open("ab") as noise:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=noise, stderr=noise, cwd=self._folder)

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            for pid, most in self._most.items():
                with suppress(OSError):
                    now = _numbers(f"/proc/{pid}/status", _KIB) | {"read": _numbers(f"/proc/{pid}/io", 1)["rchar"]}
                    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                    now["ticks"] = int(user) + int(system)
                    for name in ("VmHWM", "RssAnon", "RssFile", "read", "ticks"):
                        most[name] = max(most.get(name, 0), now.get(name, 0))


def _numbers(path: str, unit: int) -> dict[str, int]:
    with Path(path).open(encoding="ascii", errors="replace") as file:
        pairs = (line.split()[:2] for line in file)
        return {pair[0].rstrip(":"): unit * int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
