"""Images of a family from data."""

import numpy as np
import pytest

from distpaml.config import load
from distpaml.data.tasks import TaskSet


@pytest.mark.parametrize("name", ["dm_acrobot", "dm_reacher"])
def test_a_family_is_seen_from_where_it_shows_most(name):
    """The reacher lies in a plane of its own, seen from above; the acrobot stands upright."""
    config = load(name, ["descriptor.kind=image", "descriptor.images=8", "descriptor.width=64", "rounds=1"])
    (image,) = TaskSet(config).descriptor.images(np.array([[1.0, 1.0]]))
    assert image.std() > 0.02
    assert config.domain.make().camera.elevation == (-90.0 if name == "dm_reacher" else 0.0)


def test_a_family_is_seen_whole_and_its_images_differ():
    config = load("two_link_arm", ["descriptor.kind=image", "descriptor.images=8", "descriptor.width=64", "rounds=1"])
    images = TaskSet(config).descriptor.images(np.array([[0.3, 0.5, 1.0], [0.8, 0.5, 1.0]]))
    assert images.shape == (2, 64, 64)
    background = np.median(images)
    bodies = np.abs(images - background) > 0.05
    assert bodies[1].sum() > bodies[0].sum() > 20  # the longer arm is larger
    assert not bodies[:, [0, -1]].any() and not bodies[:, :, [0, -1]].any()
