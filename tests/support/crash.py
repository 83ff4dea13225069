"""Small runs that are broken at each of their moments."""

from __future__ import annotations

import random

from breakable import CONSTANTS, LISTING

SAMPLE = 5  # of the moments of each kind and act
_DRAW = random.Random(5)
EDGES = sorted(
    {(min(u, v), max(u, v)) for u, v in ((_DRAW.randrange(14), _DRAW.randrange(14)) for _ in range(60)) if u != v}
)
FEW_TASKS = CONSTANTS | {"longwall.kernels.cpu.engine:_TASKS_PER_WORKER": 2, "longwall.stages.export:ROWS_PER_FILE": 20}
WORKLOADS = {
    "count": 'kind = "match"\npattern = "0-1,0-2,0-3,1-2,1-3"',
    "vertices": 'kind = "triangles"\noutput = "vertices"',
    "listing": f'kind = "triangles"\n{LISTING}',
    "levels": f'kind = "cliques"\nk = 4\n{LISTING}\n[scheduler]\norder = "levels"',
    "frequent": f'kind = "frequent"\nmin_support = 6\nmax_edges = 2\n{LISTING}',
}


def moments(events: int, act: str, kind: str, every: bool) -> list[int]:
    """The events at which a fault strikes: all, or the first, the last and some between them."""
    everything = list(range(1, events + 1))
    if every or events <= SAMPLE:
        return everything
    return sorted({1, events, *random.Random(f"{act} {kind}").sample(everything, SAMPLE - 2)})
