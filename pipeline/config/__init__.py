"""The config of a run: TOML in, a checked `RunSpec` out.

Every fault is reported, not only the first one: each is a line with the file, the key, what is wrong and,
for a misspelt name, the nearest valid one. Whether a pattern makes sense is for `longwall.pipeline.patterns.pattern`
to say (it is asked here), and whether a graph can be read for `longwall.storage`.
"""

from longwall.pipeline.config.load import load_config, names_run
from longwall.pipeline.config.sections import (
    MANY_PATTERNS,
    MAX_COUNTED_VERTICES,
    MAX_PATTERN_EDGES,
    RunSpec,
    SchedulerSection,
    WorkloadSection,
)

__all__ = [
    "MANY_PATTERNS",
    "MAX_COUNTED_VERTICES",
    "MAX_PATTERN_EDGES",
    "RunSpec",
    "SchedulerSection",
    "WorkloadSection",
    "load_config",
    "names_run",
]
