"""Read the files of a run's checkpoint, wherever they are: in its folder, or at its URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.run_store.commit_log import checkpoint_bytes


@contextmanager
def opened(context: Environment, file: dict[str, Any]) -> Iterator[Path]:
    """Have a file that is in a commit here for a while.

    Of one that is only at the URL that is a copy, which the disk's account has meanwhile.

    Raises
    ------
    RunError
        If it cannot be copied; what is raised while the copy is in use names the URL.
    """
    path, mirror = context.checkpoint.folder.parent / file["name"], context.checkpoint.mirror
    if mirror is None or path.exists():
        yield path
        return
    with mirror.fetched(
        file["name"], checkpoint_bytes([file]), context.checkpoint.folder, context.resources.disk
    ) as copy:
        yield copy
