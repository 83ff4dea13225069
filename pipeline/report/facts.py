"""The facts of a run that its report shows, as plain data, without pictures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from longwall.pipeline.report.plots import Span
from longwall.pipeline.report.record import MOST_PATTERNS

if TYPE_CHECKING:
    from longwall.pipeline.report.record import Heat, RunRecord

_RANGES = "ranges of "  # and a worker, in the metrics
_METHOD = "method "  # and a method, in the metrics
_NO_STAGES = ("device memory",)
_MOST_LEVELS = 40
_MOST_SPANS = 24
_MOST_LOADS = 64
_VALUE_BYTES, _OFFSET_BYTES = 4, 8  # of a node of a table of embeddings; those of the last level have no offset
TIERS = {"device": "GPU memory", "host": "Main memory", "disk": "Disk"}
"""What the budgets are of."""


class Level(NamedTuple):
    """What a stage did at a level of the search; figures that a run does not have are None."""

    stage: str
    level: int
    rows_in: int | None
    rows_out: int | None
    seconds: float
    bytes: int | None
    tasks: int
    predicted: float | None
    predicted_bytes: float | None

    @property
    def name(self) -> str:
        """Stage and level."""
        return f"{self.stage}, level {self.level}" if self.level else self.stage


class Tier(NamedTuple):
    """A budget and how much of it was reserved."""

    key: str
    limit: int | None
    peak: int
    at: list[float]
    used: list[float]
    process: Sequence[float] = ()
    """Bytes of main memory that the process had at these times."""
    process_peak: int | None = None

    @property
    def name(self) -> str:
        """What it is of."""
        return TIERS[self.key]

    @property
    def in_use(self) -> int:
        """Bytes that were in use at most: of the process if they are known, else those that were reserved."""
        return self.process_peak or self.peak


class Load(NamedTuple):
    """What a worker did."""

    worker: str
    seconds: float
    tasks: int


class Files(NamedTuple):
    """A table of results, in one file or several."""

    name: str
    number: int
    rows: int
    bytes: int


class Facts(NamedTuple):
    """What a report says of a run."""

    where: str
    name: str
    status: str
    reason: str
    workload: str
    asked: dict[str, Any]
    command: str
    started: str
    seconds: float | None
    total_seconds: float | None
    resumed: int
    progress: list[tuple[str, int, int]]
    total: int | None
    lower_bound: bool
    answer: list[dict[str, Any]]
    patterns: int
    files: list[Files]
    graph: dict[str, Any]
    engine: str
    plan: dict[str, Any]
    methods: dict[str, int]
    plan_text: str
    levels: list[Level]
    parts: list[Span]
    seconds_of: dict[str, float]
    """Of each part of the run without the kernels that were compiled in it, and of these ("compile")."""
    phases: list[Span]
    phases_left_out: int
    tiers: list[Tier]
    written: tuple[int, float]
    access: str
    loads: list[Load]
    heat: Heat | None
    notes: list[str]
    machine: dict[str, str]
    versions: dict[str, str]

    @property
    def whole(self) -> bool:
        """Whether the run did all that there was to do, so that its figures can be held against predictions."""
        return self.status == "done" and not self.lower_bound

    @property
    def resume(self) -> str:
        """The command that goes on with the run."""
        return shlex.join(["longwall", "resume", self.where])


def facts_of(record: RunRecord) -> Facts:
    """Return the facts of a run.

    Raises
    ------
    ValueError, TypeError, KeyError, AttributeError
        If its manifest was changed by others.
    """
    manifest, history = record.manifest, record.history
    memory = manifest.get("memory", {})
    results = manifest.get("results", {})
    counts = _counts(record)
    asked = _flat(record.config)
    disk = memory.get("disk", {})
    plan = manifest.get("plan", {})
    notes = [str(note["text"]) for note in history.get("notes", [])]
    rows = results.get("counts.parquet", {}).get("rows", len(counts))
    return Facts(
        where=record.where,
        name=str(asked.get("run.name") or record.where.rstrip("/").rpartition("/")[2]),
        status=str(manifest["status"]),
        reason=str(manifest.get("reason", "")),
        workload=str(manifest.get("workload", "")),
        asked=asked,
        command=shlex.join(map(str, manifest.get("argv", []))),
        started=str(manifest.get("started", "")),
        seconds=_seconds(manifest, history),
        total_seconds=_total_seconds(manifest),
        resumed=len(manifest.get("resumed", [])),
        progress=[(str(name), int(done), int(total)) for name, done, total in record.progress],
        total=_total(counts, rows, asked),
        lower_bound=bool(manifest.get("truncated")),
        answer=counts,
        patterns=int(rows),
        files=_files(results),
        graph=manifest.get("graph", {}),
        engine=_engine(manifest),
        plan=plan,
        methods={str(name): int(number) for name, number in (manifest.get("methods") or {}).items()},
        plan_text=str(manifest.get("plan_text", "")),
        levels=_levels(record.metrics, plan),
        parts=_spans(history.get("parts", []), "part") or _parts(manifest),
        seconds_of=_seconds_of(history.get("parts", [])) or dict(manifest.get("timings", {})),
        phases=_longest(_spans(history.get("phases", []), "bar")),
        phases_left_out=max(len(history.get("phases", [])) - _MOST_SPANS, 0) + history.get("phases_left_out", 0),
        tiers=_tiers(memory, history),
        written=(disk.get("written", 0), disk.get("seconds", 0.0)),
        access=str(memory.get("graph", {}).get("access", "")) if "device" in memory else "",
        loads=_loads(record),
        heat=record.heat,
        notes=list(dict.fromkeys(notes)),
        machine={str(name): str(text) for name, text in manifest.get("machine", {}).items()},
        versions={str(name): str(text) for name, text in manifest.get("versions", {}).items()},
    )


def _files(results: Mapping[str, Any]) -> list[Files]:
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for name, facts in sorted(results.items()):
        stem, _, rest = str(name).partition("-")
        tables.setdefault(f"{stem}-*.parquet" if rest else stem, []).append(facts)
    return [
        Files(name, len(files), sum(file["rows"] for file in files), sum(file["bytes"] for file in files))
        for name, files in tables.items()
    ]


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``section.key`` and its value, for all keys of a config."""
    found: dict[str, Any] = {}
    for section, keys in config.items():
        if isinstance(keys, Mapping):
            found |= {f"{section}.{key}": value for key, value in keys.items()}
    return found


