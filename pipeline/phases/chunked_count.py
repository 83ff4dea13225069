"""Count the embeddings of a plan level by level, chunk by chunk: for graphs whose pages come and go.

The fused count walks depth-first on the device, where nobody knows what it will read next. Here every level's reads are
known before it is extended, so that its pages can be chosen; the suffix of the matching order is only counted.
"""

from functools import partial

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.pipeline.execution.depth_first import ChunkExtender, DepthFirstWalk
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.stage_metrics import StageTimer
from longwall.pipeline.execution.thread_executor import Worker, run_tasks
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, Phase
from longwall.stages.counting import count_planned
from longwall.storage.tables.embedding_table import EmbeddingTable


def count_in_chunks(
    plan: MatchPlan, context: Environment, graph: GraphArrays, memory: int, phase: Phase, pieces: int
) -> int:
    """Count the matches of a plan.

    Parameters
    ----------
    plan
        A plan for counting.
    context
        The run.
    graph
        The graph on the engine.
    memory
        Bytes that are left there.
    phase
        What is finished.
    pieces
        The least number of tasks.

    Returns
    -------
    int
        The number of matches; embeddings times the plan's redundancy.
    """
    program, engine = plan.program, context.engine
    rooms = WorkerMemory.within(program.depth, graph, context, memory, exporting=False)
    chunks = ChunkExtender(program, context, graph, rooms)
    last = plan.pattern.num_vertices - 1

    class CountWorker(Worker):
        def __init__(self, number: int):
            self._searcher, self._meter, self._counted = chunks.searcher(), StageTimer(), AdaptiveBatch(engine)
            super().__init__(context, self._searcher)
            self._descent = DepthFirstWalk(chunks, self._searcher, self._meter, number)
            self._sum = 0

        def run(self, first: int, last: int) -> None:
            self._descent.walk(first, last, self._count, lambda: False)

        def _count(self, chunk: EmbeddingTable) -> None:
            begin = 0
            while begin < len(chunk) and not context.cancel.is_set():
                with self._meter.time(last) as reading:
                    rows = partial(self._counted_rows, chunk, begin)
                    most = min(len(chunk) - begin, rooms.rows)
                    found, size = self._counted.take(most, rows, self._descent.make_room)
                    reading.rows_in, reading.rows_out = size, found
                self._sum += found
                begin += size

        def _counted_rows(self, chunk: EmbeddingTable, begin: int, size: int) -> tuple[int, int]:
            rows = chunk.sliced(begin, begin + size).to(engine.xp)
            return count_planned(rows, self._searcher, graph.pages), size

        def take(self) -> PartialResult:
            taken, self._sum = self._sum, 0
            return PartialResult(taken, levels=self._meter.take())

        def close(self) -> None:
            super().close()
            self._descent.close()

    with context.resources.host.reserve(rooms.host * engine.workers, "the workers' tables"):
        return sum(run_tasks(context, phase, chunks.slot_tasks(pieces), engine.workers, CountWorker))
