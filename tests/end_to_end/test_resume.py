"""A run that was killed, at any moment and more than once, is resumed to the results of an undisturbed run."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

import naive
import naive_cliques
import networkx as nx
import pytest
from breakable import CONSTANTS, EDGES, KINDS, LABELS, LIMIT, Workshop, embeddings_of
from kill import Fault, status

import longwall
from longwall.kernels.host.patterns.pattern_codes import code_edges, connected_codes

KILLS_OF_EACH_KIND = 7
SHORT = ("count by search", "listing")


@pytest.fixture(scope="module")
def workshop(launch, tmp_path_factory) -> Workshop:
    return Workshop(launch, tmp_path_factory.mktemp("workshop"))


def break_often(workshop: Workshop, kind: str, kills: int, acts: list[str], seed: str) -> None:
    """Break runs at random events and after random times, each up to three times, until so many breaks are seen."""
    draw, struck = random.Random(seed), 0
    whole = workshop.undisturbed(kind)
    for _ in range(4 * kills):
        faults = [
            Fault(draw.choice(acts), event=draw.randint(1, whole.events))
            if draw.random() < 0.8
            else Fault("kill", seconds=draw.uniform(0, whole.seconds))
            for _ in range(3)
        ]
        struck += workshop.check(kind, faults)
        if struck >= kills:
            return
    pytest.fail(f"only {struck} of the faults struck")


def test_there_are_fifty_kills():
    assert KILLS_OF_EACH_KIND * len(KINDS) >= 50


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_is_resumed_to_the_same_results(workshop, kind):
    break_often(workshop, kind, KILLS_OF_EACH_KIND, ["kill"], kind)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", [*SHORT[::-1], "listing by levels", "triangles per vertex"])
def test_a_power_cut_loses_nothing_that_was_recorded(workshop, kind):
    break_often(workshop, kind, 5, ["power cut"], kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_kills(workshop, kind):
    break_often(workshop, kind, 60, ["kill", "kill", "power cut"], f"{kind} again")


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHORT)
def test_a_run_may_be_killed_at_each_of_its_moments(workshop, kind):
    """Without commits in between, so that the beginning and the end of a run are seen whole."""
    whole = workshop.undisturbed(kind, often=False)
    for event in range(1, whole.events + 1):
        workshop.check(kind, [Fault("kill", event=event)], often=False)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - set(SHORT)))
def test_any_run_may_be_killed_at_each_of_its_moments(workshop, kind):
    whole = workshop.undisturbed(kind, often=False)
    for event in range(1, min(whole.events, 150) + 1):
        workshop.check(kind, [Fault("kill", event=event)], often=False)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_undisturbed_run_is_right(workshop, kind):
    found = workshop.undisturbed(kind).answer
    match kind:
        case "cliques":
            assert found["counts"] == [naive.igraph_count_cliques(EDGES, 4)]
        case "cliques by size" | "cliques per vertex":
            cliques = {one for one in map(frozenset, nx.enumerate_all_cliques(nx.Graph(EDGES))) if len(one) > 2}
            sizes = naive_cliques.sizes(cliques)
            assert dict(found["sizes"]) == sizes
            assert found["counts"] == [count for _, count in sorted(sizes.items())]
            if kind == "cliques per vertex":
                assert {row[:2]: row[2] for row in found["vertices"]} == dict(
                    Counter((vertex, len(clique)) for clique in cliques for vertex in clique)
                )
        case "triangles per vertex":
            expected = naive.triangles_per_vertex(EDGES)
            assert dict(found["vertices"]) == expected
            assert found["counts"] == [sum(expected.values()) // 3]
        case "algorithm":
            graph = nx.Graph(EDGES)
            sets = [
                chosen
                for chosen in combinations(sorted(graph), 4)
                if all(sum(not graph.has_edge(u, v) for v in chosen) <= 2 for u in chosen)
            ]
            assert found["counts"] == [len(sets)]
            assert sorted(tuple(sorted(row)) for row in found["rows"]) == sets
        case "maximal cliques":
            sizes = naive_cliques.sizes(naive_cliques.maximal_cliques(EDGES))
            assert dict(found["sizes"]) == sizes
            assert found["counts"] == [count for _, count in sorted(sizes.items())]
        case "maximal cliques per vertex":
            cliques = {one for one in naive_cliques.maximal_cliques(EDGES) if len(one) > 2}
            expected = naive_cliques.per_vertex(cliques)
            assert {vertex: (count, largest) for vertex, count, largest in found["vertices"] if count} == expected
            assert dict(found["sizes"]) == naive_cliques.sizes(cliques)
        case "listing of maximal cliques":
            rows = [frozenset(row[0]) for row in found["embeddings"]]
            assert set(rows) == {one for one in naive_cliques.maximal_cliques(EDGES) if len(one) > 2}
            assert found["counts"] == [len(rows)] == [len(set(rows))]
        case "listing with a limit":
            assert found["counts"] == [LIMIT]
            assert len(found["embeddings"]) == LIMIT
        case "motifs" | "orbits":
            theirs = naive.igraph_motifs(EDGES, 4)
            kinds = [naive.Query(4, code_edges(code, 4)) for code in connected_codes(4).tolist()]
            assert found["counts"] == [theirs[naive.isomorphism_class(kind)] for kind in kinds]
        case "frequent patterns":
            assert {row[4] for row in found["patterns"]} == {2, 3, 4}, "every level has patterns"
            for text, labels, _, _, size, _, _, count in found["patterns"]:
                edges = tuple((int(edge[0]), int(edge[2])) for edge in text.split(","))
                query = naive.Query(size, edges, tuple(labels))
                mappings = naive.igraph_count_mappings(EDGES, query, LABELS)
                assert count == mappings // len(naive.automorphisms(query))
            assert len(found["embeddings"]) == sum(found["counts"])
        case "distinct subgraphs":
            query, labels = KINDS[kind].query()
            assert found["counts"] == [naive.count_subgraphs(EDGES, query, labels)]
        case _:
            query, labels = KINDS[kind].query()
            assert found["counts"] == [
                naive.igraph_count_mappings(EDGES, query, labels) // len(naive.automorphisms(query))
            ]
            if "embeddings" in found:
                assert embeddings_of(found["embeddings"], query) == naive.embeddings(EDGES, query)
                assert len(found["embeddings"]) == found["counts"][0]


def begun(workshop: Workshop, kind: str = "listing", share: float = 0.6, often: bool = True) -> tuple[Path, Path]:
    """Kill a run in the midst of its work. Return its working directory and its folder."""
    whole = workshop.undisturbed(kind)
    folder = workshop.folder(kind)
    outcome = workshop.go_on(kind, folder, fault=Fault("kill", event=int(share * whole.events)))
    assert outcome.killed
    return folder, folder / "runs" / "run"


def commits(run: Path) -> list[Path]:
    """The files of commits, in their order."""
    return sorted((run / "checkpoint" / "commits").glob("*.json"))


def refused(workshop: Workshop, run: Path, *words: str) -> str:
    """Check that resuming is refused with exit code 2 and one line. Return the line."""
    outcome = workshop.launch("resume", run, "--quiet", *words, folder=run.parents[1])
    assert outcome.code == 2, outcome.err
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_what_is_finished_is_not_done_again(workshop):
    folder, run = begun(workshop)
    before = [file.read_bytes() for file in commits(run)]
    assert len(before) > 3
    outcome = workshop.go_on("listing", folder, fault=Fault("kill", event=60))
    assert outcome.killed
    after = [file.read_bytes() for file in commits(run)]
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["count by search", "listing", "listing by levels"])
def test_commits_that_were_not_made_are_made_again(workshop, kind):
    """The last commits are gone, and the next one was being written."""
    folder, run = begun(workshop, kind)
    number = len(commits(run))
    for lost in sorted({1, 2, number // 2, number}):
        copy = workshop.folder(kind)
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        for file in commits(copy / "runs" / "run")[-lost:]:
            content = file.read_bytes()
            file.unlink()
        file.with_name(f"{file.name}.{'0' * 32}.partial").write_bytes(content[: len(content) // 2])
        outcome = workshop.go_on(kind, copy)
        if kind == "listing by levels" and outcome.code == 1:
            # A level is removed once the commit that finishes the next one is on disk; no crash loses that one.
            assert "level-" in outcome.err
            assert "gone" in outcome.err
            continue
        assert outcome.code == 0, outcome.err
        workshop.compare(kind, copy / "runs" / "run")


def test_a_damaged_commit_is_never_counted(workshop):
    """Whatever byte of the commits is wrong: an error message."""
    folder, _ = begun(workshop, "count by search")
    draw = random.Random(1)
    for _ in range(6):
        copy = workshop.folder("count by search")
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        file = draw.choice(commits(copy / "runs" / "run"))
        damaged = bytearray(file.read_bytes())
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        outcome = workshop.go_on("count by search", copy)
        assert outcome.code == 1
        assert f"{file.name} is not what was written" in outcome.err


def test_commits_of_many_attempts_are_folded(workshop):
    folder, run = begun(workshop)
    made = len(commits(run))
    fold = {**CONSTANTS, "longwall.pipeline.run_store.commit_files:FOLDED": made}
    outcome = workshop.launch("resume", run, "--quiet", folder=folder, fault=Fault("kill", event=60), constants=fold)
    assert outcome.killed
    assert [file.name for file in commits(run) if "until-" in file.name] == [f"until-{made:08}.json"]
    assert f"{made - 1:08}.json" not in {file.name for file in commits(run)}
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)


def test_a_lost_result_file_is_noticed(workshop):
    """A file that a record names is gone or cut: an error message, and no result without its rows."""
    for damage in (Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-20])):
        folder, run = begun(workshop)
        record = json.loads(commits(run)[0].read_text())["commits"][0]
        damage(run / record["files"][0]["name"])
        outcome = workshop.go_on("listing", folder)
        assert outcome.code == 1, outcome
        assert "embeddings-" in outcome.err
        assert status(run) != "done"


def test_other_threads_and_budgets_give_the_same(workshop):
    for settings in (["engine.threads=1"], ["engine.threads=3", "memory.host=64MiB"], ["memory.disk=1GiB"]):
        folder, run = begun(workshop)
        words = [word for setting in settings for word in ("--set", setting)]
        outcome = workshop.launch("resume", run, "--quiet", *words, folder=folder)
        assert outcome.code == 0, outcome.err
        workshop.compare("listing", run)


def test_the_library_resumes(workshop):
    _, run = begun(workshop)
    result = longwall.resume(run)
    assert result.path == run
    whole = workshop.undisturbed("listing").answer
    assert [result.count] == whole["counts"]
    assert result.table().num_rows == result.count
    workshop.compare("listing", run)
    assert longwall.resume(run).count == result.count  # it is finished


def test_the_command_line_prints_the_summary(workshop):
    folder, run = begun(workshop)
    outcome = workshop.launch("resume", run, "--quiet", "--json", folder=folder)
    assert [outcome.json["count"]] == workshop.undisturbed("listing").answer["counts"]
    assert outcome.json["run"] == str(run)


def test_a_finished_run_says_so_and_stays_as_it_is(workshop):
    folder, run = begun(workshop)
    assert workshop.go_on("listing", folder).code == 0
    outcome = workshop.launch("resume", run, folder=folder)
    assert outcome.code == 0
    assert "is finished" in outcome.err
    workshop.compare("listing", run)


def test_an_edited_config_is_refused(workshop):
    folder, run = begun(workshop)
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace("[workload]", "[workload]\ninduced = true"))
    assert "config.toml" in refused(workshop, run)
    (run / "config.toml").write_text(config)
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)


def test_another_graph_is_refused(workshop):
    folder, run = begun(workshop)
    graph = (folder / "graph.txt").read_text()
    (folder / "graph.txt").write_text(graph + "500 501\n")
    assert "graph" in refused(workshop, run)
    (folder / "graph.txt").write_text(graph)
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)


def test_another_format_is_refused(workshop):
    folder, run = begun(workshop)
    text = (run / "manifest.json").read_text()
    manifest = json.loads(text)
    manifest["checkpoint_format"] += 1
    (run / "manifest.json").write_text(json.dumps(manifest))
    said = refused(workshop, run)
    assert "version" in said
    assert "format" in said
    (run / "manifest.json").write_text(text)
    assert workshop.go_on("listing", folder).code == 0


def test_what_results_depend_on_cannot_be_set(workshop):
    folder, run = begun(workshop)
    for setting in ("workload.pattern=wedge", "export.limit=3", "graph.path=other.txt", "run.name=other"):
        assert setting in refused(workshop, run, "--set", setting)
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder", "a broken manifest"])
def test_what_is_no_run_is_refused(workshop, tmp_path, what):
    path = tmp_path / "runs" / "x"
    path.parent.mkdir()
    match what:
        case "a file":
            path.write_text("")
        case "an empty folder":
            path.mkdir()
        case "a broken manifest":
            path.mkdir()
            (path / "manifest.json").write_text('{"status": "run')
    assert str(path) in refused(workshop, path)


def test_a_run_that_is_still_running_is_refused(workshop, tmp_path):
    (tmp_path / "long.toml").write_text(
        '[graph]\ngenerator = { kind = "erdos-renyi", vertices = 1000, edges = 300000 }\n'
        '[workload]\nkind = "cliques"\nk = 9\n[engine]\nkind = "cpu"\nthreads = 1\n'
    )
    command = [sys.executable, "-m", "longwall", "run", "long.toml", "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    run = tmp_path / "runs" / "long"
    try:
        end = time.monotonic() + 60
        while status(run) is None:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        assert "busy" in refused(workshop, run)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    # The lock died with it.
    outcome = workshop.launch("resume", run, "--quiet", folder=tmp_path, fault=Fault("kill", seconds=0.5))
    assert outcome.killed


def test_a_failed_resume_can_be_resumed(workshop):
    folder, run = begun(workshop)
    for event in (3, 20, 50):
        outcome = workshop.go_on("listing", folder, fault=Fault("disk full", event=event))
        assert outcome.code == 1, outcome.err
        assert "longwall resume" in outcome.err
    assert workshop.go_on("listing", folder).code == 0
    workshop.compare("listing", run)
