"""The modules of a report are imported while a long run waits for its device."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from longwall.pipeline.report import publish

publish._DELAY, wanted, failing = float(sys.argv[1]), sys.argv[2] == "wanted", sys.argv[2] == "failing"
if failing:
    sys.modules["jinja2"] = None

def join():
    for thread in threading.enumerate():
        if thread.name == "import-report":
            thread.join()

with publish.importing_report(wanted=wanted or failing):
    if publish._DELAY == 0:
        join()
join()
print(all(sys.modules.get(name) for name in ("jinja2", "pyarrow.parquet", "longwall.pipeline.report.page")))
"""


@pytest.mark.parametrize(
    ("after", "what", "expected"),
    [("0", "wanted", "True"), ("0", "unwanted", "False"), ("3600", "wanted", "False"), ("0", "failing", "False")],
)
def test_a_report_is_imported_beside_long_work(after: str, what: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, after, what], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]
    assert not done.stderr
