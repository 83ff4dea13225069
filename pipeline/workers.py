"""Run independent tasks on the threads of an engine; the answer does not depend on how they are dealt out."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from longwall.kernels.engine import ScratchTooLarge
from longwall.pipeline.context import RunContext
from longwall.storage.errors import RunError
from longwall.storage.sizes import round_size

_POLL_SECONDS = 0.1

Worker = TypeVar("Worker")


class Task(NamedTuple):
    """A range of roots, and how large it is: the unit of progress."""

    first: int
    last: int
    size: int


def ranges(total: int, pieces: int) -> list[Task]:
    """Cut 0 to total - 1 into about `pieces` ranges of equal length."""
    step = max(-(-total // max(pieces, 1)), 1)
    return [Task(first, min(first + step, total), min(step, total - first)) for first in range(0, total, step)]


def run_tasks(
    context: RunContext,
    tasks: Sequence[Task],
    workers: int,
    make_worker: Callable[[int], Worker],
    work: Callable[[Worker, int, int], int],
) -> tuple[int, list[Worker]]:
    """Run every task once and add up what they give.

    Parameters
    ----------
    context
        The run: its observer sees every finished task, its cancel event stops the rest.
    tasks
        Ranges of roots.
    workers
        Number of threads.
    make_worker
        Makes the scratch of the worker with that number, in the worker's thread.
    work
        Does one task with a worker's scratch; gives a number.

    Returns
    -------
    total : int
        The sum over all tasks, exact whatever its size.
    scratch : list
        What `make_worker` gave.

    Raises
    ------
    RunError
        If the scratch of a worker does not fit the budget, or a count does not fit 64-bit integers.
    Exception
        Whatever else a worker raised first; the other workers are stopped.
    """
    queue: Iterator[Task] = iter(tasks)
    lock = threading.Lock()
    totals: list[int] = []
    scratch: list[Worker] = []
    failures: list[BaseException] = []

    def loop(number: int) -> None:
        try:
            own = make_worker(number)
            with lock:
                scratch.append(own)
            subtotal = 0
            while not context.cancel.is_set():
                with lock:
                    task = next(queue, None)
                if task is None:
                    break
                subtotal += work(own, task.first, task.last)
                context.observer.advance(task.size)
            with lock:
                totals.append(subtotal)
        except BaseException as failure:  # handed to the main thread below
            failures.append(failure)
            context.cancel.set()
            context.engine.interrupt()

    threads = [threading.Thread(target=loop, args=(i,), daemon=True) for i in range(max(1, min(workers, len(tasks))))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
    except BaseException:
        context.cancel.set()
        context.engine.interrupt()
        for thread in threads:
            thread.join()
        raise
    if failures:
        raise _explained(failures[0])
    return sum(totals), scratch


def _explained(failure: BaseException) -> BaseException:
    """What engines raise, as the sentence that a user reads; anything else as it is."""
    if isinstance(failure, ScratchTooLarge):
        return RunError(
            f"a worker needs {round_size(failure.needed)} of scratch memory, more than its share of the budget: "
            "raise memory.host (or memory.device), or lower engine.threads"
        )
    return RunError(str(failure)) if isinstance(failure, OverflowError) else failure
