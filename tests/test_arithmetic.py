"""The bits are the same whatever the CPU can do."""

import os
import platform
import subprocess
import sys

import pytest

from distpaml.arithmetic import has_avx2, kernels_in_use, processor
from distpaml.versions import versions

PRODUCT = """
import hashlib
import numpy as np
a = np.random.default_rng(0).standard_normal((183, 82))
print(hashlib.sha256((a.T @ a).tobytes() + (a.T @ a[:, 0]).tobytes()).hexdigest())
"""
pytestmark = pytest.mark.skipif(not has_avx2(), reason="This CPU has no AVX2.")


def product(script: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    command = [sys.executable, "-c", script + PRODUCT]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=kept | environment).stdout


def test_numpy_has_the_bits_of_one_kind_of_cpu():
    assert product("import distpaml") == product("", OPENBLAS_CORETYPE="Haswell")


def test_other_kernels_have_other_bits_and_are_not_replaced():
    other = product("import distpaml", OPENBLAS_CORETYPE="Prescott")
    assert other == product("", OPENBLAS_CORETYPE="Prescott") != product("import distpaml")


def test_a_record_names_the_kernels_in_use():
    assert kernels_in_use() == os.environ["OPENBLAS_CORETYPE"]


def test_a_cpu_without_avx2_is_left_alone(tmp_path):
    file = tmp_path / "cpuinfo"
    assert not has_avx2(file)
    file.write_text("processor : 0\nflags\t\t: fpu sse2 avx fma\n")
    assert not has_avx2(file)
    file.write_text("processor : 0\nflags\t\t: fpu sse2 avx fma avx2\n")
    assert has_avx2(file)


def test_a_record_names_the_processor(tmp_path):
    assert processor() == versions()["processor"]
    file = tmp_path / "cpuinfo"
    assert processor(file) == platform.machine()
    file.write_text("vendor_id\t: AuthenticAMD\nflags\t\t: fpu sse2 avx2 fma\nvmx flags\t: none\n")
    assert processor(file) == "AuthenticAMD avx2"
    file.write_text("vendor_id\t: GenuineIntel\nflags\t\t: fpu avx2 avx512f\n")
    assert processor(file) == "GenuineIntel avx512f"
