"""A mass on a spring that somebody pushes, and experiments with it so small that an ask takes a moment."""

import zipfile
from io import BytesIO

import numpy as np

TINY = {
    "descriptors": {"mass": [1.0, 2.0], "stiffness": [0.5, 3.0]},
    "states": ["x", "v"],
    "controls": ["u"],
    "dt": 0.1,
    "model": {"inducing": 20},
    "fit": {"evaluations": 12},
    "selection": {"pool_size": 64},
    "initial": 2,
}


def declared(**changes):
    return {**TINY, **changes}


def run(descriptor, steps=25, start=0.1):
    """Columns of one trajectory; names and images change what they can."""
    mass = float(descriptor.get("mass", 1.5))
    stiffness = float(descriptor.get("stiffness", 1.0)) + 0.3 * len(str(descriptor.get("wheel", "")))
    push = 2.0 * np.sin(np.arange(steps) / 3.0)
    states = [(start, 0.0)]
    for u in push[:-1]:
        x, v = states[-1]
        v = v + 0.1 * (u - stiffness * x) / mass
        states.append((x + 0.1 * v, v))
    x, v = np.array(states).T
    return {"x": x, "v": v, "u": push}


def claiming(length: int, contents: bytes = b"") -> bytes:
    """A compressed npz file with an array named images whose header claims so many numbers."""
    array, file = BytesIO(), BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": (length,)})
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", array.getvalue() + contents)
    return file.getvalue()
