"""The facts of a run with their pictures, as the template takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from longwall.pipeline.patterns.pattern_drawing import edges_of, pattern_drawing
from longwall.pipeline.patterns.pattern_names import known_name
from longwall.pipeline.report import numbers, plots
from longwall.pipeline.report.advice import advice_of, skew_of, warnings_of
from longwall.pipeline.report.drawings import order_text, search_steps
from longwall.pipeline.report.facts import Facts, Tier
from longwall.pipeline.report.plots import Bar, Span
from longwall.storage.system.drawing import Drawing

_MOST_DRAWN = 24  # patterns of a plan
_HIDDEN = ("memory.spill", "run.directory", "run.overwrite", "run.report")
_PART_NAMES = {
    "compile": "compile kernels",
    "graph": "read or make the graph",
    "plan": "plan",
    "mine": "mine",
    "write": "write results",
}
_MEANING = {
    "done": "done",
    "running": "still running, or killed",
    "failed": "failed",
    "interrupted": "interrupted",
}


class Answer(NamedTuple):
    """A row of the answer."""

    name: str
    edges: str
    picture: Drawing | None
    labels: str
    number: str
    support: str
    value: str


class Plot(NamedTuple):
    """A picture and the sentence beside it."""

    picture: Drawing
    sentence: str


def view_of(facts: Facts) -> dict[str, Any]:
    """Return what the template of a report shows."""
    edges = edges_of(facts.plan.get("pattern"))
    steps = search_steps(facts.plan)
    asked = {key: shown(value) for key, value in facts.asked.items() if key not in _HIDDEN}
    defaults = _defaults(facts)
    return {
        "facts": facts,
        "status": _MEANING.get(facts.status, facts.status),
        "headline": headline(facts),
        "progress": _progress(facts),
        "total_seconds": None if facts.total_seconds is None else numbers.seconds(facts.total_seconds),
        "seconds": numbers.NONE if facts.seconds is None else numbers.seconds(facts.seconds),
        "asked": {key: text for key, text in asked.items() if key not in defaults},
        "defaults": {key: text for key, text in asked.items() if key in defaults},
        "order": order_text(facts.plan) if steps else "",
        "pattern": None if edges is None else pattern_drawing(edges, facts.plan.get("labels"), size=110),
        "pattern_name": known_name(facts.plan.get("pattern")) or "",
        "answers": _answers(facts),
        "answer_plot": _sizes_plot(facts),
        "warnings": warnings_of(facts),
        "advice": advice_of(facts),
        "graph": _graph(facts),
        "degrees": _degree_plot(facts),
        "steps": steps,
        "stages": [] if steps else _stages(facts),
        "terms": _terms(facts),
        "plan": _plan(facts),
        "levels": _levels_plot(facts),
        "timeline": _timeline(facts),
        "tiers": [(tier, _tier_plot(tier)) for tier in facts.tiers if tier.in_use],
        "idle_tiers": [tier for tier in facts.tiers if not tier.in_use],
        "heat": _heat_plot(facts),
        "load": _load_plot(facts),
    }


def _defaults(facts: Facts) -> set[str]:
    """Return the keys whose value a config that does not have them means, too."""
    from longwall.pipeline.config.run_spec import RunSpec
    from longwall.pipeline.workloads import workload_named

    sections: dict[str, Any] = {name: field.annotation for name, field in RunSpec.model_fields.items()}
    sections["workload"] = workload_named(facts.asked.get("workload.kind"))
    found = set()
    for key, value in facts.asked.items():
        section, _, name = key.partition(".")
        field = getattr(sections.get(section), "model_fields", {}).get(name)
        if field is not None and not field.is_required():
            default = field.get_default(call_default_factory=True)
            plain = list(default) if isinstance(default, tuple) else "auto" if default is None else default
            if value in (plain, str(plain)):
                found.add(key)
    return found


def _plan(facts: Facts) -> dict[str, str]:
    """Return what no picture shows of a plan."""
    found = {key.replace("_", " "): shown(value) for key, value in facts.plan.items() if key not in _DRAWN}
    if (cost := facts.plan.get("estimated_cost")) is not None:
        found["estimated cost"] = f"{numbers.short(float(cost))} elementary steps"
    if facts.methods:
        named = [f"{name} ({number:,} patterns)" if number > 1 else name for name, number in facts.methods.items()]
        found["counted by"] = ", ".join(named)
    return found


def _progress(facts: Facts) -> str:
    """Return a sentence that says how far a run got that is not done; nothing of one that is."""
    if facts.status == "done":
        return ""
    open_ones = [(name, done, total) for name, done, total in facts.progress if done < total]
    whole = len(facts.progress) - len(open_ones)
    parts = [f"{name}, {numbers.percent(done / total)} of {total:,} roots" for name, done, total in open_ones]
    parts += [f"{whole:,} phase{'s' if whole != 1 else ''} finished"] if whole else []
    if not parts:
        return "No part of its work was finished, so it begins anew."
    return f"It got as far as: {'; '.join(parts)}. The finished part is kept."


_STAGES = ("source", "extend", "verify", "filter", "aggregate", "count", "process", "export")
_DRAWN = (
    "kind",
    "pattern",
    "patterns",
    "terms",
    "estimated_rows",
    "order",
    "restrictions",
    "labels",
    "names",
    "sha256",
)


def headline(facts: Facts) -> str:
    """Return the answer in a few words."""
    least = "at least " if facts.lower_bound else ""
    if facts.status != "done":
        return _MEANING.get(facts.status, facts.status)
    if facts.total is not None:
        return f"{least}{facts.total:,}"
    if len(facts.answer) == 1 and facts.answer[0]["value"] is not None:
        return str(facts.answer[0]["value"])[:80]
    return f"{least}{facts.patterns:,} pattern{'s' if facts.patterns != 1 else ''}"


def shown(value: Any) -> str:
    """Return a value of a config or a plan as a reader wants it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {shown(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _answers(facts: Facts) -> list[Answer]:
    rows = []
    for one in facts.answer:
        edges, labels = edges_of(one.get("pattern")), one.get("labels")
        picture = None if edges is None else pattern_drawing(edges, labels, one.get("edge_labels"), size=76)
        count = numbers.count(one.get("count")) if one.get("count") is not None else ""
        rows.append(
            Answer(
                known_name(one.get("pattern")) or "",
                str(one.get("pattern", "")),
                picture,
                "" if labels is None else ", ".join(map(str, labels)),
                f"at least {count}" if one.get("lower_bound") and count else count,
                "" if one.get("support") is None else numbers.count(one["support"]),
                "" if one.get("value") is None else str(one["value"])[:400],
            )
        )
    return rows


def _sizes_plot(facts: Facts) -> Plot | None:
    """Return a plot of an answer that says how many there are of each size."""
    named = [(str(one.get("pattern", "")).split(), one.get("count")) for one in facts.answer]
    sizes = [
        (int(words[-2]), count)
        for words, count in named
        if len(words) > 1 and words[-1].startswith("vert") and words[-2].isdecimal() and isinstance(count, int)
    ]
    if len(sizes) < 2 or len(sizes) < len(facts.answer):
        return None
    most = max(sizes, key=lambda pair: pair[1])
    label = f"Most of them, {most[1]:,}, have {most[0]} vertices; the largest have {max(sizes)[0]}."
    bars = [Bar(str(size), count, f"{count:,} of {size} vertices") for size, count in sizes]
    return Plot(plots.columns(label, bars, "vertices", "number"), label)


def _graph(facts: Facts) -> dict[str, str]:
    facts_of_graph = {
        key: value for key, value in facts.graph.items() if key not in ("degrees", "hash", "columns", "notes")
    }
    vertices, edges = facts.graph.get("vertices"), facts.graph.get("edges")
    counted = ("vertices", "edges", "labels")
    found = {
        key.replace("_", " "): shown(value) if key in counted else str(value) for key, value in facts_of_graph.items()
    }
    if vertices and edges:
        found["mean degree"] = f"{2 * edges / vertices:,.1f}"
    return found


def _degree_plot(facts: Facts) -> Plot | None:
    degrees = facts.graph.get("degrees")
    if not degrees:
        return None
    total, seen = sum(number for _, number in degrees), 0
    half = degrees[-1][0]
    for low, number in degrees:
        seen += number
        if 2 * seen >= total:
            half = low
            break
    top = degrees[-1][0]
    label = (
        f"Half of the {total:,} vertices have a degree below {2 * half:,}; the largest degree is between {top:,} and "
        f"{2 * top - 1:,}."
        if top > 1
        else f"All {total:,} vertices have one edge each."
    )
    picture = plots.columns(label, plots.degree_bars(degrees), "degree, in powers of two", "vertices")
    return Plot(picture, label)


def _terms(facts: Facts) -> list[tuple[str, str, str, Drawing | None]]:
    """Return the patterns of which a plan is made, with what becomes of each."""
    found = []
    for one in (facts.plan.get("patterns") or facts.plan.get("terms") or [])[:_MOST_DRAWN]:
        edges = edges_of(one.get("pattern"))
        words = f"{one['coefficient']:+d} x" if "coefficient" in one else str(one.get("kind", ""))
        picture = None if edges is None else pattern_drawing(edges, one.get("labels"), size=76)
        found.append((words, known_name(one.get("pattern")) or "", str(one.get("pattern", "")), picture))
    return found


def _stages(facts: Facts) -> list[tuple[str, str]]:
    """Return name and description of each stage of a plan, of the lines that ``longwall explain`` prints."""
    lines = [line.partition(" ") for line in facts.plan_text.splitlines()]
    stages = [(name, text.strip()) for name, _, text in lines if name in _STAGES]
    first = next((at for at, (name, _) in enumerate(stages) if name == "source"), len(stages))
    return stages[first : first + _MOST_DRAWN]


def _levels_plot(facts: Facts) -> Plot | None:
    rows = [(one.name, float(one.rows_out), one.predicted) for one in facts.levels if one.rows_out]
    if not rows:
        return None
    name, most, _ = max(rows, key=lambda row: row[1])
    label = f"The most rows, {numbers.count(round(most))}, came out of: {name}."
    off = [(max(rows_out / p, p / rows_out), one) for one, rows_out, p in rows if p]
    if off and facts.whole:
        worst, where = max(off)
        how = f"within {numbers.percent(worst - 1)}" if worst < 2 else f"up to {worst:.3g} times off"
        label += f" Predictions were {how} ({where})."
    return Plot(plots.pairs(label, rows, "rows (logarithmic)"), label)


def _timeline(facts: Facts) -> Plot | None:
    parts = [part._replace(name=_PART_NAMES.get(part.name, part.name)) for part in facts.parts]
    if not parts:
        return None
    if parts[0].begin > 0:
        parts.insert(0, Span("start", 0.0, parts[0].begin, "part"))
    order = {"part": 0, "bar": 1}
    spans: list[Span] = sorted([*parts, *facts.phases], key=lambda span: (span.begin, order[span.style]))
    total = max(facts.seconds or 0, max(span.end for span in spans))
    longest, took = max(facts.seconds_of.items(), key=lambda part: part[1])
    name = _PART_NAMES.get(longest, longest)
    label = f"Of {numbers.seconds(total)}, {numbers.percent(took / max(total, 1e-9))} went to: {name}."
    compiled = facts.seconds_of.get("compile", 0.0)
    if compiled > 0.01 * total:
        label += f" Bars include the {numbers.seconds(compiled)} in which kernels were compiled."
    if facts.phases_left_out:
        label += f" {facts.phases_left_out:,} shorter phases are not shown."
    if facts.resumed:
        label += " The run was resumed: this is its last attempt."
    return Plot(plots.timeline(label, spans, total), label)


def _tier_plot(tier: Tier) -> Plot:
    limit = f" of {numbers.size(tier.limit)}, the budget memory.{tier.key}" if tier.limit else ""
    share = f" ({numbers.percent(tier.peak / tier.limit)})" if tier.limit else ""
    had = f"the process used {numbers.size(tier.process_peak)} at most; " if tier.process_peak else ""
    label = f"{tier.name}: {had}at most {numbers.size(tier.peak)}{limit}{share} reserved at once."
    plot = plots.memory(label, tier.at, tier.used, tier.peak, tier.limit, tier.process, tier.process_peak)
    return Plot(plot, label)


def _heat_plot(facts: Facts) -> Plot | None:
    if facts.heat is None:
        return None
    heat = facts.heat
    total = sum(sum(cells) for cells in heat.levels.values())
    cached = sum(sum(cells) * heat.on_device[level] for level, cells in heat.levels.items()) / max(total, 1)
    first = sum(sum(cells[: -(-len(cells) // 4)]) for cells in heat.levels.values()) / max(total, 1)
    label = (
        f"{numbers.size(total)} were read of {heat.pages:,} pages, {numbers.percent(first)} of it in the first quarter "
        f"of them; for {numbers.percent(cached)} the page was on the GPU."
    )
    return Plot(plots.heat_map(label, heat), label)


def _load_plot(facts: Facts) -> Plot | None:
    if not facts.loads:
        return None
    rows = [
        Bar(
            one.worker,
            one.seconds,
            f"{numbers.seconds(one.seconds)}, {one.tasks:,} task{'s' if one.tasks != 1 else ''}",
        )
        for one in facts.loads
    ]
    busiest = max(facts.loads, key=lambda load: load.seconds)
    label = f"{busiest.worker} was busy longest, for {numbers.seconds(busiest.seconds)}"
    label += f", {skew_of(facts.loads):.2f} times the mean of {len(rows)} workers." if len(rows) > 1 else "."
    return Plot(plots.bars(label, rows), label)
