"""Docstrings of the package, for the site: names of public things become links to them."""

from __future__ import annotations

import re
from typing import Any

import griffe

import longwall

_PUBLIC = "|".join(sorted(longwall.__all__, key=len, reverse=True))
_NAME = re.compile(rf"(?<!`)`longwall\.({_PUBLIC})`(?!`)")
_ROLE = re.compile(r":(?:func|class|mod):`~?(?:[\w.]*\.)?(\w+)`")
_DOUBLE = re.compile(r"``([^`\n]+)``")


def linked(text: str) -> str:
    """Return a docstring in Markdown: code in single backquotes, links where a public name is meant."""
    before, example, after = text.partition("\nExamples\n")  # a session is left as it is
    before = _ROLE.sub(lambda role: f"`longwall.{role[1]}`" if role[1] in longwall.__all__ else f"`{role[1]}`", before)
    before = _NAME.sub(r"[`longwall.\1`][longwall.\1]", before)
    return _DOUBLE.sub(r"`\1`", before) + example + after


class DocstringLinks(griffe.Extension):
    """Changes every docstring once it is read, and leaves a function one signature: that of the function itself."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the text of an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = linked(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Drop the overloads: they are for type checkers, and a reader would meet four signatures before a sentence."""
        drop_overloads(pkg)


def drop_overloads(parent: griffe.Module | griffe.Class) -> None:
    """Drop the overloads of all functions of a module or class."""
    for member in parent.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Function):
            member.overloads = None
        elif isinstance(member, griffe.Module | griffe.Class):
            drop_overloads(member)
