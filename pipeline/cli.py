"""The command line: words in, one function call, words and an exit code out.

Nothing is computed here. Heavy libraries are imported by the commands that need them, so that ``--help``
answers at once.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from longwall.pipeline.cli_output import (
    ExitCode,
    print_failure,
    print_result,
    readable,
    report_error,
    results_of,
    write_stderr,
    write_stdout,
)
from longwall.pipeline.terminal import completion
from longwall.pipeline.terminal.cleaning import add_cleaning
from longwall.pipeline.terminal.commands import add_commands
from longwall.pipeline.terminal.logs import LEVELS, log_to_stderr
from longwall.pipeline.terminal.options import (
    EMPTY,
    FORMATS,
    IDS,
    AsJson,
    Columns,
    Config,
    Configs,
    Disk,
    Empty,
    Header,
    Ids,
    LabelFile,
    Machines,
    Memory,
    Overrides,
    Progress,
    Quiet,
    RatesFile,
    RunFolder,
    Spill,
    VertexLabel,
    VertexName,
)
from longwall.pipeline.terminal.stores import make_store, one_of
from longwall.storage.errors import InputError, RunError, reason_of
from longwall.storage.memory.address_space import require_address_space
from longwall.storage.system import signals
from longwall.storage.system.arguments import brief
from longwall.storage.system.paths import user_path
from longwall.storage.system.plain_text import harmless, harmless_lines

if TYPE_CHECKING:
    from longwall.pipeline.result import Result


class _Commands(TyperGroup):
    """The commands; messages about arguments, such as names of files, are written without control characters."""

    _as_json = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for command in self.commands.values():  # only the terminal's width breaks lines of a paragraph
            command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))

    def make_context(self, info_name: str | None, args: list[str], *arguments: Any, **options: Any) -> Any:
        """Read the arguments of the program."""
        self._as_json = "--json" in args
        with self._harmless_messages():
            return super().make_context(info_name, args, *arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the arguments of a command, and run it."""
        with self._harmless_messages():
            return super().invoke(ctx)

    @contextmanager
    def _harmless_messages(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if isinstance(message := getattr(error, "message", None), str):  # of Click's errors
                error.message = harmless_lines(message)  # type: ignore[attr-defined]
                if self._as_json:
                    text = error.format_message()  # type: ignore[attr-defined]
                    print_failure("InputError", harmless_lines(text), ExitCode.BAD_INPUT)
            raise


app = typer.Typer(
    name="longwall",
    cls=_Commands,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  longwall configs demo --output demo.toml  (a commented config; there is one per workload), "
    "then  longwall run demo.toml  or, for its plan,  longwall explain demo.toml",
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Log to standard error, from this level up: debug, info, warning or error.",
            show_default="no log",
            autocompletion=completion.one_of(*LEVELS),
        ),
    ] = None,
) -> None:
    """Find and count patterns (triangles, cliques, any small pattern) in large graphs.

    A run is a TOML file; its results are Parquet files in a folder of their own.
    """
    if log_level is not None:
        with _reporting():
            log_to_stderr(log_level)
    if version:
        from longwall.storage.system.version import longwall_version

        write_stdout(f"longwall {longwall_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        write_stdout(context.get_help())


@app.command(epilog="Example:  longwall run configs/demo.toml --set workload.pattern=house --set run.name=houses")
def run(
    configs: Configs,
    overrides: Overrides = [],  # noqa: B006 - typer copies it
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of this name, once the new one is done.")
    ] = False,
    as_json: AsJson = False,
    progress: Progress = "auto",
    quiet: Quiet = False,
) -> None:
    """Run a config and write its results; of several, one after the other.

    The results are Parquet files in <run.directory>/<run.name>/results. Their rows have no order, unless export.sort
    is true. The folder must not exist yet, unless --overwrite is given. A run that fails does not stop those after
    it; the exit code is that of the worst.
    """
    more = ["run.overwrite=true"] if overwrite else []
    with _reporting(as_json=as_json):
        from longwall.pipeline.terminal.several import require_different_names

        require_different_names(configs, [*overrides, *more])
    worst = 0
    for config in configs:
        if len(configs) > 1 and not as_json:
            write_stdout(f"{harmless(config)}:")
        try:
            with ExitStack() as ending:
                with _reporting(as_json=as_json, config=str(config)):
                    from longwall.pipeline.progress.observers import choose_observer
                    from longwall.pipeline.run import running

                    observer = choose_observer(quiet, progress)
                    result = ending.enter_context(running(config, overrides=[*overrides, *more], observer=observer))
                _print(result, as_json, quiet or progress == "json")
        except typer.Exit as end:
            if end.exit_code > ExitCode.BAD_INPUT or len(configs) == 1:  # an interrupt stops all
                raise
            worst = max(worst, end.exit_code)
    if worst:
        raise typer.Exit(worst)


