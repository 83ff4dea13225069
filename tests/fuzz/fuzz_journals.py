"""A damaged folder of an interrupted run: resume returns the right result or an error, never a wrong count."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq

import longwall
from longwall.pipeline.run_store.commit_files import CommitFiles
from longwall.storage.errors import RunError

SECONDS, BYTES = 10.0, 256 * 2**20
_DRAW = random.Random(7)
EDGES = sorted({(u, v) for u, v in ((_DRAW.randrange(20), _DRAW.randrange(20)) for _ in range(120)) if u < v})
WORKLOADS: list[dict[str, Any]] = [
    {"kind": "cliques", "k": 4},
    {"kind": "triangles", "output": "vertices"},
    {"kind": "triangles", "output": "embeddings"},
    {"kind": "cliques", "k": 4, "output": "embeddings", "order": "levels"},
    {"kind": "frequent", "min_support": 6, "max_edges": 2, "output": "embeddings"},
]
CONSTANTS = {
    "longwall.kernels.cpu.engine._TASKS_PER_WORKER": 4,
    "longwall.pipeline.execution.task_ranges._ARCS_PER_TASK": 1,
    "longwall.pipeline.run_store.commit_log.COMMIT_SECONDS": 0.0,
    "longwall.pipeline.execution.thread_executor._COMMITS_COST": float("inf"),
    "longwall.pipeline.execution.thread_executor._CRASH_COSTS": 0.0,
    "longwall.pipeline.execution.worker_memory.LARGEST_CHUNK": 64,
    "longwall.stages.export.ROWS_PER_FILE": 10,
}


@dataclass
class State:
    """Runs that were interrupted, at several moments, and the results of each in the end."""

    folder: Path
    expected: list[Any]
    begun: list[tuple[int, Path]]


def prepare(folder: Path) -> State:
    """Run every workload once, and let it end early after each number of commits."""
    for name, value in CONSTANTS.items():
        patch(name, value).start()
    (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    state = State(folder, [], [])
    for number, workload in enumerate(WORKLOADS):
        state.expected.append(answer(longwall.run(_config(folder, workload, f"whole-{number}"))))
        for commits in range(1, 12):
            name = f"begun-{number}-{commits}"
            if not _interrupted(_config(folder, workload, name), commits):
                break
            state.begun.append((number, folder / "runs" / name))
    return state


def run(state: State, rng: random.Random, folder: Path) -> None:
    """Damage a run in one to three places, and resume it."""
    number, begun = rng.choice(state.begun)
    run = folder / "run"
    shutil.copytree(begun, run)
    for _ in range(rng.randint(1, 3)):
        _damage(sorted(path for path in run.rglob("*") if path.is_file()), rng)
    found = answer(longwall.resume(run))
    assert found == state.expected[number], f"{found} instead of {state.expected[number]}"


def answer(result: longwall.Result) -> Any:
    """All rows of a run's tables, and its counts."""
    tables: dict[str, list[Any]] = {}
    for file in sorted((Path(result.path) / "results").glob("*.parquet")):
        with file.open("rb") as opened:
            rows = pq.ParquetFile(opened, page_checksum_verification=True).read().to_pylist()
        tables.setdefault(file.stem.partition("-")[0], []).extend(tuple(row.values()) for row in rows)
    return [one.count for one in result.patterns], {name: sorted(rows, key=repr) for name, rows in tables.items()}


def _config(folder: Path, workload: dict[str, Any], name: str) -> dict[str, Any]:
    plain = {key: value for key, value in workload.items() if key != "order"}
    scheduler = {"scheduler": {"order": workload["order"]}} if "order" in workload else {}
    return scheduler | {
        "graph": {"path": str(folder / "graph.txt")},
        "workload": plain,
        "memory": {"host": "512MiB", "disk": "1GiB", "spill": str(folder / "spill")},
        "engine": {"kind": "cpu", "threads": 1},
        "run": {"directory": str(folder / "runs"), "name": name},
    }


def _interrupted(config: dict[str, Any], commits: int) -> bool:
    """Let a run end once it has so many commits; False where it has no more."""
    create, left = CommitFiles.create, [commits]

    def stopping(self: CommitFiles, entries: Any) -> bool:
        if not left[0]:
            raise RunError("that is enough")
        left[0] -= 1
        return create(self, entries)

    with patch.object(CommitFiles, "create", stopping):
        try:
            longwall.run(config)
        except RunError:
            return True
    return False


def _damage(files: list[Path], rng: random.Random) -> None:
    """Change a file as a disk, a careless hand or a hostile one would; the commits most of all."""
    commits = [file for file in files if file.parent.name == "commits"]
    file = rng.choice(commits if commits and rng.random() < 0.5 else files)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    match rng.randrange(9):
        case 0:
            file.unlink()
        case 1:
            file.write_bytes(content[: rng.randrange(len(content) + 1)])
        case 2 if content:
            changed = bytearray(content)
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
        case 3 if lines:
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            file.write_bytes(b"".join(lines))
        case 4 if lines:
            del lines[rng.randrange(len(lines))]
            file.write_bytes(b"".join(lines))
        case 5:
            rng.shuffle(lines)
            file.write_bytes(b"".join(lines))
        case 6:
            file.write_bytes(rng.choice(files).read_bytes())
        case 7:
            other = file.with_name(rng.choice(files).name)
            shutil.move(file, other)
        case _:
            at = rng.randrange(len(content) + 1)
            file.write_bytes(content[:at] + rng.randbytes(rng.randint(1, 20)) + content[at:])
