"""Kernels: CUDA text is compiled for the CPU, checked against its arguments, and run."""

from __future__ import annotations

import ctypes
import re
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cupy._array import ndarray
from cupy._device import KernelFault, compiled, emulated, runtime
from cupy._memory import MemoryPointer

_KERNEL = re.compile(
    r"__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\(([^()]*)\)\s*)?(?:void\s+)?(\w+)\s*\(([^{;]*)\)\s*\{", re.DOTALL
)
_ALIGNMENT = r"(?:__align__\(\d+\)\s*|alignas\(\d+\)\s*)?"
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+{_ALIGNMENT}([\w ]+?)\s+(\w+)\[\];")
_STATIC = re.compile(rf"\b(?:static\s+)?__shared__\s+{_ALIGNMENT}([\w:<>, ]+?)\s+(\w+)((?:\[[^\]]*\])*)\s*;")
_HOOKS = ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0")
_OPTIONS = ("-O1", "-w", *_HOOKS)
_SHARED_WITHOUT_ASKING = 48 << 10
_one_launch = threading.Lock()


def translated(text: str) -> str:
    """Turn CUDA text into C++ text with the same lines."""
    text = _DYNAMIC.sub(
        r"static inline \1* emulator_array_\2() { return reinterpret_cast<\1*>(emulator_dynamic_shared()); }", text
    )
    for name in re.findall(r"emulator_array_(\w+)\(\)", text):
        text = re.sub(rf"(?<!emulator_array_)\b{name}\b", f"emulator_array_{name}()", text)
    text = _STATIC.sub(
        r"auto& \2 = *reinterpret_cast<EmulatorSame<\1\3>::type*>"
        r"(emulator_static_shared(StaticShared<\1\3, __COUNTER__>::offset));",
        text,
    )
    names = [match[2] for match in _KERNEL.finditer(text)]
    ends = "\n".join(f"EMULATOR_KERNEL({name})" for name in names)
    return f'#include "cuda.hpp"\n#line 1\n{text}\n{ends}\n'


class RawModule:
    """Compiled CUDA text, as `cupy.RawModule`."""

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
    ):
        if code is None or name_expressions:
            raise NotImplementedError("the emulator compiles text with plain names")
        emulated.require()
        self._kernels: dict[str, RawKernel] = {}
        self._signatures = {match[2]: (match[1], match[3]) for match in _KERNEL.finditer(code)}
        kernels = "-".join(self._signatures) or "none"
        definitions = tuple(option for option in options if option.startswith(("-D", "-U")))
        self.library_path = compiled(kernels[:60], translated(code), (*_OPTIONS, *definitions), ())
        runtime(locked=False)  # its functions are what the library calls
        self.library = ctypes.CDLL(str(self.library_path))

    def compile(self, log_stream: Any = None) -> None:
        """Compile: that is done."""

    def get_function(self, name: str) -> RawKernel:
        """Return a kernel."""
        if name not in self._signatures:
            from cupy.cuda.driver import CUDADriverError

            raise CUDADriverError(500)
        if name not in self._kernels:
            self._kernels[name] = RawKernel._of(self, name, *self._signatures[name])
        return self._kernels[name]