@app.command(epilog="Example:  longwall resume runs/demo")
def resume(
    path: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The folder of the run, or its URL.",
            show_default=False,
            autocompletion=completion.unfinished_runs,
        ),
    ],
    overrides: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a key of memory, engine or scheduler, such as memory.host=8GiB; nothing behind the = takes "
            "the key away; may be repeated.",
            autocompletion=completion.settings,
        ),
    ] = [],  # noqa: B006 - typer copies it
    as_json: AsJson = False,
    progress: Progress = "auto",
    quiet: Quiet = False,
) -> None:
    """Go on with a run that failed, was interrupted or was killed.

    Finished work is not repeated, and the results are those of an undisturbed run. If the run is finished,
    its result is printed again, and its report is written if it is missing.
    """
    with ExitStack() as ending:
        with _reporting(as_json=as_json):
            from longwall.pipeline.progress.observers import choose_observer
            from longwall.pipeline.run import resuming

            result = ending.enter_context(
                resuming(path, overrides=overrides, observer=choose_observer(quiet, progress))
            )
        _print(result, as_json, quiet or progress == "json")


@app.command(epilog="Example:  longwall explain configs/match.toml --set workload.pattern=clique-5")
def explain(
    config: Config,
    overrides: Overrides = [],  # noqa: B006 - typer copies it
    workers: Machines = None,
    rates: RatesFile = None,
    every: Annotated[
        bool, typer.Option("--all", help="List all methods of counting: which apply, their steps, the one taken.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print plan, methods and predictions as one JSON object.")
    ] = False,
    progress: Progress = "auto",
    quiet: Quiet = False,
) -> None:
    """Show the plan of a config and predict its time, without running it.

    Nothing is written. A line says if a subgraph can have several embeddings, as with (a:0)-(b): see workload.count.
    """
    with _reporting(as_json=as_json):
        from longwall.pipeline.explain import explain as explain_config
        from longwall.pipeline.prediction.predict import Where
        from longwall.pipeline.progress.event_log import LoggedObserver
        from longwall.pipeline.progress.observers import choose_observer

        observer = LoggedObserver(choose_observer(quiet, progress))
        where = Where(workers, None if rates is None else user_path(rates))
        found = explain_config(config, overrides=overrides, observer=observer, where=where, methods=every)
        write_stdout(json.dumps(found.facts) if as_json else found.text)


@app.command(epilog="Example:  longwall report runs/demo")
def report(
    run: RunFolder,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN2",
            help="A run to compare it with.",
            show_default=False,
            autocompletion=completion.run_folders,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write the page.",
            show_default="report.html in the run's folder, or comparison.html",
        ),
    ] = None,
) -> None:
    """Make the report of a run anew, or compare two runs: a page for any browser."""
    with _reporting():
        from longwall.pipeline.report.command import report as write_report

        write_stdout(write_report(run, other, output))


@app.command(epilog="Example:  longwall ingest ca-AstroPh.edges.gz ca-AstroPh.zarr")
def ingest(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="The graph file, or its URL.", show_default=False)],
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The graph store to make.", show_default=False)],
    labels: Annotated[
        str | None, typer.Option(help='Vertex labels: a file of "vertex label" lines.', show_default=False)
    ] = None,
    transactions: Annotated[
        str | None,
        typer.Option(help='Transactions of the vertices: a file of "vertex transaction" lines.', show_default=False),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="edge-list, matrix-market, parquet, lg, graph, dimacs or transactions (gSpan's).",
            show_default="by the file's extension",
            autocompletion=completion.one_of(*FORMATS),
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="The two columns of an edge list or a Parquet file that hold the edges: names, or numbers from 1.",
            show_default="source and target or other names that are known, or the only two",
        ),
    ] = None,
    edge_label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that labels the edges.", show_default=False)
    ] = None,
    vertices: Annotated[
        str | None,
        typer.Option(help="Instead of labels: a table with columns such as id and label.", show_default=False),
    ] = None,
    vertex_label: VertexLabel = None,
    vertex_name: VertexName = None,
    ids: Ids = "auto",
    header: Header = None,
    empty: Empty = "refuse",
    memory: Memory = None,
    spill: Spill = Path("spill"),
    disk: Disk = None,
    progress: Progress = "auto",
    quiet: Quiet = False,
) -> None:
    """Turn a graph file of any size into a graph store, which opens much faster.

    Reads edge lists (.txt, .tsv, .csv, any separator), Matrix Market (.mtx), Parquet, GraphML, GEXF, GML, node-link
    JSON, DIMACS (.col, .gr), METIS, Pajek (.net), SIF, .lg and .graph files, and databases of graphs (.gspan, folders
    of TU data sets, or --format transactions), compressed (.gz, .zst, .bz2, .xz, .zip) or not. Vertices are integers
    or have names; directions, loops and repeated edges are dropped, further columns are ignored.
    """
    with _reporting():
        from longwall.pipeline.progress.observers import choose_observer
        from longwall.storage.ingest.ingest import ingest as ingest_file
        from longwall.storage.ingest.tables.table_options import TableOptions

        store = user_path(store)
        _check_choice("--ids", ids, IDS)
        _check_choice("--empty", empty, EMPTY)
        chosen: Any = _pair(columns)
        label = None if edge_label is None else _column(edge_label)
        table = TableOptions(chosen, label, ids, header, vertex_label, vertex_name, empty)  # type: ignore[arg-type]
        options: dict[str, Any] = {"transactions": transactions, "file_format": file_format, "table": table}
        make = partial(ingest_file, source, store, one_of(labels, vertices), **options)
        make_store(store, memory, spill, disk, choose_observer(quiet, progress), make)


