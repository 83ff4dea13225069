"""What all functions share: their options, and a run that is not kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from longwall.kernels.jit.compile_notice import noticed_compiling
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.inputs import thread_note
from longwall.pipeline.progress.slow_notice import SlowNotice
from longwall.pipeline.run import answer
from longwall.storage.errors import FinalError, InputError, RunError, reason_of
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.data_notes import warn_caller, warn_of
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.observer import Observer
from longwall.storage.system.arguments import require_methods, type_name

if TYPE_CHECKING:
    from longwall.pipeline.execution.rows.row_stream import RowStream
    from longwall.pipeline.result import Result
    from longwall.storage.ingest.data_notes import Noted


class Options(TypedDict, total=False):
    """What every function takes besides its own arguments; all have a default."""

    engine: Literal["cpu", "cuda", "both", "auto"]
    """``"auto"`` by default, as `engine.kind` of a config."""
    threads: int
    """CPU threads; 0 (the default): one per core."""
    memory: str | int | None
    """Host memory: a size such as ``"4GiB"``, or bytes; by default a share of what is free."""
    device_memory: str | int | None
    """Memory of the GPU, in the same way."""
    disk: str | int | None
    """Bytes of files for what does not fit `memory`, in the same way."""
    spill: str | Path
    """Folder for these files and for what the function works with, ``"spill"`` by default; nothing is left in it."""
    progress: bool | Observer
    """True: show the progress as the command line does; or an observer of one's own. By default a call shows one line
    if it compiles kernels for some seconds, and one if it takes half a minute."""


DEFAULTS: Options = {
    "engine": "auto",
    "threads": 0,
    "memory": None,
    "device_memory": None,
    "disk": None,
    "spill": "spill",
    "progress": False,
}
_WORDS = {
    "workload.pattern_labels": "labels",
    "workload.min_support": "support",
    "workload.support": "measure",
    "workload.": "",
    "memory.host": "memory",
    "memory.device": "device_memory",
    "memory.disk": "disk",
    "memory.spill": "spill",
    "engine.kind": "engine",
    "engine.threads": "threads",
    "export.limit": "limit",
    "graph.labels": "labels with longwall.graph(graph, labels=...)",
}
"""Keys of configs -> what the functions call them."""
_KEY = re.compile("|".join(rf"(?<![\w.]){re.escape(key)}" + (r"\b" if key[-1] != "." else "") for key in _WORDS))


@dataclass(frozen=True)
class Question:
    """What a function asks: a config without a place for the run, and who watches it."""

    graph: Graph | str
    """In memory, or a path."""
    sections: Mapping[str, Mapping[str, Any]]
    spec: RunSpec
    """The same, checked."""
    progress: bool | Observer
    hint: str = ""
    """What would make it shorter, for a user who waits."""

    @classmethod
    def of(
        cls, graph: Any, workload: Mapping[str, Any], options: Options, *, limit: int | None = None, hint: str = ""
    ) -> Question:
        """Check what does not depend on the graph, and make a graph of what is given as one.

        Parameters
        ----------
        graph
            A graph, a path, or anything that `longwall.graph` takes.
        workload
            The section of the config; None stands for the default of a key.
        options
            Of the call.
        limit
            Rows that are wanted.
        hint
            See `Question`.

        Raises
        ------
        InputError
            If something is wrong.
        """
        chosen = DEFAULTS | options
        progress = chosen["progress"]
        if not isinstance(progress, bool):
            methods = ("phase", "advance", "note", "close")
            require_methods("progress", progress, methods, f"True, False, or an object with {', '.join(methods)}")
        sections = {
            "workload": dict(workload),
            "engine": {"kind": chosen["engine"], "threads": chosen["threads"]},
            "memory": {
                "host": chosen["memory"],
                "device": chosen["device_memory"],
                "disk": chosen["disk"],
                "spill": chosen["spill"],
            },
            "export": {"limit": limit},
        }
        with in_words_of_calls():
            source = graph if isinstance(graph, Graph | str | os.PathLike) else _graph_of(graph)
            source = os.fspath(source) if isinstance(source, os.PathLike) else source
            return cls(source, sections, load_config(_config(source, sections)), progress, hint)

    def config(self, **changed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config, with other keys in some of its sections."""
        sections = {name: {**keys, **changed.get(name, {})} for name, keys in self.sections.items()}
        return _config(self.graph, {**changed, **sections})

    def with_absolute_paths(self) -> Question:
        """Return the question with absolute paths: a program may change its working folder before it asks for rows."""
        spec, graph = self.spec.with_absolute_paths(), self.graph
        workload = {key: getattr(spec.workload, key) for key in self.sections["workload"]}
        sections = {**self.sections, "workload": workload}
        return replace(
            self, spec=spec, sections=sections, graph=graph if isinstance(graph, Graph) else str(spec.graph.path)
        )

    def __reduce__(self) -> Any:  # pickle finds no class of `spec` by name: it is made at run time
        return _again, (self.graph, self.sections, self.progress, self.hint)

    def observer(self) -> Observer:
        """Return what receives the progress."""
        if not isinstance(self.progress, bool):
            return self.progress
        if not self.progress:
            return SlowNotice(self.hint)
        from longwall.pipeline.progress.observers import choose_observer

        return choose_observer(quiet=False)

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context that writes a line about kernels that take long to compile, if no progress is shown."""
        return nullcontext() if self.progress else noticed_compiling()

    def ask(
        self, folder: SpillFolder, observer: Observer, rows: RowStream | None, **changed: Mapping[str, Any]
    ) -> Result:
        """Run; tables of the result are in a folder, but the rows of a listing go to `rows`, unless that is None.

        Raises
        ------
        InputError, RunError, KeyboardInterrupt
            As `longwall.run`; there is nothing to resume.
        """
        with in_words_of_calls():
            spec = load_config(self.config(**changed)) if changed else self.spec
            try:
                return answer(spec, folder, observer, rows)
            except FinalError:
                raise
            except RunError as error:  # without the advice to resume the run
                raise RunError(reason_of(error.__cause__ or error)) from error.__cause__
            except KeyboardInterrupt:
                raise KeyboardInterrupt from None

    def warn(self, notes: Sequence[Noted]) -> None:
        """Warn of too many threads, and of the notes of a graph in a file: one in memory had its warnings when made."""
        if self.progress is False and (note := thread_note(self.spec)):
            warn_caller(UserWarning(_in_words_of_calls(note)))
        if not isinstance(self.graph, Graph):
            warn_of(self.graph, notes)

    @contextmanager
    def answered(self, **changed: Mapping[str, Any]) -> Iterator[Result]:
        """Run, and remove its tables in the end."""
        with SpillFolder(self.spec.memory.spill) as folder:
            result = self.ask(folder, self.observer(), None, **changed)
            self.warn(result.notes)
            yield result


def _again(graph: Graph | str, sections: Mapping[str, Any], progress: bool | Observer, hint: str) -> Question:
    return Question(graph, sections, load_config(_config(graph, sections)), progress, hint)


def _config(graph: Graph | str, sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a config of sections, with the report switched off."""
    return {"graph": graph if isinstance(graph, Graph) else {"path": graph}, "run": {"report": False}, **sections}


