"""In CI a test that was skipped has failed, however it was skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ONE_OF_EACH = """
import pytest

def test_passes(): pass

@pytest.mark.skip(reason="marked")
def test_marked(): pass

def test_within(): pytest.skip("within")

@pytest.mark.xfail(strict=True)
def test_known_to_fail(): assert False
"""


@pytest.mark.parametrize(
    "ci, code, closing",
    [(True, 1, "1 failed, 1 passed, 1 xfailed, 2 errors"), (False, 0, "1 passed, 3 skipped, 1 xfailed")],
)
def test_skips_fail_in_ci_only(tmp_path, ci, code, closing):
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_one_of_each.py").write_text(ONE_OF_EACH)
    (tmp_path / "test_whole_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--continue-on-collection-errors", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment | ({"CI": "true"} if ci else {}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert closing in done.stdout.splitlines()[-1]
