"""Where in memory a tensor begins changes nothing: processes that compute the same have the same bits."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
if sys.argv[1] == "distpaml":
    import distpaml
import torch

def moved(values, by):
    "A copy that begins `by` numbers behind a multiple of 64 bytes."
    memory = torch.empty(values.numel() + 16, dtype=values.dtype)
    begin = (-memory.data_ptr() % 64) // 8 + by
    return memory[begin : begin + values.numel()].view(values.shape).copy_(values)

torch.set_num_threads(1)
a = torch.randn(82, 183, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
lower = torch.eye(82, dtype=torch.float64) + (a[:, :82] / 82).tril()
same = True
for by in range(8):
    b, l = moved(a, by), moved(lower, by)
    same &= torch.equal(b @ b.T, moved(a, 0) @ moved(a, 0).T) and torch.equal(b @ b[0], moved(a, 0) @ moved(a, 0)[0])
    same &= torch.equal(*(torch.linalg.solve_triangular(moved(lower, k), a, upper=False) for k in (0, by)))
print(same)
"""


@pytest.mark.parametrize("first", ["distpaml", "torch"])
def test_the_bits_do_not_depend_on_the_place_in_memory(first):
    """Also if torch was imported before distpaml."""
    script = SCRIPT if first == "distpaml" else "import torch\nimport distpaml\n" + SCRIPT
    command = [sys.executable, "-c", script, first]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
