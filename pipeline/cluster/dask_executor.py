"""Run phases on the workers of a Dask cluster."""

from __future__ import annotations

from longwall.pipeline.cluster.cluster_workers import ClusterWorkers
from longwall.pipeline.cluster.dispatcher import Dispatcher
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import Phase
from longwall.pipeline.execution.thread_executor import begin_phase
from longwall.pipeline.run_store.commit_log import PhaseRecord


class DaskExecutor:
    """Dispatches phases to the workers of a cluster; see `Executor`."""

    def __init__(self, workers: ClusterWorkers):
        self.workers, self.engines = workers, workers.engines

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Dispatch the tasks of the phase that are not committed."""
        record, tasks, missing = begin_phase(phase, env)
        if missing:
            Dispatcher(self.workers, env, phase, record, tasks, missing).finish()
        return record
