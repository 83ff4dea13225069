"""Arrays of a build that may outgrow memory: held while the host budget has room, in scratch files otherwise.

A `Scratch` and its arrays are changed by one thread; others may read. Files are written by a thread behind.

Reads pick any part of a file, so they check nothing. Instead each file has one CRC-32C, taken of what is written, and
is read once more when its array is dropped: whatever was made of a damaged file is given up before anyone sees it.
"""

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded, Reservation
from longwall.storage.memory.resources import Resources
from longwall.storage.system.concurrency import core_count, map_all

_LEAST_WORK, _WORK_A_CORE = 256 * 2**20, 128 * 2**20  # what `work` has where the budget has eight times as much
_WORK_SHARE = 0.75  # of the free host budget
_CHECKED = 2**18  # bytes read at a time to check a file
_COPIED = 2**22  # bytes copied at a time

Array = npt.NDArray[Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


def may_be_damage(error: BaseException | None) -> bool:
    """Whether an error is unexpected, and may come from a damaged file: then the user must learn of the damage."""
    return isinstance(error, Exception) and not isinstance(error, (InputError, RunError))


class Scratch:
    """The memory and the files of one build; a context manager that leaves neither behind.

    A part of the free host budget is reserved for buffers that come and go, `work`; the rest holds tables and, while
    there is room, scratch arrays.

    Parameters
    ----------
    resources
        Budgets, and the spill folder where scratch files go.
    what
        What the memory is for, for messages to the user.
    most_work
        Most bytes of `work`, if given; by the number of cores if not. Three quarters of what is free if that is less.

    Attributes
    ----------
    work
        Bytes for the temporaries of one step, less what is lent.
    spilled
        Bytes that were written to files.
    """

    def __init__(self, resources: Resources, what: str = "sorting the edges", most_work: int | None = None) -> None:
        self.host, self.disk, self.what = resources.host, resources.disk, what
        self.spilled = 0
        self._spill = resources.spill
        self._arrays: list[ScratchArray] = []
        self._reservations: list[Reservation] = []
        self._made = 0
        self._writer = ThreadPoolExecutor(1)
        self._cores = ThreadPoolExecutor(core_count())
        self._writing: Future[None] | None = None
        if most_work is None:
            most_work = max(_LEAST_WORK, min(_WORK_A_CORE * core_count(), self.host.free // 8))
        self._work = self.host.reserve(min(int(self.host.free * _WORK_SHARE), most_work), what)

    @property
    def work(self) -> int:
        """Bytes for the temporaries of one step, less what is lent."""
        return self._work.size

    def lend(self, size: int) -> Reservation:
        """Set a part of the work space aside, at most `size` bytes: it does not shrink until `take_back`."""
        return self._work.split(min(size, self._work.size))

    def take_back(self, part: Reservation) -> None:
        """Add what `lend` returned to the work space again; a second call has no effect."""
        self._work.join(part)

    @property
    def capacity(self) -> int:
        """Bytes that a table may take: what is free once everything is spilled, or else a part of the work space."""
        free = self.host.free + sum(array.held for array in self._arrays if not array.pinned)
        return max(free, self.work // 4)

    @property
    def most_capacity(self) -> int:
        """Bytes that `make_room` can make."""
        return self.host.free + sum(array.held for array in self._arrays if not array.pinned) + self._shrinkable

    @property
    def _shrinkable(self) -> int:
        return self._work.size * 7 // 8  # sorting continues, slower, with a small part of the work space

    def array(self, dtype: npt.DTypeLike) -> "ScratchArray":
        """Make an empty array."""
        self._made += 1
        array = ScratchArray(self, np.dtype(dtype), f"scratch-{os.getpid()}-{id(self):x}-{self._made}")
        self._arrays.append(array)
        return array

    def make_room(self, size: int) -> None:
        """Try to have a number of bytes free: scratch arrays go to their files, then the work space shrinks."""
        for array in self._arrays:
            if self.host.free >= size:
                return
            if not array.pinned:
                array.spill()
        lacking = size - self.host.free
        if 0 < lacking <= self._shrinkable:
            self._work.resize(self._work.size - lacking, self.what)

    def reserve(self, size: int, what: str) -> Reservation:
        """Make room and reserve it, until it is released or the build ends.

        Raises
        ------
        BudgetExceeded
            If there is no room even so.
        """
        self.make_room(size)
        reserved = self.host.reserve(size, what)
        self._reservations.append(reserved)
        return reserved

    def write(self, task: Callable[[], None]) -> None:
        """Let the writing thread do a task, once the one before is done; its errors come out of a later call."""
        self.settle()
        self._writing = self._writer.submit(task)

    def settle(self) -> None:
        """Wait until everything is written; raises what writing raised."""
        if self._writing is not None:
            self._writing.result()

    def wait(self) -> None:
        """Wait until nothing is being written, whether or not that succeeded."""
        if self._writing is not None:
            self._writing.exception()

    def copy(self, values: Array) -> Array:
        """Return a copy, made by all cores: most of the time goes into fresh memory."""
        out = np.empty_like(values)
        step = max(1, _COPIED // values.itemsize)

        def copy(start: int) -> None:
            out[start : start + step] = values[start : start + step]

        self.on_cores(copy, range(0, len(values), step))
        return out

    def on_cores(
        self, function: Callable[[Item], Result], items: Sequence[Item], threads: int | None = None
    ) -> list[Result]:
        """Return `function(item)` for every item, in order, from as many threads as there are cores, or fewer."""
        return map_all(self._cores, core_count() if threads is None else threads, function, items)

    def path(self, name: str) -> Path:
        """Return where the file of an array goes."""
        return self._spill.path / name

    @property
    def advice(self) -> str:
        """What to do where scratch files fail."""
        return self._spill.advice

    def forget(self, array: "ScratchArray") -> None:
        """Take an array off the list of those that can be spilled."""
        if array in self._arrays:
            self._arrays.remove(array)

    def close(self) -> None:
        """Drop all arrays, unchecked, and release the memory."""
        self._writer.shutdown()
        self._cores.shutdown()
        self._writing = None
        for array in list(self._arrays):
            array.discard()
        for reserved in self._reservations:
            reserved.release()
        self._work.release()

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None or may_be_damage(error):
                for array in self._arrays:
                    array.check()
        finally:
            self.close()


class ScratchArray:
    """A one-dimensional array that grows at its end; see `Scratch.array`.

    Its segments are in memory or in its file.

    Attributes
    ----------
    pinned
        Whether what is in memory has to stay there.
    """

    def __init__(self, scratch: Scratch, dtype: np.dtype[Any], name: str) -> None:
        self.dtype = dtype
        self.pinned = False
        self._scratch = scratch
        self._name = name
        self._starts: list[int] = []
        self._segments: list[Array | int] = []  # in memory, or the offset in the file
        self._held: dict[int, Reservation] = {}
        self._length = 0
        self._file: int | None = None
        self._written = 0
        self._checksum = 0

    def __len__(self) -> int:
        return self._length

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return sum(reserved.size for reserved in self._held.values())

    @property
    def is_whole(self) -> bool:
        """Whether everything is contiguous in memory, so that reading copies nothing."""
        return len(self._segments) == 1 and bool(self._held)

    def append(self, values: Array) -> None:
        """Add `values`, which must not change any more, at the end.

        Raises
        ------
        RunError
            If they fit neither in memory nor on the disk.
        """
        if len(values) == 0:
            return
        try:
            reserved = self._scratch.host.reserve(values.nbytes, "scratch space")
        except BudgetExceeded:
            self._add(self._write(values), len(values))
        else:
            self._held[len(self._segments)] = reserved
            self._add(self._scratch.copy(values), len(values))

    def adopt(self, values: Array, reserved: Reservation) -> None:
        """Add `values` at the end without a copy; they and their reservation belong to this array from now on."""
        self._held[len(self._segments)] = reserved
        self._add(values, len(values))

    def shrink(self, change: Callable[[Array], int]) -> None:
        """Let the only segment, in memory, be changed in place, and keep as many items as `change` returns."""
        (segment,) = self._segments
        assert not isinstance(segment, int)
        self._length = change(segment)
        self._segments = [segment[: self._length]]

    def _add(self, segment: Array | int, length: int) -> None:
        self._starts.append(self._length)
        self._segments.append(segment)
        self._length += length

    def read(self, start: int, stop: int) -> Array:
        """Return items `start` to `stop`: a view where they are contiguous, else a copy. Not to be changed."""
        at = bisect_right(self._starts, start) - 1
        segment = self._segments[at] if start < stop else np.empty(0, self.dtype)
        if not isinstance(segment, int):
            first = self._starts[at] if start < stop else start
            if stop <= first + len(segment):
                return segment[start - first : stop - first]
        out = np.empty(stop - start, self.dtype)
        while start < stop:
            first, segment = self._starts[at], self._segments[at]
            end = min(stop, self._starts[at + 1] if at + 1 < len(self._starts) else self._length)
            part = out[len(out) - (stop - start) :][: end - start]
            if isinstance(segment, int):
                self._load(segment + (start - first) * self.dtype.itemsize, part)
            else:
                part[:] = segment[start - first : end - first]
            start, at = end, at + 1
        return out

    def tables(self, memory: int) -> Iterator[tuple[int, Array]]:
        """Yield (start, items from there on): everything at once where it is contiguous in memory, else in copies.

        The copies have at most `memory` bytes.
        """
        size = max(1, self._length if self.is_whole else memory // self.dtype.itemsize)
        for start in range(0, self._length, size):
            yield start, self.read(start, min(start + size, self._length))

    def gather(self) -> None:
        """Bring everything together in memory, if there is room."""
        size = self._length * self.dtype.itemsize
        if len(self._segments) <= 1 or self._scratch.capacity < size:
            return
        reserved = self._scratch.reserve(size, "a table")
        values = self.read(0, self._length)
        self.check()
        self._release()
        self.adopt(values, reserved)

    def spill(self) -> None:
        """Write to the file what is in memory, and release the memory."""
        for at in sorted(self._held):
            segment = self._segments[at]
            assert not isinstance(segment, int)
            self._segments[at] = self._write(segment)
            self._scratch.settle()
            del segment
            self._held.pop(at).release()

    def check(self) -> None:
        """Check that the file, if there is one, still holds what was written.

        Raises
        ------
        RunError
            If it does not: nothing that was made of the array is to be used.
        """
        if self._file is None:
            return
        from google_crc32c import extend

        self._scratch.settle()
        checksum = 0
        buffer = np.empty(_CHECKED, np.uint8)
        for start in range(0, self._written, len(buffer)):
            part = buffer[: self._written - start]
            self._load(start, part)
            checksum = extend(checksum, part)
        if checksum != self._checksum:
            raise RunError(
                f"{self._scratch.path(self._name)}: the scratch file holds something else than what was written: "
                f"check the disk, then try again, or {self._scratch.advice}"
            )

    def drop(self) -> None:
        """Check the file, then free it and the memory; more than once does no harm.

        Raises
        ------
        RunError
            As `check`.
        """
        self.check()
        self.discard()

    def discard(self) -> None:
        """Free memory and file without a check; more than once does no harm."""
        self._release()
        self._scratch.forget(self)

    def _release(self) -> None:
        for reserved in self._held.values():
            reserved.release()
        self._held.clear()
        self._segments.clear()
        self._starts.clear()
        self._length = 0
        if self._file is not None:
            self._scratch.wait()
            os.close(self._file)
            self._file = None
            self._scratch.path(self._name).unlink(missing_ok=True)
            self._scratch.disk.charge(-self._written, "")
            self._written = self._checksum = 0

    def _write(self, values: Array) -> int:
        """Append to the file, soon, and return the offset."""
        scratch, at = self._scratch, self._written
        path = scratch.path(self._name)
        try:
            if self._file is None:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        scratch.disk.charge(values.nbytes, scratch.what)
        self._written += values.nbytes
        scratch.spilled += values.nbytes
        file, whole = self._file, np.ascontiguousarray(values).view(np.uint8)

        def write() -> None:
            from google_crc32c import extend

            self._checksum = extend(self._checksum, whole)
            rest, done, began = whole.data, 0, time.perf_counter()
            try:
                while done < len(rest):
                    done += os.pwrite(file, rest[done:], at + done)
            except OSError as error:
                raise self._unwritable(error) from error
            scratch.disk.add_writing(done, time.perf_counter() - began)

        scratch.write(write)
        return at

    def _load(self, offset: int, out: Array) -> None:
        assert self._file is not None
        self._scratch.settle()
        rest = out.data.cast("B")
        while rest:
            try:
                done = os.preadv(self._file, [rest], offset)
            except OSError as error:
                done, reason = 0, error.strerror or str(error)
            else:
                reason = "it ends early"
            if done == 0:
                raise RunError(
                    f"{self._scratch.path(self._name)}: the scratch file cannot be read ({reason}): "
                    f"check the disk, or {self._scratch.advice}"
                )
            offset, rest = offset + done, rest[done:]

    def _unwritable(self, error: OSError) -> RunError:
        return RunError(
            f"{self._scratch.path(self._name).parent}: scratch files cannot be written "
            f"({error.strerror or error}): free space there, {self._scratch.advice}"
        )
