"""Every command that the README, the docs, the help texts and the configs show does what it says, in the order shown.

Commands of `longwall` and blocks of Python are run in this process, in a folder with the files that they mention.
Blocks of markdown say what they are: ``sh`` are commands, ``console`` are commands with what they print, ``python`` is
run, ``pycon`` is a session whose answers are compared, ``toml`` is a config, or a part of one; one that begins with a
comment ``# NAME.toml`` is written to a file. Blocks with a ``title="NAME"`` are the files of that name.
Code in the text that begins with the name of a program is a command, too; of one with placeholders the options must
be there.
"""

from __future__ import annotations

import doctest
import gzip
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import DATA
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.config import load_config
from longwall.storage.observer import NullObserver

ROOT = Path(__file__).parents[2]
FOLLOWED = "extending.md"
"""A page whose recipe test_extending.py follows."""
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if path.name != FOLLOWED),
]
LANGUAGES = {"sh", "console", "python", "pycon", "toml", "csv", "yaml", "json", "text"}
PROGRAMS = r"longwall|python3?|pip|pytest|dask|helm|source|curl|git|ruff|mypy"
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:{PROGRAMS}) ")
PLACEHOLDER = re.compile(r"\[|\.\.\.|(?<![\w.=-])[A-Z]{3,}(?![\w.=-])")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]

WHOLE_COMMANDS = {
    f"longwall {name}" for name, command in COMMANDS.items() if not any(one.required for one in command.params)
}

