"""Real renders: the same every time and by every backend, and of the pole that was asked for."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from distpaml.config import DomainConfig, load
from distpaml.descriptors import get_descriptor, render
from distpaml.errors import UserError

LENGTHS = np.linspace(0.5, 4.5, 9)[:, None]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache, on disk and in memory, and no wish for a backend."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("PYOPENGL_PLATFORM", raising=False)
    render._kept.cache_clear()
    yield tmp_path / "cache"
    render._kept.cache_clear()


def drawn(lengths=LENGTHS, height=64, width=16):
    return render.render(DomainConfig(name="cartpole_length"), lengths, height, width)


def pole_pixels(images: np.ndarray) -> np.ndarray:
    """The pole's length in pixels [N]: the brightness of the columns of the pole, above the cart."""
    middle = images[:, :, images.shape[2] // 2 - 1 : images.shape[2] // 2 + 1].sum(axis=2)  # [N, H]
    above = middle[:, : int(0.82 * images.shape[1])]
    return above.sum(axis=1) / middle[-1, images.shape[1] // 2]


def test_images_are_grey_values_and_the_same_again(fresh):
    first = drawn()
    assert first.shape == (9, 64, 16) and first.min() == 0.0 and 0.3 < first.max() <= 1.0
    (file,) = fresh.glob("distpaml/images/*")
    file.unlink()
    render._kept.cache_clear()
    np.testing.assert_array_equal(drawn(), first)


def test_the_pole_grows_in_proportion_to_its_length(fresh):
    pixels = pole_pixels(drawn())
    growth = np.diff(pixels)
    per_metre = 64 / 5.6
    np.testing.assert_allclose(growth, 0.5 * per_metre, rtol=0.12)
    assert (growth > 0).all()


def test_the_longest_pole_is_in_view_and_nothing_else_depends_on_the_length(fresh):
    images = drawn()
    assert images[-1, :3].max() < 0.02 and images[-1, 8, 7:9].max() > 0.1  # dark above the tip, and the tip
    middle = np.zeros(16, bool)
    middle[6:10] = True
    np.testing.assert_allclose(images[:, :, ~middle], images[:1, :, ~middle].repeat(9, axis=0), atol=0.02)


def test_an_image_does_not_depend_on_the_others(fresh):
    np.testing.assert_array_equal(drawn(LENGTHS[4:5])[0], drawn()[4])


@pytest.mark.gl
def test_every_installed_backend_draws_the_same_bits(fresh, monkeypatch):
    """EGL or OSMesa: a machine needs one of them."""
    expected, installed = drawn(), []
    for backend in render.BACKENDS:
        monkeypatch.setenv("MUJOCO_GL", backend)
        try:
            assert render.working_backend() == backend
        except render.RenderError:
            continue
        installed.append(backend)
        monkeypatch.setenv("XDG_CACHE_HOME", str(fresh / backend))
        render._kept.cache_clear()
        np.testing.assert_array_equal(drawn(), expected)
    assert installed


def test_the_second_time_no_process_is_started(fresh, monkeypatch):
    first = drawn()
    render._kept.cache_clear()
    monkeypatch.setattr(subprocess, "run", None)
    again = drawn()
    np.testing.assert_array_equal(again, first)
    again[:] = 7.0
    np.testing.assert_array_equal(drawn(), first)  # what callers do to their images is their business


def test_a_damaged_cache_is_drawn_again(fresh):
    first = drawn()
    (file,) = fresh.glob("distpaml/images/*")
    for contents in (b"", file.read_bytes()[:-30], b"PK nonsense"):
        file.write_bytes(contents)
        render._kept.cache_clear()
        np.testing.assert_array_equal(drawn(), first)


def test_a_cache_that_cannot_be_written_is_no_obstacle(fresh, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert drawn().shape == (9, 64, 16)


def test_other_content_is_another_file(fresh):
    drawn()
    drawn(height=32)
    drawn(LENGTHS[:2])
    render.render(DomainConfig(name="cartpole_length", variant="code"), LENGTHS, 64, 16)
    assert len(list(fresh.glob("distpaml/images/*.npz"))) == len(list(fresh.glob("distpaml/images/*"))) == 4


@pytest.mark.gl
def test_it_renders_where_mujoco_was_imported_without_gl(fresh):
    code = (
        "import mujoco, numpy as np\n"
        "from distpaml.config import DomainConfig\n"
        "from distpaml.descriptors.render import render\n"
        "print(render(DomainConfig(name='cartpole_length'), np.array([[1.0]]), 8, 8).shape)\n"
        "import sys; print('OpenGL' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("(1, 8, 8)\nFalse\n", 0), done.stderr


def test_without_a_backend_it_is_one_sentence_that_says_what_to_install(fresh, monkeypatch):
    monkeypatch.setattr(render, "BACKENDS", ("disable",))
    with pytest.raises(UserError) as caught:
        drawn()
    said = str(caught.value)
    assert "libegl1 and libgl1-mesa-dri, or libosmesa6" in said and "Only experiments with images" in said


def test_a_backend_that_was_wished_for_is_respected(fresh, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(UserError, match="MUJOCO_GL is 'disable'; unset it"):
        drawn()


def test_only_work_with_images_looks_for_a_renderer():
    code = (
        "import sys, json\nfrom distpaml.config import load\nfrom distpaml.data.tasks import TaskSet\n"
        "import distpaml.runtime.local\nTaskSet(load('cartpole')).initial()\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('OpenGL') or m.endswith('.render')]))"
    )
    environment = {**os.environ, "MUJOCO_GL": "disable"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == [], done.stderr


@pytest.mark.parametrize("domain", ["cartpole", "pendubot"])
def test_a_domain_without_a_camera_is_a_sentence(domain):
    config = load(None, [f"domain.name={domain}", "descriptor.kind=image"])
    descriptor = get_descriptor(config.descriptor, config.domain.box, config.domain)
    with pytest.raises(UserError, match=f"the domain {domain} has no camera"):
        descriptor.images(descriptor.choices)
