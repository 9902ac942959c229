"""The same numbers give the same bits: in every process, and on every machine with the same kind of processor.

Linear algebra rounds differently in different kernels, and a fit of a hundred evaluations makes a visible difference of
the last bit. Two libraries choose theirs by where in memory an array begins, or by what the CPU can do:

- MKL, which torch uses, reads `MKL_CBWR` at its first call. `STRICT` makes bits independent of memory addresses.
- OpenBLAS, of which numpy and scipy each bring one, reads `OPENBLAS_CORETYPE` when it is loaded. `Haswell` are kernels
  for AVX2, which CPUs with AVX-512 would not choose by themselves. Little is computed there, so they cost no time.

A variable that is set already is left alone. MKL goes by the processor all the same: AMD's and Intel's, these with and
without AVX-512, have bits of their own. Records name it (`processor`).
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


CPUINFO = Path("/proc/cpuinfo")


def has_avx2(cpuinfo: Path = CPUINFO) -> bool:
    """Whether the CPU can run OpenBLAS's kernels for Haswell, as Linux has it."""
    return platform.machine() == "x86_64" and {"avx2", "fma"} <= set(_said(cpuinfo, "flags").split())


def processor(cpuinfo: Path = CPUINFO) -> str:
    """What MKL chooses its kernels by: vendor and vector units, such as `GenuineIntel avx512f`."""
    wide = [flag for flag in ("avx512f", "avx2") if flag in _said(cpuinfo, "flags").split()]
    return " ".join([_said(cpuinfo, "vendor_id") or platform.machine(), *wide[:1]])


def _said(cpuinfo: Path, of: str) -> str:
    """The first line about `of`, without its name; empty if there is none."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.split(":")[0].strip() == of), "")


def kernels_in_use() -> str:
    """The kernels of numpy and scipy: `Haswell`, or `Haswell+SkylakeX` where numpy was imported before distpaml."""
    import scipy.linalg  # noqa: F401  # loads both
    from threadpoolctl import threadpool_info

    return "+".join(
        sorted({str(library["architecture"]) for library in threadpool_info() if "architecture" in library})
    )