_INSTALLS = "installs packages"
_TESTS = "runs these tests"
_MACHINES = "needs several machines"
_LONG = "takes minutes to hours, or a GPU"
_URL = "needs an object store"
NOT_RUN = {
    "longwall doctor --warm": _LONG,
    "python3 -m venv .venv": _INSTALLS,
    "pip install .": _INSTALLS,
    "source .venv/bin/activate": _INSTALLS,
    "pip install '.[cuda]'": _INSTALLS,
    "pip install '.[cuda12]'": _INSTALLS,
    "pip install '.[cluster]'": _INSTALLS,
    "pip install dask-jobqueue": _INSTALLS,
    "pip install fsspec s3fs": _INSTALLS,
    "pip install -e '.[test]'": _INSTALLS,
    "pip install -e '.[docs]'": _INSTALLS,
    'pytest -n auto -m "not slow"': _TESTS,
    'pytest tests/storage -m "not slow"': _TESTS,
    "LONGWALL_SCREENSHOTS=some-folder pytest tests/pipeline/report -m slow": _TESTS,
    "LONGWALL_SCREENSHOTS=some-folder pytest -m slow tests/project/test_site.py": _TESTS,
    "pytest -m long tests/end_to_end/test_crash_writes.py tests/end_to_end/test_crash_store.py": _TESTS,
    'PYTHONPATH=tests/emulator .venv/bin/pytest -m "gpu and not slow" tests/end_to_end/test_access.py': _TESTS,
    "dask scheduler --host 10.0.0.1": _MACHINES,
    "dask worker tcp://10.0.0.1:8786 --host 10.0.0.2 --nworkers 2 --nthreads 8 --memory-limit 0": _MACHINES,
    "CUDA_VISIBLE_DEVICES=1 dask worker tcp://10.0.0.1:8786 --nthreads 1 --memory-limit 0": _MACHINES,
    "dask cuda worker tcp://10.0.0.1:8786 --memory-limit 0": _MACHINES,
    "dask scheduler --protocol tls --host 10.0.0.1 --tls-ca-file ca.pem --tls-cert me.pem --tls-key me.key": _MACHINES,
    "dask worker tls://10.0.0.1:8786 --tls-ca-file ca.pem --tls-cert me.pem --tls-key me.key "
    "--memory-limit 0": _MACHINES,
    "dask ssh --hostfile hosts.txt --nworkers 1 --nthreads 8 --memory-limit 0 "
    "--remote-python /shared/venv/bin/python": _MACHINES,
    "helm install --repo https://helm.dask.org --create-namespace -n dask-operator --generate-name "
    "dask-kubernetes-operator": _MACHINES,
    "longwall run /shared/mine.toml": _MACHINES,
    "from dask_jobqueue import SLURMCluster": _MACHINES,
    "longwall resume s3://bucket/runs/NAME": _URL,
    "longwall generate rmat big.zarr --scale 26 --edge-factor 16 --memory 8GiB": _LONG,
    "python -m benchmarks.suites.counts": _LONG,
    "python -m benchmarks.suites.counts --engine cuda --scales 14,18,20,22": _LONG,
    "python -m benchmarks.gpu.gpu_kernels --scales 13 14 18 20 22": _LONG,
    "python -m benchmarks.gpu.host_link": _LONG,
    "PYTHONPATH=tests/emulator python -m benchmarks.gpu.host_calls": _LONG,
    "python -m benchmarks.gpu.start": _LONG,
    "python -m benchmarks.gpu.load": _LONG,
    "python -m benchmarks.suites.edge_labels --scales 12,14": _LONG,
    "python -m benchmarks.suites.listings": _LONG,
    "python -m benchmarks.suites.listings --maximal-cliques --scale 14 --edge-factor 8": _LONG,
    "python -m benchmarks.gpu.out_of_core --scale 24": _LONG,
    "python -m benchmarks.gpu.labelled_searches": _LONG,
    "python -m benchmarks.gpu.labelled_queries --engine cpu --json FILE": _LONG,
    "python -m benchmarks.gpu.orbits --time 300": _LONG,
    "python -m benchmarks.gpu.all_cliques --time 300": _LONG,
    "python -m benchmarks.suites.queries --data DATA --graphs yeast,hprd,cora,citeseer,socfb-Reed98,socfb-Amherst41 "
    "--each 50": _LONG,
    "python -m benchmarks.suites.frequent --data DATA --only falling --limit 500": _LONG,
    "python -m benchmarks.suites.predictions --scales 16 18": _LONG,
    "python -m benchmarks.suites.scale --scales 18 20": _LONG,
    "python -m benchmarks.suites.scale --engine cuda --scales 24": _LONG,
    "python -m benchmarks.suites.beyond": _LONG,
    "python -m benchmarks.gpu.hubs --engine cpu --leaves 100000": _LONG,
    "python -m benchmarks.suites.plan_choice --data DATA --graphs ca-GrQc,p2p-Gnutella04 --seconds 1.5": _LONG,
    "python -m benchmarks.gpu.decompositions --scales 13 16 --time 240": _LONG,
    "python -m benchmarks.gpu.both_engines": _LONG,
    "python -m benchmarks.gpu.triangle_variants": _LONG,
    "python -m benchmarks.gpu.small_counts --graph ca-AstroPh.edges.gz": _LONG,
    "python -m benchmarks.suites.six_vertices --data DATA --graphs ca-AstroPh,R-MAT-12 --seconds 20 --each": _LONG,
    "python -m benchmarks.gpu.timeline": _LONG,
    "python -m benchmarks.gpu.gpu_memory --out FILE.md": _LONG,
    "python -m benchmarks.suites.ingest FOLDER --scale 22": _LONG,
    "python -m benchmarks.suites.store FOLDER --scale 22": _LONG,
    "python -m benchmarks.suites.memory --scratch FOLDER": _LONG,
    "python -m benchmarks.suites.host_tier --work FOLDER --scale 22 --budget 128MiB": _LONG,
    "python -m benchmarks.suites.host_tier triangles 4-cliques --work FOLDER --scale 22 --budget 128MiB "
    "--workers 4": _LONG,
    "python -m benchmarks.suites.spill": _LONG,
    "python -m benchmarks.suites.calls --steps": _LONG,
    "python -m benchmarks.suites.motifs --scales 14 --sizes 3,4 --real ca-AstroPh.edges.gz --real-sizes 4,5": _LONG,
    "python -m benchmarks.suites.frequent --data DATA --scale 12 14": _LONG,
    "python -m benchmarks.suites.sort --keys 4e9 --device 8GiB --host 80GiB": _LONG,
    "python -m benchmarks.suites.sort --keys 1e8 --engine cpu --no-check": _LONG,
    "python -m benchmarks.suites.cluster --scale 15 --repeats 2 --ranges 0": _LONG,
    "python -m benchmarks.gpu.maximal_cliques --rmat 13:16 15:16 16:8 18:4": _LONG,
    "python -m benchmarks.gpu.two_devices --out FILE.md": _LONG,
    "python -m benchmarks.suites.seeds --out seeds.md": _LONG,
    "python -m benchmarks.suites.seeds --engine cuda --out seeds.md": _LONG,
}
"""Command, or first line of Python -> why it is not run here."""


