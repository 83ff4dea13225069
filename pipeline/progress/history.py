"""What a run did when: its parts and phases, its messages, and the memory it had in use meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from longwall.pipeline.progress.compile_seconds import compile_seconds
from longwall.storage.memory.process_memory import resident_bytes, resident_peak
from longwall.storage.observer import ForwardingObserver, Observer

_MOST_PHASES = 400
_MOST_NOTES = 50
_MOST_SAMPLES = 240
_SAMPLE_SECONDS = 0.1  # twice as long whenever there would be too many samples


class History(ForwardingObserver):
    """An observer that remembers events and passes them on.

    Parameters
    ----------
    observer
        Receives every event.
    watching
        Whether `watch` watches.

    Attributes
    ----------
    timings
        Seconds of each part of the run that is over: ``graph``, ``plan``, ``mine``, ``write``. Those in which kernels
        of the CPU were compiled are ``compile``, if there were any.
    """

    def __init__(self, observer: Observer, *, watching: bool = True):
        super().__init__(observer)
        self.timings: dict[str, float] = {}
        self._watching = watching
        self._began = time.perf_counter()
        self._lock = threading.Lock()
        self._parts: list[dict[str, Any]] = []
        self._phases: list[dict[str, Any]] = []
        self._left_out = 0
        self._notes: list[dict[str, Any]] = []
        self._samples: list[tuple[float, dict[str, int], int]] = []
        self._resident_peak = 0

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Remember when the phase began, which ends the one before."""
        now = self._now()
        with self._lock:
            self._end_phase(now)
            if len(self._phases) < _MOST_PHASES:
                self._phases.append({"name": name, "begin": now, "end": None})
            else:
                self._left_out += 1
        super().phase(name, total, unit)

    def note(self, text: str) -> None:
        """Remember the message."""
        with self._lock:
            if len(self._notes) < _MOST_NOTES:
                self._notes.append({"seconds": self._now(), "text": text})
        super().note(text)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a part of the run; the times of equal names are added up, and the phases of the part end with it."""
        began, compiled = self._now(), compile_seconds()
        part: dict[str, Any] = {"name": name, "begin": began, "end": None}
        self._parts.append(part)
        try:
            yield
            compiled = compile_seconds() - compiled
            if compiled:
                part["compile"] = round(compiled, 4)
                self.timings["compile"] = self.timings.get("compile", 0.0) + compiled
            self.timings[name] = self.timings.get(name, 0.0) + self._now() - began - compiled
        finally:
            with self._lock:
                part["end"] = self._now()
                self._end_phase(part["end"])

    @contextmanager
    def watch(self, in_use: Callable[[], Mapping[str, int]]) -> Iterator[None]:
        """Look from time to time, in a thread, how many bytes of each budget and of main memory are in use."""
        if not self._watching:
            yield
            return
        over, before = threading.Event(), resident_peak()

        def look() -> None:
            self._samples.append((self._now(), dict(in_use()), resident_bytes()))

        def keep_looking() -> None:
            seconds = _SAMPLE_SECONDS
            while not over.wait(seconds):
                look()
                if len(self._samples) >= _MOST_SAMPLES:
                    del self._samples[1::2]
                    seconds *= 2

        thread = threading.Thread(target=keep_looking, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            look()
            most, after = max(resident for _, _, resident in self._samples), resident_peak()
            self._resident_peak = max(most, after if after > before else 0)  # the process may have had more before

    def facts(self) -> dict[str, Any]:
        """Return what is remembered, as JSON can hold it; what is not over yet ends now."""
        now = self._now()
        with self._lock:
            spans = [one | {"end": now if one["end"] is None else one["end"]} for one in (*self._parts, *self._phases)]
            rounded = [one | {key: round(one[key], 4) for key in ("begin", "end")} for one in spans]
            samples = sorted(self._samples, key=lambda sample: sample[0])
            tiers = sorted({tier for _, used, _ in samples for tier in used})
            return {
                "seconds": round(now, 4),
                "parts": rounded[: len(self._parts)],
                "phases": rounded[len(self._parts) :],
                "phases_left_out": self._left_out,
                "notes": [note | {"seconds": round(note["seconds"], 4)} for note in self._notes],
                "memory": {
                    "seconds": [round(at, 4) for at, _, _ in samples],
                    "used": {tier: [used.get(tier, 0) for _, used, _ in samples] for tier in tiers},
                    "process": [resident for _, _, resident in samples],
                    "process_peak": self._resident_peak,
                },
            }

    def _now(self) -> float:
        return time.perf_counter() - self._began

    def _end_phase(self, now: float) -> None:
        if self._phases and self._phases[-1]["end"] is None:
            self._phases[-1]["end"] = now