def _graph_of(source: Any) -> Graph:
    from longwall.storage.ingest.objects.graph_of import graph

    try:
        return graph(source)
    except InputError as error:
        raise InputError(re.sub("^source:", "graph:", str(error))) from None


@contextmanager
def in_words_of_calls() -> Iterator[None]:
    """Let messages name arguments of the functions, not keys of a config."""
    try:
        yield
    except InputError as error:
        raise InputError(_in_words_of_calls(str(error))) from error.__cause__
    except FinalError as error:
        raise FinalError(_in_words_of_calls(str(error))) from error.__cause__
    except RunError as error:
        raise RunError(_in_words_of_calls(str(error))) from error.__cause__


def _in_words_of_calls(text: str) -> str:
    lines = (_KEY.sub(lambda key: _WORDS[key[0]], line.removeprefix("config: ")) for line in text.splitlines())
    return "\n".join(lines)


def number(found: int | None) -> int:
    """Return the answer of a run that answers by one number."""
    assert found is not None, "one number answers"
    return found


def require_whole(name: str, value: object, least: int) -> None:
    """Refuse an argument that is no whole number, or too small a one (InputError)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}: expected a whole number from {least} up, not {type_name(value)}")
    if value < least:
        raise InputError(f"{name}: must be at least {least}, not {value}")
