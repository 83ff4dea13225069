"""What a report warns of, and what it says would make the next run faster."""

from __future__ import annotations

from collections.abc import Iterator

from longwall.pipeline.report import numbers
from longwall.pipeline.report.facts import Facts, Load

_FULL = 0.9  # of a budget; of main memory the process must have had as much, too
_SKEWED = 1.5  # times the mean, of the busiest worker
_LEAST_SECONDS = 1.0  # of a run that is worth advice
_SLOW_DISK = 100 * 2**20  # bytes a second
_MUCH_SPILLED = 2**20
_MEASURABLE = 2**26  # bytes that are enough to say how fast a disk is
_SHARE = 0.25  # of the run, that a part of it takes which could be saved
_WRONG = 10.0  # times too many rows, or too few, were predicted
_HUB = 0.25  # of the vertices, that one is adjacent to
_LOCKED = ("adaptive", "zero-copy")


def skew_of(loads: list[Load]) -> float:
    """Return how many times the mean of all workers the busiest one worked."""
    busy = [load.seconds for load in loads]
    return max(busy) * len(busy) / sum(busy) if busy and sum(busy) > 0 else 1.0


def _uneven(loads: list[Load]) -> bool:
    """Return whether one worker was busy for long, and much longer than the mean of all."""
    return len(loads) > 1 and skew_of(loads) > _SKEWED and max(load.seconds for load in loads) > _LEAST_SECONDS


def warnings_of(facts: Facts) -> list[str]:
    """Return what a reader should know before the figures are taken at their word."""
    return [*_memory_warnings(facts), *_work_warnings(facts)]


def _memory_warnings(facts: Facts) -> Iterator[str]:
    written, took = facts.written
    if written >= _MUCH_SPILLED:
        yield f"Spilled: {numbers.size(written)} were written to memory.spill; memory.host had no room for them."
        if written >= _MEASURABLE and took > 0 and written / took < _SLOW_DISK:
            yield (
                f"Slow disk: what was spilled was written at {numbers.size(written / took)} a second; fast disks take "
                "more than 1 GiB."
            )
    for tier in facts.tiers:
        if tier.limit and min(tier.peak, tier.in_use) > _FULL * tier.limit:
            yield (
                f"{tier.name} was nearly full: {numbers.size(tier.peak)} of memory.{tier.key} = "
                f"{numbers.size(tier.limit)} were reserved at once."
            )
    if facts.access in _LOCKED:
        yield (
            f"Page-locking: the GPU's memory did not hold the graph (access {facts.access}), so its arrays were locked "
            "in main memory for the GPU to read; other programs had that much less."
        )
    if "locked for the device" in facts.reason:
        yield "Page-locking failed: the limit of locked memory is too low for the graph (ulimit -l)."


def _work_warnings(facts: Facts) -> Iterator[str]:
    if _uneven(facts.loads):
        busiest = max(facts.loads, key=lambda load: load.seconds)
        yield (
            f"Skew: {busiest.worker} was busy for {numbers.seconds(busiest.seconds)}, {skew_of(facts.loads):.1f} times "
            "as long as the mean of all: the others waited for it."
        )
    degrees, vertices = facts.graph.get("degrees") or [], facts.graph.get("vertices") or 0
    if vertices > 1000 and degrees and degrees[-1][0] > _HUB * vertices:
        yield (
            f"Hubs: a vertex is adjacent to {numbers.percent(degrees[-1][0] / vertices)} of the graph or more; most of "
            "the work is below few roots."
        )
    for level in facts.levels if facts.whole else []:
        if level.predicted and level.rows_out and level.rows_out > 1000:
            off = max(level.predicted / level.rows_out, level.rows_out / level.predicted)
            if off > _WRONG:
                yield f"Prediction: {level.name} was {off:,.0f} times off; another plan might have been cheaper."
    if facts.lower_bound:
        counted = facts.asked.get("workload.output", "count") == "count"
        yield (
            "workload.limit ended the search: there may be more than the counts say."
            if counted
            else "export.limit ended the run: the counts are those of the rows that were written, there may be more."
        )


def advice_of(facts: Facts) -> list[str]:
    """Return what to change for speed, the most promising first; nothing for runs that are fast enough."""
    if (facts.seconds or 0) < _LEAST_SECONDS:
        return []
    parts = _part_advice(facts) if facts.status == "done" else ()
    return [*_budget_advice(facts), *parts, *_config_advice(facts)]


def _budget_advice(facts: Facts) -> Iterator[str]:
    tiers = {tier.key: tier for tier in facts.tiers}
    written, _ = facts.written
    if written >= _MUCH_SPILLED and "host" in tiers:
        wanted = numbers.size(tiers["host"].peak + tiers["disk"].peak if "disk" in tiers else 2 * tiers["host"].peak)
        yield (
            f"Raise memory.host to about {wanted}, if the machine has it: nothing would be spilled. Or let "
            "memory.spill be on a faster disk."
        )
        if facts.asked.get("scheduler.order") == "levels":
            yield 'Set scheduler.order = "depth": whole levels need not go to disk then.'
    if facts.access in _LOCKED:
        yield "Raise memory.device, or use a GPU with more memory: a graph that fits it is not read over the link."


def _part_advice(facts: Facts) -> Iterator[str]:
    total = facts.seconds or 0.0
    parts = facts.seconds_of
    path = facts.graph.get("path")
    if parts.get("graph", 0) > _SHARE * total:
        if facts.graph.get("kind") is not None:
            yield (
                "Making the graph took a large part of the time: longwall generate writes it to a store, once for "
                "all runs."
            )
        elif isinstance(path, str) and not path.rstrip("/").endswith(".zarr"):
            yield (
                "Reading the graph took a large part of the time: longwall ingest turns it into a store, which opens "
                "much faster."
            )
    if any("compiling kernels" in note for note in facts.notes):
        yield "Kernels were compiled, which takes seconds: later runs of this kind on this machine load them."
    if parts.get("mine", 0) < 0.5 * total and total < 5:
        yield "Less than half of the time was mining: many small runs are quicker in one Python process (longwall.run)."
    if _uneven(facts.loads):
        yield (
            "The work is uneven: fewer, faster workers finish sooner than many that wait, and on a GPU hubs are shared "
            "by all of its warps."
        )


def _config_advice(facts: Facts) -> Iterator[str]:
    asked = facts.asked
    if asked.get("engine.ablation"):
        yield "Remove engine.ablation: it switches optimisations off, for benchmarks."
    if asked.get("workload.join") == "edges":
        yield 'Set workload.join = "vertices": joins by edges are there for comparison, and make rows that are dropped.'
    threads = asked.get("engine.threads")
    if isinstance(threads, int) and threads == 1 and facts.engine.startswith("cpu"):
        yield "Set engine.threads = 0: all cores work then."
    if asked.get("workload.output") == "embeddings":
        rows = sum(files.rows for files in facts.files if files.name.startswith("embeddings"))
        if rows > 10**7:
            yield (
                f'{numbers.short(rows)} rows were written: if their number is enough, output = "count" takes a '
                "fraction of the time; export.columns writes fewer columns."
            )
    if asked.get("workload.kind") == "motifs" and asked.get("workload.method") == "enumeration":
        yield 'Set workload.method = "auto": counting motifs by formulas may be cheaper than enumerating them.'
    if facts.plan.get("kind") == "frequent patterns" and facts.plan.get("exact") and (facts.seconds or 0) > 10:
        yield "Set workload.exact = false, if it is enough to know which patterns are frequent."