@app.command(epilog="Example:  longwall generate rmat random.zarr --scale 14 --edge-factor 16 --seed 1 --labels 10")
def generate(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="rmat, erdos-renyi or barabasi-albert.",
            show_default=False,
            autocompletion=completion.one_of("rmat", "erdos-renyi", "barabasi-albert"),
        ),
    ],
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The graph store to make.", show_default=False)],
    seed: Annotated[int, typer.Option(help="The same seed gives the same graph.")] = 1,
    scale: Annotated[int | None, typer.Option(help="rmat: 2^scale vertices before cleaning.")] = None,
    edge_factor: Annotated[int | None, typer.Option(help="rmat: edges drawn per vertex.")] = None,
    a: Annotated[float | None, typer.Option("--a", help="rmat: probability of the first quadrant.")] = None,
    b: Annotated[float | None, typer.Option("--b", help="rmat: probability of the second quadrant.")] = None,
    c: Annotated[float | None, typer.Option("--c", help="rmat: probability of the third quadrant.")] = None,
    vertices: Annotated[int | None, typer.Option(help="erdos-renyi, barabasi-albert: number of vertices.")] = None,
    edges: Annotated[int | None, typer.Option(help="erdos-renyi: number of edges.")] = None,
    edges_per_vertex: Annotated[
        int | None, typer.Option(help="barabasi-albert: edges that each new vertex brings.")
    ] = None,
    num_labels: Annotated[
        int | None, typer.Option("--labels", help="The number of labels, one of which each vertex gets at random.")
    ] = None,
    memory: Memory = None,
    spill: Spill = Path("spill"),
    disk: Disk = None,
    progress: Progress = "auto",
    quiet: Quiet = False,
) -> None:
    """Make a random graph of any size, as a graph store."""
    given = {
        "scale": scale,
        "edge_factor": edge_factor,
        "a": a,
        "b": b,
        "c": c,
        "vertices": vertices,
        "edges": edges,
        "edges_per_vertex": edges_per_vertex,
        "num_labels": num_labels,
    }
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with _reporting():
        if num_labels is not None and num_labels < 1:
            raise InputError(f"--labels: {num_labels} is too small, give 1 or more, or leave it out for no labels")
        from longwall.pipeline.progress.observers import choose_observer
        from longwall.storage.generators.kinds import generate_store

        store = user_path(store)
        make = partial(generate_store, kind, store, seed=seed, **parameters)
        try:
            make_store(store, memory, spill, disk, choose_observer(quiet, progress), make)
        except InputError as error:
            raise InputError(re.sub(r"parameter '(\w+)'", _option, str(error))) from None


def _check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value of an option that is not among its choices."""
    if value not in choices:
        raise InputError(f"{option}: expected {', '.join(choices[:-1])} or {choices[-1]}, not {brief(value)}")


def _pair(columns: str | None) -> tuple[str | int, ...] | None:
    """Return what --columns names."""
    return None if columns is None else tuple(_column(name.strip()) for name in columns.split(","))


def _column(text: str) -> str | int:
    """A column by its name, or its number."""
    return int(text) if text.isascii() and text.isdigit() else text


def _option(parameter: re.Match[str]) -> str:
    """The option for a generator's parameter."""
    return "--labels" if parameter[1] == "num_labels" else f"--{parameter[1].replace('_', '-')}"


