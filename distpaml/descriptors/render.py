"""Renders images of systems at rest, off screen, with MuJoCo.

MuJoCo reads MUJOCO_GL once, on import, and a process can use only one GL library. So a short-lived child process
renders (`python -m distpaml.descriptors.render`): this process needs no GL and survives a driver that crashes. The
child uses EGL, or else OSMesa, unless MUJOCO_GL names one; both draw the same bits.

Images are cached in memory and in the user's cache folder (`XDG_CACHE_HOME`), under a hash of everything that they
depend on.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from distpaml.config import DomainConfig
from distpaml.domains.mujoco import MujocoDomain
from distpaml.durable_io import write_durably
from distpaml.errors import UserError
from distpaml.types import Array

BACKENDS = ("egl", "osmesa")
SHARPNESS = 4
"""Rendered pixels per side of an image pixel, which is their mean: so a pole's tip moves smoothly."""
LAYOUT = 1
"""Increase when the same request gives different images."""
PACKAGES = "libegl1 and libgl1-mesa-dri, or libosmesa6"
"""Debian packages; either is enough."""


PATIENCE = 300.0
"""Seconds after which a silent backend counts as failed; 100 images take about two."""


class RenderError(UserError):
    """No backend can render here."""


def render(domain: DomainConfig, tasks: Array, height: int, width: int) -> Array:
    """Images [N, height, width] of tasks [N, P], grey values in [0, 1]."""
    request = {
        "domain": domain.model_dump(mode="json"), "tasks": np.asarray(tasks).tolist(), "height": height, "width": width,
    }  # fmt: skip
    return _kept(json.dumps(request)).copy()


@lru_cache(maxsize=32)
def _kept(request: str) -> Array:
    """Read this request's file; render and write it if it is missing or damaged."""
    file = _file(request)
    with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), open(file, "rb") as stored:
        return _grey(stored)
    contents, _ = _drawn(request)
    with suppress(OSError):  # without a cache it is only slower
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, contents)
    return _grey(BytesIO(contents))


def _grey(stored: BinaryIO) -> Array:
    with np.load(stored, allow_pickle=False) as npz:
        return npz["pixels"].astype(np.float64) / 255.0


def _file(request: str) -> Path:
    content = json.loads(request)
    domain = camera_domain(content["domain"])
    models = [_spec(domain, np.array(task), _size(content)).to_xml() for task in content["tasks"]]
    parts = (request, *models, repr(domain.camera), LAYOUT, version("mujoco"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "distpaml" / "images" / f"{sha256(json.dumps(parts).encode()).hexdigest()}.npz"


def camera_domain(config: dict[str, Any]) -> MujocoDomain:
    """The domain of a config, if it has a camera."""
    domain = DomainConfig.model_validate(config).make()
    if not isinstance(domain, MujocoDomain) or domain.camera is None:
        raise UserError(
            f"descriptor.kind is 'image', but the domain {config['name']} has no camera; take cartpole_length, or give "
            "your subclass of MujocoDomain a `camera`."
        )
    return domain


def _drawn(request: str) -> tuple[bytes, str]:
    """The images of the first backend that works, and its name."""
    wanted = os.environ.get("MUJOCO_GL", "").strip().lower()
    backends: Sequence[str] = (wanted,) if wanted else BACKENDS
    for backend in backends:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        environment = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": path}
        if not wanted:
            environment.pop("PYOPENGL_PLATFORM", None)
        command = [sys.executable, "-m", "distpaml.descriptors.render"]
        with suppress(subprocess.SubprocessError):
            done = subprocess.run(
                command, input=request.encode(), capture_output=True, env=environment, timeout=PATIENCE, check=True
            )
            return done.stdout, backend
    tried = " and ".join(backends)
    how = f"MUJOCO_GL is {wanted!r}; unset it" if wanted else f"install the Debian packages {PACKAGES}"
    raise RenderError(
        f"Images cannot be rendered here ({tried} failed): {how}. Only experiments with images need this."
    )


def working_backend() -> str:
    """The backend that works here, tested on one small image; raises `RenderError` if there is none."""
    request = {"domain": {"name": "cartpole_length"}, "tasks": [[1.0]], "height": 8, "width": 8}
    return _drawn(json.dumps(request))[1]


def _size(request: dict[str, Any]) -> tuple[int, int]:
    """Height and width before averaging."""
    return SHARPNESS * request["height"], SHARPNESS * request["width"]


def _spec(domain: MujocoDomain, task: Array, size: tuple[int, int]) -> Any:
    """The model to render, without textures: they take most of the time and show nothing about a task."""
    assert domain.camera is not None
    spec = domain.spec(task)
    view, quality = spec.visual.global_, spec.visual.quality
    view.orthographic, view.fovy = 1, domain.camera.height
    view.offheight, view.offwidth = size
    quality.offsamples = quality.shadowsize = 0
    for light in spec.lights:
        light.castshadow = False
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for texture in list(spec.textures):
        spec.delete(texture)
    return spec


class _Painter:
    """A GL context and a MuJoCo scene, for the rendering process."""

    def __init__(self, domain: MujocoDomain, size: tuple[int, int]) -> None:
        import mujoco

        self.domain, self.size = domain, size
        self.context = mujoco.GLContext(self.size[1], self.size[0])
        self.context.make_current()
        first = _spec(domain, np.array([low for low, _ in domain.box.values()]), size).compile()
        self.scene = mujoco.MjvScene(first, maxgeom=1000)
        self.target = mujoco.MjrContext(first, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.target)

    def paint(self, task: Array) -> Any:
        """The image of one task [P] as bytes [height, width]."""
        import mujoco

        assert self.domain.camera is not None
        model = _spec(self.domain, task, self.size).compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        view = mujoco.MjvCamera()
        view.lookat[:], view.distance = self.domain.camera.centre, 10.0
        view.azimuth, view.elevation = self.domain.camera.azimuth, self.domain.camera.elevation
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, view, everything, self.scene)
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
        ):
            self.scene.flags[flag] = 0
        area = mujoco.MjrRect(0, 0, self.size[1], self.size[0])
        pixels = np.empty((*self.size, 3), np.uint8)
        mujoco.mjr_render(area, self.scene, self.target)
        mujoco.mjr_readPixels(pixels, None, area, self.target)
        blocks = pixels[::-1].reshape(self.size[0] // SHARPNESS, SHARPNESS, -1, SHARPNESS, 3)
        return np.rint(blocks.mean(axis=(1, 3, 4))).astype(np.uint8)


def main() -> None:
    """Read a request from standard input and write its images to standard output, as npz."""
    request = json.load(sys.stdin)
    domain = camera_domain(request["domain"])
    painter = _Painter(domain, _size(request))
    buffer = BytesIO()
    np.savez_compressed(buffer, pixels=np.stack([painter.paint(np.array(task)) for task in request["tasks"]]))
    sys.stdout.buffer.write(buffer.getvalue())


if __name__ == "__main__":
    main()
