"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longwall.pipeline.terminal import completion

FORMATS = (
    "edge-list",
    "matrix-market",
    "parquet",
    "lg",
    "graph",
    "transactions",
    "dimacs",
    "metis",
    "node-link",
    "pajek",
    "sif",
)
IDS = ("auto", "integers", "names")
EMPTY = ("refuse", "drop")

RunFolder = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The folder of a run, or its URL.",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]
# The reader of a file says what is wrong with it, in one message.
Config = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="The run as a TOML file.",
        show_default=False,
        readable=False,
        autocompletion=completion.config_files,
    ),
]
Configs = Annotated[
    list[Path],
    typer.Argument(
        metavar="CONFIG",
        help="The runs as TOML files.",
        show_default=False,
        readable=False,
        autocompletion=completion.config_files,
    ),
]
Overrides = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the config, or take it away (KEY=); may be repeated.",
        autocompletion=completion.settings,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object, on the last line.")]
Progress = Annotated[
    str,
    typer.Option(
        metavar="FORM",
        help="How standard error shows progress: auto (a bar on a terminal, else lines), lines, which begin with the "
        "time, or json (an object a line).",
        autocompletion=completion.one_of("auto", "lines", "json"),
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help='Use at most this much memory, such as "4GiB".', show_default="70% of what is free"
    ),
]
Spill = Annotated[Path, typer.Option(metavar="FOLDER", help="Where to put what does not fit in memory.")]
Disk = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Use at most this much disk space there.", show_default="80% of what is free"),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="The two columns of a table that hold the edges, as of ingest.",
        show_default="by their names",
    ),
]
LabelFile = Annotated[
    str | None, typer.Option(help="The labels of the vertices: a file, as of ingest.", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line names the columns.", show_default="as it looks"),
]
Ids = Annotated[
    str, typer.Option(help="auto, integers or names: what vertices are.", autocompletion=completion.one_of(*IDS))
]
Empty = Annotated[
    str,
    typer.Option(
        help="refuse or drop rows that lack one of their ends.",
        autocompletion=completion.one_of(*EMPTY),
    ),
]
VertexLabel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The attribute of nodes, or column of --vertices, with the labels.", show_default=False
    ),
]
VertexName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The attribute of nodes with their names.", show_default="their ids, in GML their labels"
    ),
]
Machines = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Predict the time on this many machines.", show_default="one"),
]
RatesFile = Annotated[
    Path | None,
    typer.Option(
        "--rates",
        metavar="FILE",
        help="How fast these machines are, as TOML.",
        show_default="as this one, which is measured",
    ),
]
