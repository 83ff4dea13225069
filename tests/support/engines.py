"""Engines that tests make themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine


def make_engine(kind: str, threads: int = 1, **optimisations: bool) -> Engine:
    """A new engine; optimisations of CUDA's may be switched off. Tests of GPUs run only on machines with one."""
    from longwall.kernels import select_engine
    from longwall.kernels.interface.engine import Ablation

    return select_engine(kind, threads, Ablation(**optimisations))
