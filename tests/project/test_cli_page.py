"""The site's page of commands has every command, argument and option of the command line."""

from __future__ import annotations

import re
from typing import Any

import typer
from cli_page import page

from longwall.pipeline.cli import app

ROOT: Any = typer.main.get_command(app)
PARTS = dict(re.findall(r"^## `(.*?)`\n(.*?)(?=^## |\Z)", page(), re.MULTILINE | re.DOTALL))


def test_every_command_has_a_part() -> None:
    assert list(PARTS) == ["longwall", *(f"longwall {name}" for name in ROOT.commands)]


def test_every_parameter_is_in_its_part_with_its_help() -> None:
    for name, command in [("", ROOT), *ROOT.commands.items()]:
        part = PARTS[f"longwall {name}".strip()]
        rows = re.findall(r"^\| (`.*) \|$", part, re.MULTILINE)
        assert len(rows) == sum(not one.hidden for one in command.params), name
        for one in command.params:
            text = one.metavar or one.name.upper()
            known = (
                {f"`{name}`" for name in one.opts} if one.param_type_name == "option" else {f"`{text}`", f"`[{text}]`"}
            )
            (row,) = [row for row in rows if known & set(row.split(" | ")[0].replace(",", "").split(" "))]
            assert (one.help or "").replace("`", "") in row.replace("`", "").replace("\\|", "|")


def test_code_is_whole() -> None:
    for line in page().splitlines():
        assert line.count("`") % 2 == 0 or line.startswith("```"), line
