"""Whether a second engine slows the leading one down by more than it adds: trials in which it pauses."""

from __future__ import annotations

import math

from longwall.pipeline.execution.sharing.engine_choice import CLEARLY, loses


class Trials:
    """Compare the leading engine's speed beside the second one, while that pauses, and beside it again.

    Work differs from root to root, so ranges that follow each other are compared, and the one in the middle with what
    the others have on average.

    Attributes
    ----------
    pausing
        Whether the second engine pauses.
    slowed
        How many times as fast the leading engine is then; 0 where that is not known yet.
    """

    def __init__(self) -> None:
        self.pausing, self.slowed = False, 0.0
        self._before = self._alone = 0.0  # speeds in a trial
        self._next = 0.0  # seconds of the phase when there may be another one

    @property
    def closing(self) -> bool:
        """Whether the last range of a trial is to come: beside the second engine from its beginning."""
        return self._alone > 0

    def learn(self, speed: float, second: float, elapsed: float) -> bool:
        """Take note of a range of the leading engine; return whether sharing had better end.

        Parameters
        ----------
        speed
            Work a second of the leading engine in its range: alone while the second one pauses, else beside it.
        second
            The second engine's when it does not pause.
        elapsed
            Seconds that the phase has run.
        """
        if self.pausing:
            self.pausing, self._alone = False, speed
            return loses(CLEARLY * self._before, second, speed)
        if self._alone:
            beside, alone = math.sqrt(self._before * speed), self._alone
            self.slowed, self._alone, self._next = alone / beside, 0.0, 2 * elapsed
            return loses(beside, second, alone)
        if not self.slowed or (elapsed >= self._next and loses(speed, second, self.slowed * speed)):
            self._before, self.pausing = speed, True
        return False
