"""The text of a plan, as ``longwall explain`` prints it."""

from typing import Any

from longwall.pipeline.explain import explain as explain_config


def explain(*arguments: Any, **options: Any) -> str:
    """Return the lines of the plan of a config; parameters as of `longwall.pipeline.explain.explain`."""
    return explain_config(*arguments, **options).text
