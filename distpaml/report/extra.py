"""Figures that other parts of distpaml add to the inside of a run.

A descriptor of its own kind may have more to show, such as reconstructed images. Its module is named here with a
function `figures(run_directory) -> {title: matplotlib Figure}`; the page has them as pictures.
"""

from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

from distpaml.plugins import load_object

EXTRA: dict[str, str] = {"pixels": "distpaml.picture_figures:figures"}
"""`module:function` by the kind of descriptor."""


def extra_figures(path: Path, kind: str) -> list[dict[str, Any]]:
    """Title and PNG (as a data address) of every extra figure of the run in `path`."""
    if kind not in EXTRA:
        return []
    import matplotlib.pyplot as plt

    pictures = []
    for title, figure in load_object(EXTRA[kind], "descriptor.kind")(path).items():
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        plt.close(figure)
        address = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
        pictures.append({"title": str(title), "picture": address})
    return pictures
