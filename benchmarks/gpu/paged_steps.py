"""What the kernels of a run on a graph that the device's budget does not hold take, step by step, and bring."""

from typing import Any

NAMES = ("gather", "copy", "pages", "kernel", "write", "other")
_STEPS = {
    "stage_lists": "copy",
    "copy_pages": "pages",
    "count_edges": "kernel",
    "extend_rows": "kernel",
    "extend_two_pass": "kernel",
    "count_rows": "kernel",
    "write_edges": "write",
    "gather_blocks": "write",
}
_GATHER = ("find_lists", "measure_lists", "settle_lists", "split_ends")  # see `LaunchWatch`


class LaunchWatch:
    """Stands in for a device's launches of kernels, and notes what they are.

    Steps are those of ``longwall.kernels.cuda``: to gather (from the first look at rows until lists begin to be copied,
    with sorting, and the host between), to copy lists over the link, to copy pages, to count or extend (kernel), to
    write what was found, and other kernels. Steps on two streams run beside each other: they may add up to more than
    the whole.

    Parameters
    ----------
    device
        Its launches are noted from now on.
    xp
        cupy.

    Attributes
    ----------
    all_steps
        Whether all steps are timed, and not only copies of lists.
    """

    def __init__(self, device: Any, xp: Any):
        self._plain, self._xp, self.all_steps = device.launch, xp, False
        device.launch = self
        self._reused: dict[int, Any] = {}
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._pairs: dict[str, list[tuple[Any, Any]]] = {name: [] for name in NAMES}
        self._looking: Any = None
        self._brought = 0
        for counter in self._reused.values():
            counter.fill(0)
        self._reused.clear()

    @property
    def copied(self) -> int:
        """Bytes of lists that crossed the link."""
        return self._brought - 4 * sum(int(counter.get()[0]) for counter in self._reused.values())

    def seconds(self) -> dict[str, float]:
        """Return what every step took."""
        elapsed = self._xp.cuda.get_elapsed_time
        return {name: sum(elapsed(*pair) for pair in pairs) / 1000 for name, pairs in self._pairs.items()}

    def __call__(self, source: str, function: str, arguments: tuple[Any, ...], **how: Any) -> None:
        """Launch, as the device does."""
        if function == "measure_lists":
            self._reused[id(arguments[-1])] = arguments[-1]
        if function == "stage_lists":
            self._brought += 4 * arguments[5]
        if function == "find_lists" and self._looking is None:
            self._looking = self._now()
        step = "gather" if function in _GATHER else _STEPS.get(function, "other")
        if step == "gather" or not (self.all_steps or step == "copy"):
            return self._plain(source, function, arguments, **how)
        begin = self._now()
        if step == "copy" and self._looking is not None:
            self._pairs["gather"].append((self._looking, begin))
            self._looking = None
        self._plain(source, function, arguments, **how)
        return self._pairs[step].append((begin, self._now()))

    def _now(self) -> Any:
        event = self._xp.cuda.Event()
        event.record(self._xp.cuda.get_current_stream())
        return event
