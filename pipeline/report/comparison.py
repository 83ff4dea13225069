"""Two runs side by side: what was asked, the answers, times and memory with their ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from longwall.pipeline.report import numbers, plots
from longwall.pipeline.report.facts import Facts
from longwall.pipeline.report.plots import Bar
from longwall.pipeline.report.view import Plot, headline, shown

_NOT_COMPARED = ("run.name", "run.directory", "run.overwrite", "run.report")


class Row(NamedTuple):
    """A line of a table: a figure of both runs."""

    name: str
    first: str
    second: str
    ratio: str = ""
    differs: bool = False


def comparison_of(first: Facts, second: Facts) -> dict[str, Any]:
    """Return what the template of a comparison shows."""
    same_graph = first.graph.get("hash") == second.graph.get("hash") and "hash" in first.graph
    return {
        "first": first,
        "second": second,
        "summary": _summary(first, second),
        "verdict": _verdict(first, second, same_graph=same_graph),
        "config": _config(first, second),
        "answers": _answers(first, second),
        "times": _times(first, second),
        "time_plot": _time_plot(first, second),
        "memory": _memory(first, second),
        "levels": _levels(first, second),
    }


def _pair(name: str, first: Any, second: Any) -> Row:
    return Row(name, shown(first), shown(second), differs=first != second)


def _summary(first: Facts, second: Facts) -> list[Row]:
    return [
        _pair("status", first.status, second.status),
        _pair("workload", first.workload, second.workload),
        _pair("answer", headline(first), headline(second)),
        _pair("graph", _graph(first), _graph(second)),
        _pair("engine", first.engine, second.engine),
        _pair("longwall", first.versions.get("longwall"), second.versions.get("longwall")),
    ]


def _graph(facts: Facts) -> str:
    vertices, edges = (numbers.count(facts.graph.get(key)) for key in ("vertices", "edges"))
    return f"{vertices} vertices, {edges} edges"


def _verdict(first: Facts, second: Facts, *, same_graph: bool) -> str:
    text = "The graphs are the same" if same_graph else "The graphs differ"
    if first.total is not None and second.total is not None:
        text += "; so are the answers" if first.total == second.total else "; the answers differ"
        if not same_graph and first.total == second.total:
            text = "The graphs differ; the answers are the same"
    if first.seconds and second.seconds:
        quick = min(first, second, key=lambda one: one.seconds or 0)
        factor = max(first.seconds, second.seconds) / min(first.seconds, second.seconds)
        text += f". {quick.name} is {factor:.2f} times as fast"
    return text + "."


def _config(first: Facts, second: Facts) -> list[Row]:
    keys = [key for key in {**first.asked, **second.asked} if key not in _NOT_COMPARED]
    rows = [_pair(key, first.asked.get(key), second.asked.get(key)) for key in keys]
    return [row for row in rows if row.differs]


def _answers(first: Facts, second: Facts) -> list[Row]:
    def key(one: dict[str, Any]) -> str:
        labels = one.get("labels")
        return str(one.get("pattern", "")) + ("" if labels is None else f" ({', '.join(map(str, labels))})")

    one, other = ({key(row): row.get("count") for row in facts.answer} for facts in (first, second))
    return [
        Row(
            name, numbers.count(one.get(name)), numbers.count(other.get(name)), differs=one.get(name) != other.get(name)
        )
        for name in {**one, **other}
    ]


def _ratios(
    names: list[str], first: dict[str, float], second: dict[str, float], text: Callable[[float], str]
) -> list[Row]:
    rows = []
    for name in names:
        one, other = first.get(name), second.get(name)
        ratio = numbers.NONE if one is None or other is None else numbers.ratio(other, one)
        left, right = (numbers.NONE if value is None else text(value) for value in (one, other))
        rows.append(Row(name, left, right, ratio))
    return rows


def _seconds_of(facts: Facts) -> dict[str, float]:
    return ({"whole run": facts.seconds} if facts.seconds is not None else {}) | facts.seconds_of


def _times(first: Facts, second: Facts) -> list[Row]:
    one, other = _seconds_of(first), _seconds_of(second)
    return _ratios(list({**one, **other}), one, other, numbers.seconds)


def _time_plot(first: Facts, second: Facts) -> Plot | None:
    runs = [(letter, facts) for letter, facts in (("A", first), ("B", second)) if facts.seconds is not None]
    if len(runs) < 2:
        return None
    bars = [
        Bar(f"{letter}, {name}", took, numbers.seconds(took))
        for name in {**_seconds_of(first), **_seconds_of(second)}
        for letter, facts in runs
        if (took := _seconds_of(facts).get(name)) is not None
    ]
    label = f"Run A took {numbers.seconds(first.seconds or 0)}, run B {numbers.seconds(second.seconds or 0)}."
    return Plot(plots.bars(label, bars), label)


def _memory(first: Facts, second: Facts) -> list[Row]:
    one, other = (
        {f"{tier.name}, process": float(tier.process_peak) for tier in facts.tiers if tier.process_peak}
        | {f"{tier.name}, reserved": float(tier.peak) for tier in facts.tiers}
        for facts in (first, second)
    )
    return _ratios(list({**one, **other}), one, other, lambda size: numbers.size(size) if size else "0")


def _levels(first: Facts, second: Facts) -> list[Row]:
    one, other = (
        {level.name: float(level.rows_out) for level in facts.levels if level.rows_out is not None}
        for facts in (first, second)
    )
    return _ratios(list({**one, **other}), one, other, lambda rows: numbers.count(round(rows)))
