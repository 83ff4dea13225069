"""Pydantic's faults as messages of Longwall."""

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel

from longwall.pipeline.config.run_spec import RunSpec
from longwall.pipeline.quoting import join_names, quote, suggestion
from longwall.pipeline.workloads import workload_kinds

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "int_type": "a whole number",
    "is_instance_of": "a path in quotes",
    "model_attributes_type": "a section",
    "model_type": "a section",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


def location_of(fault: Any) -> tuple[str | int, ...]:
    """Return the keys that lead to a fault; ``[workload]`` has no key for its kind, which pydantic names."""
    location: tuple[str | int, ...] = fault["loc"]
    if fault["type"].startswith("union_tag"):
        return (*location, "kind")
    return (*location[:1], *location[2:]) if location[0] == "workload" else location


def explain(fault: Any) -> str:
    """Return pydantic's fault as a message."""
    kind, context, value = fault["type"], fault.get("ctx", {}), fault["input"]
    location = [part for part in fault["loc"] if isinstance(part, str)]
    if kind == "union_tag_not_found":
        return f"missing; choose one of {join_names(workload_kinds())}"
    if kind == "union_tag_invalid":
        return f"there is no {quote(value['kind'])}" + suggestion(value["kind"], workload_kinds())
    if kind == "extra_forbidden":
        return _unknown(location)
    if kind == "missing":
        return (
            f"missing; {location[1]} needs it" if location[0] == "workload" and len(location) > 2 else "missing; add it"
        )
    if kind == "literal_error":
        what = f"{location[1]} has no {location[-1]}" if location[0] == "workload" else "there is no"
        return f"{what} {quote(value)}" + suggestion(value, _literals(location))
    if kind in ("conflict", "value_error"):
        return str(context["error"])
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"must be {bound}, not {quote(value)}"
    if kind == "tuple_type" and isinstance(value, str | int):
        return f"expected a list such as {quote([value])}, not {quote(value)}"
    return f"expected {_EXPECTED.get(kind, 'another type')}, not {quote(value)}"


def _unknown(location: Sequence[str]) -> str:
    """Return the message for a key that is none, or none of this kind of workload."""
    *above, key = location
    if above and above[0] == "workload":
        users = [kind for kind, workload in workload_kinds().items() if key in workload.model_fields]
        if users:
            return f"{above[1]} has no use for it (only {join_names(users)}); remove it"
    return f"there is no such {'key' if above else 'section'}" + suggestion(key, _section(above).model_fields)


def _section(location: Sequence[str]) -> type[BaseModel]:
    """Return the class of the section at a location, which includes the kind of a workload."""
    if not location:
        return RunSpec
    if location[0] == "workload":
        return workload_kinds()[location[1]]
    section: type[BaseModel] = RunSpec
    for key in location:
        annotation = section.model_fields[key].annotation
        classes = [one for one in (annotation, *get_args(annotation)) if isinstance(one, type)]
        section = next(one for one in classes if issubclass(one, BaseModel))
    return section


def _literals(location: Sequence[str]) -> tuple[str, ...]:
    """Return the values that the key at a location may take, where they are few."""
    annotation = _section(location[:-1]).model_fields[location[-1]].annotation
    values = (value for one in get_args(annotation) for value in (get_args(one) or (one,)))  # of `Literal | None`, too
    return tuple(value for value in values if isinstance(value, str))
