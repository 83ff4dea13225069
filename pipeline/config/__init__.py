"""The config of a run: TOML in, a checked `RunSpec` out.

Every fault is reported, not only the first one: each is a line with the file, the key, what is wrong and, for a
misspelt name, the nearest valid one. Sections check their keys (`longwall.pipeline.workloads.sections`, and the
workloads), `longwall.pipeline.config.run_spec` what they must agree on. Whether a graph can be read is for
`longwall.storage` to say.
"""

from longwall.pipeline.config.load import load_config, names_run
from longwall.pipeline.config.run_spec import RunSpec
from longwall.pipeline.workloads.sections import SchedulerSection

__all__ = ["RunSpec", "SchedulerSection", "load_config", "names_run"]