@dataclass(frozen=True)
class Step:
    """One thing that a page shows."""

    kind: str
    """``command``, ``synopsis``, ``python``, ``pycon``, ``toml`` or ``file``."""
    text: str
    output: tuple[str, ...] = ()
    """What the page says that it prints."""
    name: str = ""
    """Of the file that it is."""


def steps_of_page(text: str) -> Iterator[Step]:
    """What a page in markdown shows, in order."""
    prose: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("```"):
            prose.append(line)
            continue
        yield from _steps_of_prose("\n".join(prose))
        prose.clear()
        block = []
        for inner in lines:
            if inner.startswith("```"):
                break
            block.append(inner)
        yield from _steps_of_block(line[3:].strip(), block)
    yield from _steps_of_prose("\n".join(prose))


def _steps_of_prose(text: str) -> Iterator[Step]:
    for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        code = " ".join(found[1].split())
        named = re.fullmatch(r"\w+( [a-z]+)+", code)
        if COMMAND.match(code) and not (named and not code.startswith("longwall ")):
            partial = named and code not in WHOLE_COMMANDS
            shown = code in NOT_RUN or not (partial or PLACEHOLDER.search(code))
            yield Step("command" if shown else "synopsis", code)


def _steps_of_block(head: str, block: list[str]) -> Iterator[Step]:
    language, _, title = head.partition(" ")
    assert language in LANGUAGES, f"a block says what it is, one of {sorted(LANGUAGES)}: {block}"
    text = "\n".join(block) + "\n"
    named = re.fullmatch(r'title="([\w.-]+)"', title)
    assert bool(title) == bool(named), head
    if named:
        yield Step("file", text, name=named[1])
    if named and language == "python":  # a script: a command runs it
        return
    if language in ("python", "pycon", "toml"):
        yield Step(language, text)
    elif language == "console":
        assert block[0].startswith("$ "), block
        commands = re.split(r"^\$ ", "\n".join(block), flags=re.MULTILINE)[1:]
        for first, *output in (command.splitlines() for command in commands):
            yield Step("command", first, tuple(output))
    elif language == "sh":
        for line in "\n".join(block).replace("\\\n", " ").splitlines():
            for command in re.sub(r"\s+# .*", "", line).split(" && "):
                yield Step("command", command.strip())


def steps_of_configs() -> Iterator[Step]:
    """Commands in the comments of the configs."""
    for path in sorted((ROOT / "configs").glob("*.toml")):
        for line in path.read_text().splitlines():
            if line.startswith("#     ") and COMMAND.match(line[6:]):
                yield Step("command", re.split(r"  +", line[6:])[0])


def steps_of_help() -> Iterator[Step]:
    """Commands in the help texts."""
    for text in (app.info.epilog, *(command.epilog for command in app.registered_commands)):
        for command in re.findall(r"  (longwall .*?)(?:  |$)", text or ""):
            yield Step("command", command)


SOURCES = {
    **{page: tuple(steps_of_page((ROOT / page).read_text())) for page in PAGES},
    "configs": tuple(steps_of_configs()),
    "help": tuple(steps_of_help()),
}


def reason_not_to_run(step: Step) -> str | None:
    """Why a step is not run here; None if it is."""
    text = step.text.splitlines()[0] if step.kind == "python" else step.text
    return NOT_RUN.get(text, NOT_RUN.get(text.removeprefix(".venv/bin/")))


