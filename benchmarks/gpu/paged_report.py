"""The figures of a graph that the device's budget does not hold, as Markdown and JSON, beside the goals."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu.paged_runs import Record
from benchmarks.gpu.paged_steps import NAMES as STEPS
from benchmarks.lib.report import seconds

LINK_GB_PER_SECOND = 55.0  # of page-locked copies, measured on an H200 (PCIe 5 x16)
_GOALS = (  # title, wanted, slow and fast variant
    ("managed / adaptive", "2", "managed", "adaptive"),
    ("zero-copy, no page order / adaptive", "2", "zero-copy+unordered", "adaptive"),
    ("zero-copy, page order / adaptive", "", "zero-copy", "adaptive"),
    ("two passes / one (adaptive)", "1.3", "adaptive+two-pass", "adaptive"),
    ("two passes / one (zero-copy)", "1.3", "zero-copy+two-pass", "zero-copy"),
    ("no groups / groups (adaptive)", "1.3", "adaptive+ungrouped", "adaptive"),
    ("no groups / groups (zero-copy)", "1.3", "zero-copy+ungrouped", "zero-copy"),
    ("no page order / page order (adaptive)", "", "adaptive+unordered", "adaptive"),
    ("no page order / page order (zero-copy)", "", "zero-copy+unordered", "zero-copy"),
)
_HEAD = (
    "| budget | variant | s | / adaptive | link GB | GB/s | pages in | out | pool MB | driver MB | budget MB |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


class Report:
    """Figures of one graph, in files that are written again as figures come.

    Parameters
    ----------
    out
        FILE.md or FILE.json; None for neither.
    facts
        What was measured, and on what.

    Attributes
    ----------
    workloads
        Name -> title, and the fraction of the slots that are roots.
    """

    def __init__(self, out: Path | None, facts: dict[str, Any]):
        self._out, self._facts = out, facts
        self.workloads: dict[str, dict[str, Any]] = {}
        self._records: dict[tuple[str, float, str], Record] = {}

    def add(self, record: Record) -> None:
        """Take a record in, and write what there is."""
        self._records[record.workload, record.share, record.variant] = record
        if self._out is not None:
            records = [asdict(record) for record in self._records.values()]
            data = {**self._facts, "workloads": self.workloads, "goals": self.goals(), "records": records}
            for suffix, text in ((".md", self.markdown()), (".json", json.dumps(data, indent=1) + "\n")):
                target = self._out.with_suffix(suffix)
                partial = target.with_name(f".{target.name}.partial")
                partial.write_text(text)
                partial.rename(target)

    def goals(self) -> list[dict[str, Any]]:
        """Each goal, with what was reached per workload and budget."""
        goals = []
        for title, wanted, slow, fast in _GOALS:
            pairs = [(self._records.get((*key[:2], slow)), one) for key, one in self._records.items() if key[2] == fast]
            reached = {_where(two): _ratio(one, two) for one, two in pairs if one and _ratio(one, two)}
            goals.append({"goal": title, "wanted": wanted, "reached": reached})
        rates = {
            _where(record): f"{record.link_bytes / record.seconds / 1e9 / LINK_GB_PER_SECOND:.0%}"
            for record in self._records.values()
            if record.variant == "adaptive" and not record.reason
        }
        copying = {
            _where(record): f"{record.copy_rate / 1e9 / LINK_GB_PER_SECOND:.0%}"
            for record in self._records.values()
            if record.variant == "adaptive" and record.copy_rate
        }
        title = f"{LINK_GB_PER_SECOND:.0f} GB/s"
        return [
            *goals,
            {"goal": f"link rate of adaptive over all / {title}", "wanted": "70%", "reached": rates},
            {"goal": f"while lists are copied / {title}", "wanted": "70%", "reached": copying},
        ]

    def markdown(self) -> str:
        """The section for docs/benchmarks.md."""
        facts, machine = self._facts, self._facts["machine"]
        lines = [
            f"**{facts['graph']}**: {facts['vertices']:,} vertices, {facts['edges']:,} edges, "
            f"{facts['bytes']:,} bytes; {facts['device']}, {machine['cores']} cores; {facts['date']}, commit "
            f"{machine['commit']}. Link: {facts['link']}.",
        ]
        for name, workload in self.workloads.items():
            lines += ["", f"**{workload['title']}**: {workload['fraction']:.3g} of the slots as roots.", "", *_HEAD]
            lines += self._rows(name)
            lines += self._steps(name)
        lines += ["", "| goal | wanted | reached |", "|---|---:|---|"]
        for goal in self.goals():
            reached = "; ".join(f"{where}: {value}" for where, value in goal["reached"].items())
            lines.append(f"| {goal['goal']} | {goal['wanted']} | {reached} |")
        return "\n".join(lines) + "\n"

    def _steps(self, workload: str) -> list[str]:
        """What the steps of each variant took, if that was asked for."""
        timed = [one for one in self._records.values() if one.workload == workload and one.steps]
        if not timed:
            return []
        head = f"| budget | variant | {' | '.join(STEPS)} |", f"|---|---|{'---:|' * len(STEPS)}"
        rows = [
            f"| {one.share:.0%} | {one.variant} | {' | '.join(seconds(one.steps[name]) for name in STEPS)} |"
            for one in timed
        ]
        return ["", "Seconds of each step; steps may run beside each other.", "", *head, *rows]

    def _rows(self, workload: str) -> Iterator[str]:
        for one in sorted(self._records.values(), key=lambda record: -record.share):
            if one.workload != workload:
                continue
            cells = [f"{one.share:.0%}" if one.share else "all", one.variant, one.reason, *[""] * 8]
            if not one.reason:
                adaptive = self._records.get((workload, one.share, "adaptive"))
                cells[2:] = [
                    seconds(one.seconds),
                    _ratio(one, adaptive) if adaptive else "",
                    f"{one.link_bytes / 1e9:.3g}",
                    f"{one.link_bytes / one.seconds / 1e9:.1f}",
                    f"{one.pages_in:,}",
                    f"{one.pages_out:,}",
                    *(f"{size / 1e6:,.0f}" if size else "" for size in (one.allocator, one.driver, one.budget)),
                ]
            yield f"| {' | '.join(cells)} |"


def _where(record: Record) -> str:
    return f"{record.workload}, {record.share:.0%}"


def _ratio(slow: Record, fast: Record) -> str:
    """How many times longer `slow` took; a bound where it ran into its limit; empty where that is not known."""
    if fast.reason or (slow.reason and not slow.over_limit):
        return ""
    return f"{'> ' if slow.over_limit else ''}{slow.seconds / fast.seconds:.2f}"
