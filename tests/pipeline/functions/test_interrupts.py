"""An interrupt ends a function, leaves no file, and the next call works; so in programs and in cells of a notebook."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_CODE = """
import json, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in the process of a notebook
import longwall, networkx
from longwall.kernels.jit import compile_notice
compile_notice.SECONDS = float("inf")

big = longwall.generate_graph("rmat", scale=14, edge_factor=16, seed=1)
karate = longwall.graph(networkx.karate_club_graph())
longwall.count(karate, "path-7")

class Interrupting:
    def phase(self, name, total, unit):
        if name == "counting" or name == "listing" or total:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    def advance(self, n): ...
    def near_limit(self, share): ...
    def note(self, text): ...
    def close(self): ...

ends = []
for ask in (
    lambda: longwall.count(big, "cycle-7", progress=Interrupting()),
    lambda: longwall.match(big, "path-6", progress=Interrupting()).to_arrow(),
):
    try:
        ask()
        ends.append("finished")
    except KeyboardInterrupt as error:
        ends.append(repr(error))
    ends.append(os.listdir("."))
ends.append(longwall.count(karate, "diamond"))
ends.append(os.listdir("."))
print(json.dumps(ends))
"""


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_and_the_next_call_works(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CODE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["KeyboardInterrupt()", [], "KeyboardInterrupt()", [], 151, []]
    assert done.stderr == ""


def test_a_child_does_not_end_the_search_of_its_parent(graph) -> None:
    import longwall

    found = longwall.match(graph, "wedge", memory=200_000, threads=1, engine="cpu")
    batches = iter(found)
    rows = next(batches).num_rows
    if not (child := os.fork()):
        code = 1
        try:
            next(batches)
        except longwall.InputError as error:
            code = 0 if "forked from" in str(error) else 2
        finally:
            found.close()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert rows + sum(batch.num_rows for batch in batches) == longwall.count(graph, "wedge")
