"""Stacks for the sets of counting searches, as many bytes as there are; see ``stack_pool.cuh``."""

from dataclasses import dataclass

from longwall.kernels.cuda.runtime.launch import WARP

_LEAST_OWN = 4 * WARP  # elements of a warp's own stack beside long ones


@dataclass(frozen=True)
class SearchStacks:
    """What stacks the warps of a search have.

    Attributes
    ----------
    warps
        Number of warps.
    own
        Elements of every warp's own stack.
    longs
        Number of long stacks, with room for the longest sets, that warps borrow; 0: every warp's own one is long.
    long
        Elements of a long stack.
    """

    warps: int
    own: int
    longs: int
    long: int

    @property
    def elements(self) -> int:
        """Of all stacks."""
        return self.warps * self.own + self.longs * self.long

    @classmethod
    def within(cls, wanted: int, long: int, memory: int) -> "SearchStacks":
        """Share out so many bytes among at most `wanted` warps.

        Where not all of them can have a long stack, half of the memory is for long ones, which warps borrow for as long
        as the sets of a row outgrow their own: most sets are far shorter than the longest ones could be.

        Parameters
        ----------
        wanted
            Number of warps that fill the device.
        long
            Elements of a long stack; there is memory for one of them.
        memory
            Bytes.
        """
        words = memory // 4
        if words >= wanted * long:
            return cls(wanted, long, 0, long)
        longs = max(words // 2 // long, 1)
        own = (words - longs * long) // wanted
        if own >= _LEAST_OWN:
            return cls(wanted, own, longs, long)
        return cls(words // long, long, 0, long)
