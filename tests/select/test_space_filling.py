import numpy as np
from known_tasks import candidates, known
from scipy.spatial.distance import cdist

from distpaml.select.space_filling import descriptor_maximin, latent_maximin


def test_latent_maximin_is_the_distance_to_the_nearest_task_in_length_scales():
    context, h = known(), np.random.default_rng(0).normal(0, 2, (30, 2))
    rate = context.model.posterior.rate_h.numpy()
    expected = cdist(h, context.mean, "minkowski", p=2, w=rate**2).min(axis=1)
    np.testing.assert_allclose(latent_maximin(candidates(h), context), expected, rtol=1e-12)


def test_descriptor_maximin_is_the_distance_to_the_nearest_task_in_sides_of_the_box():
    context, some = known(), candidates(np.zeros((30, 2)))
    expected = cdist(some.descriptors, context.descriptors, "minkowski", p=2, w=np.array([4.5, 1.5]) ** -2)
    np.testing.assert_allclose(descriptor_maximin(some, context), expected.min(axis=1), rtol=1e-12)
