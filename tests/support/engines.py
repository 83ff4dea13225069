"""Engines that tests make themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine


def make_engine(kind: str, threads: int = 1, **optimisations: bool) -> Engine:
    """An engine of its own; optimisations of CUDA's may be switched off. GPU tests run only where there is one."""
    from longwall.kernels import select_engine
    from longwall.kernels.interface.engine import Ablation

    return select_engine(kind, threads, Ablation(**optimisations))
