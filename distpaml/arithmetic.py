"""The same numbers give the same bits: in every process, and on every x86 machine of the last ten years.

Linear algebra rounds differently in different kernels, and a fit of a hundred evaluations makes a visible difference of
the last bit. Two libraries choose theirs by where in memory an array begins, or by what the CPU can do:

- MKL, which torch uses, reads `MKL_CBWR` at its first call. `STRICT` makes bits independent of memory addresses.
- OpenBLAS, of which numpy and scipy each bring one, reads `OPENBLAS_CORETYPE` when it is loaded. `Haswell` are kernels
  for AVX2, which CPUs with AVX-512 would not choose by themselves. Little is computed there, so they cost no time.

A variable that is set already is left alone.
"""

import os
import platform
from pathlib import Path

KERNELS = "OPENBLAS_CORETYPE"


def choose_kernels() -> None:
    """Set both variables; before numpy is imported, since OpenBLAS looks only once."""
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
    if has_avx2():
        os.environ.setdefault(KERNELS, "Haswell")


def has_avx2(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU can run OpenBLAS's kernels for Haswell, as Linux has it."""
    try:
        flags = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return platform.machine() == "x86_64" and {"avx2", "fma"} <= set(flags.split())


def kernels_in_use() -> str:
    """The kernels of numpy and scipy: `Haswell`, or `Haswell+SkylakeX` where numpy was imported before distpaml."""
    import scipy.linalg  # noqa: F401  # loads both
    from threadpoolctl import threadpool_info

    return "+".join(
        sorted({str(library["architecture"]) for library in threadpool_info() if "architecture" in library})
    )
