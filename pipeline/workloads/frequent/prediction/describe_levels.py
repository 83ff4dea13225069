"""The predicted levels of frequent patterns as text, and whether memory and disk have room for them."""

from collections.abc import Sequence
from itertools import pairwise

from longwall.pipeline.quoting import round_number
from longwall.pipeline.workloads.frequent.grown_patterns import level_bytes
from longwall.pipeline.workloads.frequent.pattern_table import count_bytes
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.pipeline.workloads.frequent.prediction.level_sample import Figure
from longwall.pipeline.workloads.frequent.prediction.predict_levels import LevelPrediction
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size


def describe_levels(plan: FrequentPlan, levels: Sequence[LevelPrediction], resources: Resources) -> list[str]:
    """Return predicted levels as the lines of a table, and what of them has to fit the budgets.

    Parameters
    ----------
    plan
        What is mined.
    levels
        The prediction.
    resources
        What a run would have, with the graph.
    """
    exact = all(one.exact for one in levels)
    table: list[tuple[str, ...]] = [("", "candidates", "frequent", "rows", "size")]
    table += [
        (
            f"{one.edges} edge{'s' * (one.edges > 1)}",
            *map(_cell, (one.candidates, one.patterns, one.rows)),
            round_size(one.bytes) if one.bytes else "not written",
        )
        for one in levels
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    how = "exact: the patterns are few enough to be mined for it" if exact else "by sampling; likely ranges in brackets"
    lines = [f"prediction   {how}"]
    for name, *cells in table:
        lines.append(
            f"{name:<13}" + "   ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        )
    if levels[-1].edges < plan.max_edges and levels[-1].patterns.value:
        lines.append(
            "more edges   not predicted: the embeddings may not fit 64-bit integers; set workload.max_edges, or raise "
            "workload.min_support"
        )
    return [*lines, *_describe_totals(plan, levels, resources)]


def _cell(figure: Figure) -> str:
    if figure.exact:
        return f"{figure.value:,.0f}"
    return f"{round_number(figure.value)} ({round_number(figure.low)} to {round_number(figure.high)})"


def _describe_totals(plan: FrequentPlan, levels: Sequence[LevelPrediction], resources: Resources) -> list[str]:
    """What patterns and tables take, and whether there is room."""
    host, disk = resources.host, resources.disk
    # All patterns of a level grow on where instances are counted, frequent or not.
    grown = [(one.candidates if plan.support == "instances" else one.patterns).value for one in levels]
    of_levels = [level_bytes(round(number), one.edges) for number, one in zip(grown, levels, strict=True)]
    patterns = sum(count_bytes(one.edges) * one.patterns.value for one in levels)
    patterns += max((a + b for a, b in pairwise([0, *of_levels])), default=0)
    tables = max((a.bytes + b.bytes for a, b in pairwise(levels)), default=levels[0].bytes)
    left = max(host.free - patterns, 0)
    verdict = "does not fit" if patterns > host.free else "fits"
    lines = [
        f"patterns     up to about {round_size(patterns)} in memory; {verdict} the {round_size(host.free)} that "
        f"{host.option} leaves"
    ]
    if tables <= left:
        where = f"fits the {round_size(left)} that is left of {host.option}"
    else:
        fits = "fits" if tables <= disk.limit else "does not fit"
        where = f"{host.option} leaves {round_size(left)}, so tables are spilled; {fits} {disk.option}"
    return [*lines, f"tables       up to about {round_size(tables)} at once; {where}"]
