"""Hostile input to every reader ends well or with an error of Longwall: never wrong, never a crash, bounded."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import harness


@pytest.mark.slow
@pytest.mark.parametrize("target", harness.target_names())
def test_hostile_input_is_read_right_or_refused(target: str, tmp_path: Path) -> None:
    """`LONGWALL_FUZZ_CASES` gives another number of cases."""
    outcome = harness.fuzz(target, 0, harness.CASES, tmp_path)
    assert not outcome.findings, "\n".join(outcome.findings[:5])
    assert sum(outcome.kinds.values()) == harness.CASES
    assert outcome.kinds["well"], "no case was read: the mutations are too rough"
    assert outcome.kinds["refused"], "no case was refused: the mutations are too mild"


MISBEHAVING = """
import os, signal, threading, time
import numpy as np
from longwall.storage.errors import InputError

SECONDS, BYTES = 0.5, 16 * 2**20

def prepare(folder):
    return folder

def run(state, rng, folder):
    assert not list(folder.iterdir())
    (folder / "left").write_text("by the case before")
    number = len(list(state.parent.parent.glob("deed-*")))
    (state.parent.parent / f"deed-{number}").touch()
    deed = ["well", "refused", "wordless", "raises", "crashes", "hangs", "memory", "thread", "well"][number]
    if deed == "refused":
        raise InputError("this is wrong; do that")
    if deed == "wordless":
        raise InputError("")
    if deed == "raises":
        raise ZeroDivisionError("of the case")
    if deed == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if deed == "hangs":
        time.sleep(60)
    if deed == "memory":
        np.ones(40 * 2**20, np.uint8)
    if deed == "thread":
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
"""


def test_every_misdeed_of_a_case_is_a_finding_and_the_next_case_runs(tmp_path: Path) -> None:
    (tmp_path / "fuzz_misbehaving.py").write_text(MISBEHAVING)
    (tmp_path / "cases").mkdir()
    outcome = harness.fuzz("misbehaving", 10, 9, tmp_path / "cases", where=tmp_path)
    assert outcome.kinds == {"well": 2, "refused": 1, "finding": 6}
    expected = (
        "seed 12: a message that does not help",
        "ZeroDivisionError: of the case",
        "seed 14: crashed with code -11",
        "seed 15: did not end within 1.5 s",
        "seed 16: took 4",
        "seed 17: in a thread: ZeroDivisionError",
    )
    for finding, text in zip(outcome.findings, expected, strict=True):
        assert text in finding