def write_files(folder: Path) -> None:
    """Write the files that commands mention: real graphs where they are here, small ones elsewhere."""
    shutil.copytree(ROOT / "configs", folder / "configs", ignore=shutil.ignore_patterns("__pycache__"))
    edges = "".join(f"{u} {v}\n" for u in range(30) for v in range(u) if (u * 7 + v * 3) % 5 < 2)
    for name in ("graph.txt", "my-graph.txt"):
        (folder / name).write_text(edges)
    compounds = "".join(
        f"t # {number}\nv 0 6\nv 1 6\nv 2 {7 + number % 2}\ne 0 1 1\ne 1 2 {1 + number % 3}\n" for number in range(12)
    )
    astro = DATA / "graphs" / "ca-AstroPh.edges.gz"
    if astro.is_file():
        shutil.copy(astro, folder)
        compounds = gzip.decompress((DATA / "transactions" / "Compound_422.gz").read_bytes()).decode()
    else:
        (folder / "ca-AstroPh.edges.gz").write_bytes(gzip.compress(edges.encode()))
    for name in ("compounds.txt", "my-compounds.txt"):
        (folder / name).write_text(compounds)
    (folder / "shared").mkdir()


class Interrupting(NullObserver):
    """Interrupts a run when its work begins."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        if name.startswith(("counting", "listing")):
            raise KeyboardInterrupt


def interrupt_again(run: Path) -> None:
    """Put a run that was interrupted in the place of one that is done."""
    config = tomllib.loads((run / "config.toml").read_text())
    shutil.rmtree(run)
    with pytest.raises(KeyboardInterrupt):
        longwall.run(config, observer=Interrupting())
    assert not (run / "results").exists()


def run_command(step: Step, folder: Path, *, real: bool) -> None:
    """Run a command of longwall, and see that it prints what the page says: `real` is whether its graph is here."""
    program, *words = shlex.split(step.text.replace("/shared/", f"{folder}/shared/"))
    if program == "python":
        subprocess.run([sys.executable, *words], cwd=folder, check=True, timeout=300)
        return
    assert program.removeprefix(".venv/bin/") == "longwall", f"list it in NOT_RUN, with the reason: {step.text}"
    if words[0] == "resume":
        interrupt_again(folder / words[1])
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{step.text}\n{result.output}\n{result.exception!r}"
    if real:
        printed = iter(plain(line, folder) for line in result.output.splitlines())
        for line in step.output:
            assert plain(line, folder) in printed, f"{step.text} does not print {line!r}\n{result.output}"


def plain(line: str, folder: Path) -> str:
    """A line without what differs from machine to machine: times, engines and where the folder is."""
    line = re.sub(r"^\d{4}-\d\d-\d\dT[\d:+-]+ ", "", line)  # of progress where no terminal shows it
    line = re.sub(r"compile \d+\.\d\d, ", "", line)  # the first run of a machine
    return re.sub(r"\d+\.\d\d\b", "0.00", line).replace(f"{folder}/", "").rstrip()


def check_synopsis(text: str) -> None:
    """See that a command and its options are there."""
    program, name, *_ = text.split()
    if program == "python":
        shown = subprocess.run(
            [sys.executable, ROOT / name, "--help"], capture_output=True, text=True, check=True
        ).stdout
        known = set(re.findall(r"--[a-z-]+", shown))
    else:
        assert program == "longwall", f"list it in NOT_RUN, with the reason: {text}"
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", text)) <= known, text


def check_config(text: str, folder: Path) -> None:
    """See that a config is one, or a part of one, and write it where it has a name."""
    base: dict[str, Any] = {"graph": {"path": "graph.txt"}, "workload": {"kind": "triangles"}}
    name = re.match(r"# ([\w.-]+\.toml)\n", text)
    if name:
        (folder / name[1]).write_text(text)
        load_config(folder / name[1])
    else:
        load_config(base | tomllib.loads(text))


def smaller(step: Step, instead: dict[str, str]) -> Step:
    """Return a step with smaller numbers."""
    for large, small in instead.items():
        step = replace(step, text=step.text.replace(large, small))
    return step


def run_session(text: str, names: dict[str, object], source: str) -> None:
    """Run a session of Python, and compare what it answers."""
    session = doctest.DocTestParser().get_doctest(text, names, source, None, 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    report: list[str] = []
    session.globs = names  # what a page makes stays until its end
    done = doctest.DocTestRunner(optionflags=flags).run(session, out=report.append, clear_globs=False)
    assert not done.failed, "".join(report)
    assert done.attempted


SMALLER = {
    "docs/tutorials/billion-edges.md": {
        "--scale 26": "--scale 9",
        "GiB": "MiB",
        'kind = "cuda"': 'kind = "cpu"',
        'host = "48MiB': 'host = "480MiB',
    },
}
"""Page -> what is smaller in the test than on the page, so that it takes no GPU and seconds in place of hours."""
SLOW = (
    *("README.md", "configs", "help", "docs/start.md", "docs/scale.md", "docs/reference/exit-codes.md"),
    *("docs/how-to/budgets.md", "docs/how-to/engines.md", "docs/how-to/limit-and-resume.md"),
    *("docs/how-to/python.md", "docs/how-to/large-graphs.md"),
    *("docs/tutorials/billion-edges.md", "docs/tutorials/payments.md"),
)
CLUSTER = ("docs/tutorials/dask.md",)


def marks_of(source: str) -> list[pytest.MarkDecorator]:
    """What a page takes: seconds, or a cluster of its own."""
    slow = [pytest.mark.slow] if source in (*SLOW, *CLUSTER) else []
    return slow + ([pytest.mark.cluster] if source in CLUSTER else [])


@pytest.mark.parametrize("source", [pytest.param(one, marks=marks_of(one)) for one in SOURCES])
def test_what_is_shown_works_in_the_order_shown(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}  # what a page makes stays until its end
    real = DATA.is_dir() or not any("ca-AstroPh" in step.text for step in SOURCES[source])
    for shown in SOURCES[source]:
        step = smaller(shown, SMALLER.get(source, {}))
        if reason_not_to_run(shown):
            continue
        if step.kind == "command":
            run_command(step, tmp_path, real=real)
        elif step.kind == "file":
            (tmp_path / step.name).write_text(step.text)
        elif step.kind == "pycon":
            run_session(step.text, names, source)
        elif step.kind == "synopsis":
            check_synopsis(step.text)
        elif step.kind == "toml":
            check_config(step.text, tmp_path)
        else:
            exec(compile(step.text, f"{source}: python", "exec"), names)


def test_every_exception_is_still_shown() -> None:
    shown = {step.text.splitlines()[0] for steps in SOURCES.values() for step in steps}
    shown |= {text.removeprefix(".venv/bin/") for text in shown}
    assert set(NOT_RUN) - shown == set()


def test_the_scripts_of_exceptions_are_there() -> None:
    for command in NOT_RUN:
        if command.startswith("python -m benchmarks."):
            assert (ROOT / f"{command.split()[2].replace('.', '/')}.py").is_file(), command


def test_commands_stand_in_blocks_that_say_so() -> None:
    """A command that is indented instead would be shown and not be run."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not [line for line in text.splitlines() if re.match(rf" +(?:\$ )?(?:{PROGRAMS}) ", line)], page


def test_every_source_shows_commands() -> None:
    """What finds none is broken."""
    few = {source for source, steps in SOURCES.items() if sum(step.kind == "command" for step in steps) < 4}
    bare = (
        "architecture",
        "benchmarks",
        "decisions",
        "exactness",
        "faults",
        "glossary",
        "index",
        "internals",
        "promise",
        "releasing",
        "results",
        "security",
        "seeds",
        "testing",
    )
    assert {name for name in few if name.count("/") < 2} <= {f"docs/{name}.md" for name in bare}
    shown = {kind: sum(step.kind == kind for steps in SOURCES.values() for step in steps) for kind in ("file", "pycon")}
    assert min(shown.values()) > 1, shown
    assert len(SOURCES["help"]) >= len([command for command in app.registered_commands if command.epilog])