def _seconds(manifest: Mapping[str, Any], history: Mapping[str, Any]) -> float | None:
    if "seconds" in history:
        return float(history["seconds"])
    began = (manifest.get("resumed") or [manifest.get("started")])[-1]
    try:
        return (datetime.fromisoformat(manifest["finished"]) - datetime.fromisoformat(began)).total_seconds()
    except (KeyError, TypeError, ValueError):
        return None


def _total_seconds(manifest: Mapping[str, Any]) -> float | None:
    """Return the seconds of all attempts of a run that was resumed."""
    attempts = manifest.get("attempt_seconds", []) if manifest.get("resumed") else []
    return sum(map(float, attempts)) if attempts else None


def _counts(record: RunRecord) -> list[dict[str, Any]]:
    """Return the first rows of the answer; what an algorithm of one's own returned is in the history only."""
    values = record.history.get("values", [])
    return [
        row | {"value": values[at] if at < len(values) else None}
        for at, row in enumerate(record.counts[:MOST_PATTERNS])
    ]


def _total(counts: list[dict[str, Any]], rows: int, asked: Mapping[str, Any]) -> int | None:
    """Return the answer where it is one number."""
    kind = asked.get("workload.kind")
    if not counts or rows > len(counts) or any(one["value"] is not None for one in counts):
        return None
    if kind in ("motifs", "frequent", "transactions") or any(one.get("name") for one in counts):
        return None
    numbers = [one["count"] for one in counts if isinstance(one.get("count"), int)]
    return sum(numbers) if len(numbers) == len(counts) else None


def _engine(manifest: Mapping[str, Any]) -> str:
    engine = manifest.get("engine", {})
    device = engine.get("device")
    return f"{engine.get('name', '')} ({device})" if device else str(engine.get("name", ""))


