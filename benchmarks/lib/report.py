"""The figures as Markdown. Standard library only."""

import tomllib
from pathlib import Path
from typing import Any

_RIVALS = Path(__file__).parents[1] / "rivals" / "figures.toml"
_NONE = "-"


def published_rivals(engine: str) -> dict[str, Any]:
    """Read the constant figures of other systems for an engine: ``source``, and graph -> row -> system."""
    found: dict[str, Any] = tomllib.loads(_RIVALS.read_text())[engine]
    return found


def markdown(record: dict[str, Any]) -> str:
    """Turn the record of a suite's run (what the JSON file holds) into a section of Markdown.

    Parameters
    ----------
    record
        The settings, the machine, the checks, and per graph its facts and rows.
    """
    settings, machine = record["settings"], record["machine"]
    published = published_rivals(settings["engine"])
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    lines = [
        f"### {settings['engine']}: {record['device']}",
        "",
        f"- Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"load {machine['load_at_start']} at the start; {machine['system']}",
        f"- Python {machine['python']}, {versions}; commit {machine['commit']}",
        f"- Measured {record['date']}: median of up to {settings['repeats']} runs, limit {settings['limit']:g} s "
        f"a row, {settings['rival_limit']:g} s for a rival",
        f"- Step rate of the floor: {record['steps_per_second']:.3g} a second",
        f"- Other systems: {published['source']}",
    ]
    lines += [f"- {name}: {reason}" for name, reason in record["rivals_missing"].items()]
    if not record["finished"]:
        lines.append("- **Not finished**: the suite was still running when this was written.")
    lines += [f"- **FAILED**: {failure}" for failure in record["failures"]]
    lines += ["", *_checks(record["checks"])]
    for name, graph in record["graphs"].items():
        lines += ["", *_graph(name, graph, published.get(name, {}), settings["rivals"])]
    return "\n".join(lines) + "\n"


def _checks(checks: list[dict[str, Any]]) -> list[str]:
    lines = ["Counts checked first:", "", "| graph | row | count | equal to |", "|---|---|---:|---|"]
    for check in checks:
        equal = ", ".join(check["equal_to"]) or "nothing to compare with"
        lines.append(f"| {check['graph']} | {check['row']} | {_count(check['counts'])} | {equal} |")
    return lines


def _graph(name: str, graph: dict[str, Any], published: dict[str, Any], rivals: list[str]) -> list[str]:
    facts = graph["facts"]
    head = ["row", "count", "mine s", "total s", "peak MiB", "floor s", "x floor", *(f"{r} s" for r in rivals)]
    head += ["best system s", "ours / theirs"]
    lines = [
        f"**{name}**: {facts['vertices']:,} vertices, {facts['edges']:,} edges, largest degree {facts['max_degree']:,}",
        "",
        f"| {' | '.join(head)} |",
        f"|---|{'---:|' * (len(head) - 1)}",
    ]
    for row, found in graph["rows"].items():
        cells = [row, *_our_cells(found)]
        cells += [_rival_cell(found["rivals"].get(rival)) for rival in rivals]
        cells += _published_cells(found, published.get(row))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _our_cells(found: dict[str, Any]) -> list[str]:
    if found["status"] != "done":
        return [_NONE, found["reason"], _NONE, _mebibytes(found["peak_bytes"]), _NONE, _NONE]
    floor = found.get("floor_seconds")
    return [
        _count(found["counts"]),
        seconds(found["mine_seconds"]),
        seconds(found["total_seconds"]),
        _mebibytes(found["peak_bytes"]),
        seconds(floor) if floor else _NONE,
        f"{found['mine_seconds'] / floor:.1f}" if floor else _NONE,
    ]


def _rival_cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return _NONE
    return seconds(found["seconds"]) if found["status"] == "done" else str(found["reason"])


def _published_cells(found: dict[str, Any], systems: dict[str, dict[str, float]] | None) -> list[str]:
    if not systems:
        return [_NONE, _NONE]
    best, name, kind = min(
        (figures["run"], name, "run") if "run" in figures else (figures["wall"], name, "wall")
        for name, figures in systems.items()
    )
    ratio = f"{found['mine_seconds'] / best:.2f}" if found["status"] == "done" else _NONE
    return [f"{seconds(best)} ({name}, {kind})", ratio]


def seconds(value: float) -> str:
    """Three significant digits, never an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.3g}"
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}" if value >= 0.01 else f"{value:.6f}"


def _count(counts: list[int]) -> str:
    return f"{sum(counts):,}"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f}"
