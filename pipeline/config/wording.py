"""Pydantic's faults in our own sentences."""

from collections.abc import Sequence
from typing import Any, get_args

from longwall.pipeline.config.sections import RunSpec
from longwall.pipeline.config.values import listed, shown, suggestion

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "int_type": "a whole number",
    "is_instance_of": "a path in quotes",
    "model_type": "a section",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


def explain(fault: Any) -> str:
    """Return pydantic's fault as our own sentence."""
    kind, context, value = fault["type"], fault.get("ctx", {}), fault["input"]
    location = [part for part in fault["loc"] if isinstance(part, str)]
    if kind == "extra_forbidden":
        return (
            "there is no such "
            + ("section" if len(location) == 1 else "key")
            + suggestion(location[-1], _names(location[:-1]))
        )
    if kind == "missing":
        valid = _literals(location)
        return "missing" + (f"; choose one of {listed(valid)}" if valid else "; add it")
    if kind == "literal_error":
        return f"there is no {shown(value)}" + suggestion(value, _literals(location))
    if kind == "value_error":
        return str(context["error"])
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"must be {bound}, not {shown(value)}"
    return f"expected {_EXPECTED.get(kind, 'another type')}, not {shown(value)}"


def _names(location: Sequence[str]) -> list[str]:
    """Return the valid keys of the section at `location` (the sections themselves at the top)."""
    if not location:
        return list(RunSpec.model_fields)
    annotation = RunSpec.model_fields[location[0]].annotation
    return list(annotation.model_fields) if isinstance(annotation, type) else []


def _literals(location: Sequence[str]) -> tuple[str, ...]:
    """Return the values that the key at `location` may take, where they are few."""
    if len(location) != 2 or location[0] not in RunSpec.model_fields:
        return ()
    section = RunSpec.model_fields[location[0]].annotation
    annotation = section.model_fields[location[1]].annotation if isinstance(section, type) else None
    return tuple(value for value in get_args(annotation) if isinstance(value, str))