class RawKernel:
    """A kernel, as `cupy.RawKernel`."""

    def __new__(cls, code: str, name: str, options: Sequence[str] = (), **others: Any) -> RawKernel:
        """Compile a kernel on its own."""
        return RawModule(code, options=options, **others).get_function(name)

    @classmethod
    def _of(cls, module: RawModule, name: str, bounds: str | None, parameters: str) -> RawKernel:
        made = object.__new__(cls)
        made.name, made._module = name, module
        codes = (ctypes.c_int * 64)()
        count = getattr(module.library, f"emulator_describe_{name}")(codes)
        made._codes = list(codes[:count])
        made._names = [re.sub(r".*\W", "", part.strip()) for part in parameters.split(",")] if count else []
        made._function = ctypes.cast(getattr(module.library, f"emulator_call_{name}"), ctypes.c_void_p)
        made.shared_size_bytes = int(module.library.emulator_static_bytes())
        limit = (bounds or "1024").split(",")[0].strip()
        made.max_threads_per_block = int(limit) if limit.isdigit() else 1024
        made.preferred_shared_memory_carveout = -1
        made._max_dynamic = _SHARED_WITHOUT_ASKING - made.shared_size_bytes
        return made

    num_regs, local_size_bytes, const_size_bytes = 32, 0, 0

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory that a launch may ask for."""
        return self._max_dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size + self.shared_size_bytes > emulated.shared_memory:
            self._refuse()
        self._max_dynamic = size

    @property
    def attributes(self) -> dict[str, int]:
        """What the driver knows of it."""
        names = ("max_threads_per_block", "shared_size_bytes", "num_regs", "local_size_bytes", "const_size_bytes")
        return {name: int(getattr(self, name)) for name in (*names, "max_dynamic_shared_size_bytes")}

    def _refuse(self) -> None:
        from cupy.cuda.driver import CUDADriverError

        raise CUDADriverError(1)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Run the kernel to its end, now or later (`late`); other Python threads run meanwhile."""
        emulated.require()
        blocks, threads = int(grid[0]), int(block[0])
        if any(n != 1 for n in (*grid[1:], *block[1:])) or threads % 32:
            raise NotImplementedError("the emulator runs grids of one dimension, in whole warps")
        if blocks < 1 or threads < 1 or threads > self.max_threads_per_block or shared_mem > self._max_dynamic:
            self._refuse()
        held = [self._argument(i, value) for i, value in enumerate(self._matched(args))]
        # What is run later must not keep its arrays: CUDA does not either.
        arrays = () if emulated.late else tuple((i, one) for i, one in enumerate(args) if isinstance(one, ndarray))
        launch = partial(self._run, held, arrays, blocks, threads, shared_mem)
        from cupy.cuda import get_current_stream

        (stream or get_current_stream()).give(launch)

    def _run(
        self, held: list[Any], arrays: tuple[tuple[int, ndarray], ...], blocks: int, threads: int, shared_mem: int
    ) -> None:
        pointers = (ctypes.c_void_p * max(len(held), 1))(*(value.ctypes.data for value in held))
        code, data = ctypes.c_size_t(), (ctypes.c_size_t * 2)()
        with _one_launch:
            complaint = runtime(locked=False).emulator_launch(
                self._function,
                pointers,
                blocks,
                threads,
                shared_mem,
                self.shared_size_bytes,
                ctypes.c_uint64(emulated.seed),
                ctypes.c_double(emulated.seconds),
                ctypes.byref(code),
                data,
            )
            text = complaint.decode() if complaint else ""
        if text:
            where = _source_line(self._module.library_path, code.value) if code.value else ""
            near = self._parameter_at(arrays, data[1])
            source = self._module.library_path.with_suffix(".cpp")
            raise KernelFault(f"{self.name}, {text}{near}{where}; its text is {source}")

    def _name(self, i: int) -> str:
        """A parameter's name; its number where macros stand for some parameters."""
        return self._names[i] if len(self._names) == len(self._codes) else f"number {i}"

    def _matched(self, args: Sequence[Any]) -> Sequence[Any]:
        if len(args) != len(self._codes):
            raise KernelFault(f"{self.name} has {len(self._codes)} parameters and is given {len(args)} arguments")
        return args

    def _argument(self, i: int, value: Any) -> Any:
        """Return an argument as a NumPy number that lies where the kernel reads it; types must fit."""
        code = self._codes[i]
        if isinstance(value, ndarray):
            pointed = -code
            if code >= 0 or (pointed != 1 and value.itemsize != 1 and pointed % value.itemsize):
                raise KernelFault(f"{self.name}: parameter {self._name(i)} is given an array of {value.dtype}")
            return np.array(value.data.ptr, np.uintp)
        if isinstance(value, MemoryPointer):
            value = np.uintp(value.ptr)
        if isinstance(value, np.ndarray):
            raise TypeError(f"Unsupported type {type(value)}")
        if isinstance(value, bool | np.bool_):
            value = np.bool_(value)
        elif isinstance(value, int):
            value = np.int64(value)
        elif isinstance(value, float):
            value = np.float64(value)
        elif value is None:
            value = np.uintp(0)
        elif not isinstance(value, np.generic):
            raise TypeError(f"Unsupported type {type(value)}")
        expected = 8 if code < 0 else code % 100
        if value.itemsize != expected or (value.dtype.kind == "f") != (code >= 100):
            raise KernelFault(f"{self.name}: parameter {self._name(i)} is given a {value.dtype}")
        return np.array(value)

    def _parameter_at(self, arrays: tuple[tuple[int, ndarray], ...], start: int) -> str:
        if not start:
            return ""
        names = [
            f"{self._name(i)} ({value.dtype}{list(value.shape)}, from byte {value.data.ptr - start})"
            for i, value in arrays
            if value.size and value.data.mem.ptr == start
        ]
        return f" that has {', '.join(names)}" if names else ""


def _source_line(library: Path, code: int) -> str:
    """Return the line of the source that an address in a library stems from, where addr2line is here to ask."""
    command = ["addr2line", "-i", "-e", str(library), hex(code)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    except FileNotFoundError:
        return ""
    lines = [line.rpartition(":")[2] for line in found if line.split(":")[0].endswith(".cpp")]
    return f", in line {' called from '.join(lines)}" if lines else ""