@app.command(epilog="Example:  longwall info ca-AstroPh.zarr")
def info(
    graph: Annotated[
        Path,
        typer.Argument(metavar="GRAPH", help="A graph store, or any graph file.", show_default=False, readable=False),
    ],
    columns: Columns = None,
    vertices: LabelFile = None,
    vertex_name: VertexName = None,
    ids: Ids = "auto",
    header: Header = None,
    empty: Empty = "refuse",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the size, degrees, labels and hash of a graph.

    What is read of a file, and how, is said on standard error.
    """
    with _reporting(as_json=as_json):
        from longwall.pipeline.inputs import open_observed
        from longwall.pipeline.progress.observers import choose_observer
        from longwall.storage.graph.graph_store import describe_store
        from longwall.storage.graph.info import info as describe
        from longwall.storage.graph.store_header import is_store

        graph = user_path(graph)
        options: dict[str, Any] = {
            "columns": _pair(columns),
            "labels": vertices,
            "vertex_name": vertex_name,
            "ids": ids,
            "header": header,
            "empty": empty,
        }
        if is_store(graph):
            facts = describe_store(graph)
        else:
            facts = describe(open_observed(graph, choose_observer(quiet=False), **options))
    if as_json:
        write_stdout(json.dumps(facts))
        return
    if "closed_wedge_fraction" in facts:
        facts = {f"{name}_(estimate)" if name == "closed_wedge_fraction" else name: facts[name] for name in facts}
    width = max(map(len, facts))
    for name, value in facts.items():
        write_stdout(f"{name.replace('_', ' '):{width}}  {readable(value)}")


@app.command(epilog="Example:  longwall patterns house --draw")
def patterns(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PATTERN",
            help="Patterns to show.",
            show_default="those with a name",
            autocompletion=completion.pattern_names,
        ),
    ] = [],  # noqa: B006 - typer copies it
    draw: Annotated[bool, typer.Option("--draw", help="Draw which vertices are adjacent.")] = False,
) -> None:
    """List the patterns that have a name, or show some."""
    with _reporting():
        from longwall.pipeline.patterns.parse import named_patterns, parse_pattern
        from longwall.pipeline.terminal.drawing import drawn

        rows = [(name, parse_pattern(name).edge_text, "") for name in names] or named_patterns()
        width = max(len(name) for name, _, _ in rows)
        for name, edges, text in rows:
            write_stdout(f"{harmless(name):{width}}  {'; '.join(part for part in (edges, text) if part)}")
            if draw and edges:
                write_stdout(drawn(parse_pattern(name if names else edges)) + "\n")
    if not names:
        more = 'Any other connected pattern: "0-1,1-2,2-0", "(a)-(b)-(c), (a)-(c)", or a .graph or .graphml file.'
        write_stdout(f"\n{more}")


def _print(result: "Result", as_json: bool, quiet: bool) -> None:
    """Print the result of a finished run; an interrupt while it is printed ends with the path of the results."""
    try:
        print_result(result, as_json=as_json, quiet=quiet)
    except KeyboardInterrupt:
        write_stderr(f"\ninterrupted: the run is done, its results are in {results_of(result)}")
        raise typer.Exit(signals.exit_code()) from None


def main() -> None:
    """Run the command line and leave with its exit code."""
    app()


@contextmanager
def _reporting(*, as_json: bool = False, config: str = "") -> Iterator[None]:
    """Turn each way in which work ends badly into lines on standard error and an exit code; `as_json`: also JSON."""
    fail = partial(print_failure, config=config)
    try:
        require_address_space()
        yield
    except InputError as error:
        report_error(str(error))
        if as_json:
            fail("InputError", str(error), ExitCode.BAD_INPUT, keys=error.keys)
        raise typer.Exit(ExitCode.BAD_INPUT) from None
    except (RunError, MemoryError, OSError) as error:
        report_error(reason_of(error))
        if as_json:
            fail("RunError", reason_of(error), ExitCode.RUN_FAILED, run=getattr(error, "run", ""))
        raise typer.Exit(ExitCode.RUN_FAILED) from None
    except KeyboardInterrupt as interrupt:
        message = f"interrupted: {interrupt if interrupt.args else 'nothing is left behind'}"
        write_stderr(f"\n{message}")
        if as_json:
            fail("KeyboardInterrupt", message, signals.exit_code(), run=getattr(interrupt, "run", ""))
        raise typer.Exit(signals.exit_code()) from None


add_commands(app, _reporting)
add_cleaning(app, _reporting)
