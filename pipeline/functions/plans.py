"""The function that says how a question would be answered, without answering it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

from longwall.pipeline.explain import explain as explain_config
from longwall.pipeline.functions.one_run import Options, Question, in_words_of_calls
from longwall.pipeline.patterns.pattern_of import pattern as pattern_of
from longwall.pipeline.patterns.pattern_of import source_text
from longwall.storage.system.html import html_table


@dataclass(frozen=True)
class Plan:
    """How a question is answered on a graph; it prints as ``longwall explain`` does."""

    text: str
    """The lines: a word, and what is to be said of it."""
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What ``longwall explain --json`` prints."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html_table(["plan"], [[line[:13].strip(), line[13:]] for line in self.text.splitlines()], code=True)


def explain(
    graph: Any,
    what: Any,
    *,
    labels: Sequence[int] | None = None,
    induced: bool = False,
    rows: bool = False,
    limit: int | None = None,
    count: Literal["embeddings", "subgraphs", "mappings"] = "embeddings",
    all: bool = False,  # noqa: A002 - as the option of the command
    **options: Unpack[Options],
) -> Plan:
    """Say how a pattern would be counted or listed, or another question answered, and what that would take.

    Parameters
    ----------
    graph, labels, induced, count, options
        As of `longwall.count`.
    what
        A pattern, or the section ``[workload]`` of a config as a mapping, such as ``{"kind": "motifs", "k": 4}``.
    rows
        Whether the embeddings of the pattern are listed, as by `longwall.match`, not counted.
    limit
        With `rows`: the number of rows after which the search ends.
    all
        Whether all methods of counting are listed: which apply, their estimated steps, and which is taken.

    Returns
    -------
    Plan
        Its text has the lines that ``longwall explain`` prints.

    Examples
    --------
    >>> import longwall, networkx
    >>> plan = longwall.explain(networkx.karate_club_graph(), "diamond", engine="cpu")
    >>> print(plan)  # doctest: +ELLIPSIS
    workload     match, output = count
    graph        34 vertices, 78 edges, 0 labels
    engine       cpu ...
    """
    if isinstance(what, Mapping):
        workload: Mapping[str, Any] = what
    else:
        text = source_text(pattern_of(what, labels))
        output = "embeddings" if rows else "count"
        workload = {"kind": "match", "pattern": text, "induced": induced, "output": output, "count": count}
    question = Question.of(graph, workload, options, limit=limit)
    with in_words_of_calls():
        config = question.config(run={"name": "explain"})
        explanation = explain_config(config, observer=question.observer(), methods=all)
        return Plan(explanation.text, explanation.facts)
