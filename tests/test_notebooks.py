"""Every notebook runs from its first cell to its last, at smoke size, and shows something."""

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.py"))
MAKING = [path for path in NOTEBOOKS if path.stem != "reproduction"]
"""Those that make their runs; tests/report/test_reproduction.py runs the one that reads files."""


def test_the_notebooks_are_there_as_sources():
    names = {path.stem for path in NOTEBOOKS}
    shown = (NOTEBOOKS[0].parent.parent / "distpaml/report/README.md").read_text(encoding="utf-8")
    assert len(names) == 7 and all(f"`{name}`" in shown for name in names)
    assert not list(NOTEBOOKS[0].parent.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", MAKING, ids=[path.stem for path in MAKING])
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("DISTPAML_SMOKE", "1")
    notebook = jupytext.read(path)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    images = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(images) >= 1
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert (tmp_path / "runs").is_dir()