def _levels(metrics: list[dict[str, Any]], plan: Mapping[str, Any]) -> list[Level]:
    """Return the sums of the metrics by stage and level, with what was predicted."""
    sums: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in metrics:
        if not str(row["stage"]).startswith((_RANGES, _METHOD)) and row["stage"] not in _NO_STAGES:
            sums.setdefault((str(row["stage"]), int(row["level"])), []).append(row)
    estimated = _estimated(plan)
    written = [level for (_, level), rows in sums.items() if any(row["bytes"] for row in rows)]
    levels = []
    for (stage, level), rows in list(sums.items())[:_MOST_LEVELS]:
        sampled = [row["predicted"] for row in rows if row["predicted"] is not None]
        predicted = sum(sampled) if sampled else estimated.get(level)
        size = _total_of(rows, "bytes")
        node = _VALUE_BYTES + (_OFFSET_BYTES if level < max(written, default=0) else 0)
        levels.append(
            Level(
                stage,
                level,
                _total_of(rows, "rows_in"),
                _total_of(rows, "rows_out"),
                sum(row["seconds"] or 0.0 for row in rows),
                size,
                sum(row["tasks"] or 0 for row in rows),
                predicted,
                predicted * node if predicted and size else None,
            )
        )
    return levels


def _total_of(rows: list[dict[str, Any]], name: str) -> int | None:
    figures = [row[name] for row in rows]
    return None if None in figures else sum(figures)


def _estimated(plan: Mapping[str, Any]) -> dict[int, float]:
    """Return the rows that the planner expected of each level, over all searches of a plan."""
    found: dict[int, float] = {}
    for part in plan.get("patterns") or [plan]:
        if isinstance(part, Mapping):
            for level, rows in enumerate(part.get("estimated_rows") or []):
                if level:
                    found[level] = found.get(level, 0.0) + rows
    return found


def _spans(found: list[dict[str, Any]], style: str) -> list[Span]:
    return [Span(str(one["name"]), float(one["begin"]), float(one["end"]), style) for one in found]


def _seconds_of(parts: list[dict[str, Any]]) -> dict[str, float]:
    """Return how long each part of a history took; a part that was compiled in is shorter by that."""
    compiled = sum(float(one.get("compile", 0)) for one in parts)
    found: dict[str, float] = {"compile": compiled} if compiled else {}
    for one in parts:
        seconds = float(one["end"]) - float(one["begin"]) - float(one.get("compile", 0))
        found[str(one["name"])] = found.get(str(one["name"]), 0.0) + seconds
    return found


def _parts(manifest: Mapping[str, Any]) -> list[Span]:
    """Return the parts of a run without a history, one after another."""
    spans, at = [], 0.0
    for name, took in manifest.get("timings", {}).items():
        spans.append(Span(str(name), at, at + took, "part"))
        at += took
    return spans


def _longest(spans: list[Span]) -> list[Span]:
    """Return the phases that took longest, in the order in which they ran."""
    kept = sorted(spans, key=lambda span: span.begin - span.end)[:_MOST_SPANS]
    return sorted(kept, key=lambda span: span.begin)


def _tiers(memory: Mapping[str, Any], history: Mapping[str, Any]) -> list[Tier]:
    samples = history.get("memory", {})
    used, at = samples.get("used", {}), [float(one) for one in samples.get("seconds", [])]
    tiers = []
    for key in TIERS:
        if key in memory or key in used:
            facts, of_tier = memory.get(key, {}), [float(one) for one in used.get(key, [])]
            peak = max([int(facts.get("peak") or 0), *map(int, of_tier)])
            tier = Tier(key, facts.get("limit"), peak, at if of_tier else [], of_tier)
            if key == "host" and samples.get("process_peak"):
                process = [float(one) for one in samples.get("process", [])] if of_tier else []
                tier = tier._replace(process=process, process_peak=int(samples["process_peak"]))
            tiers.append(tier)
    return tiers


def _loads(record: RunRecord) -> list[Load]:
    """Return what each thread of the process, or each worker of the cluster, did."""
    found: dict[str, Load] = {}
    rows = [
        (str(row["stage"]).removeprefix(_RANGES), row["seconds"], row["tasks"])
        for row in record.metrics
        if str(row["stage"]).startswith(_RANGES)
    ]
    threads = [(one["worker"], one["seconds"], one["tasks"]) for one in record.history.get("loads", [])]
    for worker, took, tasks in threads or rows:
        before = found.get(worker, Load(worker, 0.0, 0))
        found[worker] = Load(worker, before.seconds + (took or 0.0), before.tasks + (tasks or 0))
    return [found[worker] for worker in sorted(found, key=_natural)][:_MOST_LOADS]


def _natural(worker: str) -> tuple[str, int]:
    name, _, number = worker.rpartition(" ")
    return (name, int(number)) if number.isdecimal() else (worker, 0)
