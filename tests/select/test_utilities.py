import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from tiny import rounds_of

from distpaml.errors import UserError
from distpaml.select import utilities
from distpaml.select.utilities import (
    UTILITIES,
    SelectionContext,
    get_utility,
    integrated_variance,
    predictive_variance,
    surprisal,
)

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    """After three tasks, with a domain of twenty latents around them."""
    first = rounds_of()[0]
    return SelectionContext.of(first.model, first.data, np.random.default_rng(1).normal(0, 1.5, (20, 2)))


def mixture(tasks: int, latent: int, rng: np.random.Generator) -> SelectionContext:
    variance = 10.0 ** rng.uniform(-6, 1, (tasks, latent))
    empty = np.zeros((0, latent))
    return SelectionContext(rng.normal(0, 2, (tasks, latent)), variance, empty, empty, None, tasks)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), seeds)
def test_surprisal_is_the_negative_log_of_the_mixture_density(tasks, latent, seed):
    rng = np.random.default_rng(seed)
    context, h = mixture(tasks, latent, rng), rng.normal(0, 3, (7, latent))
    components = [
        multivariate_normal(n, np.diag(t)).logpdf(h) for n, t in zip(context.mean, context.variance, strict=True)
    ]
    expected = -logsumexp(np.array(components), axis=0, b=1 / tasks)
    np.testing.assert_allclose(surprisal(h, np.zeros_like(h), context), expected, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), seeds)
def test_surprisal_is_the_plain_formula_to_twelve_digits(tasks, latent, seed):
    """Near the tasks, where all terms count, and far from them, where one does; latents known to 1e-3 or not at all."""
    rng = np.random.default_rng(seed)
    context = mixture(tasks, latent, rng)
    near = context.mean[rng.integers(tasks, size=40)] + np.sqrt(context.variance.mean(axis=0)) * rng.normal(
        size=(40, latent)
    )
    h = np.vstack([near, rng.uniform(-12, 12, (40, latent)), context.mean])
    exponent = (
        (h[:, None] - context.mean) ** 2 / (2 * context.variance) + 0.5 * np.log(2 * np.pi * context.variance)
    ).sum(-1)
    expected = np.log(tasks) - logsumexp(-exponent, axis=1)
    np.testing.assert_allclose(surprisal(h, h, context), expected, rtol=1e-12, atol=1e-13)


def test_surprisal_in_high_precision():
    """Variances of 1e-8 and 1, distances from 1e-5 to 1e4: fifty digits say the same."""
    from mpmath import mp, mpf

    variance = np.array([[1e-8, 1e-4], [1.0, 1e-8], [1e-3, 1e-3]])
    mean = np.array([[0.0, 0.0], [1.0, -1.0], [0.1, 0.1]])
    context = SelectionContext(mean, variance, mean[:0], mean[:0], None, 3)
    h = np.array([[1e-5, 0.0], [0.5, -0.5], [1e4, -1e4], [0.1, 0.1], [0.02, 0.03], [1.0, -1.0 + 1e-5]])
    with mp.workdps(50):
        for row, score in zip(h, surprisal(h, h, context), strict=True):
            density = sum(
                mp.exp(-sum((mpf(x) - mpf(m)) ** 2 / (2 * mpf(v)) for x, m, v in zip(row, n, t, strict=True)))
                / mp.sqrt(mp.fprod(2 * mp.pi * mpf(v) for v in t))
                for n, t in zip(mean, variance, strict=True)
            )
            assert score == pytest.approx(float(-mp.log(density / 3)), rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), seeds)
def test_surprisal_does_not_depend_on_order_or_shards(tasks, candidates, seed):
    rng = np.random.default_rng(seed)
    context, h = mixture(tasks, 2, rng), rng.normal(0, 3, (candidates, 2))
    whole = surprisal(h, h, context)
    order, cut = rng.permutation(candidates), rng.integers(candidates + 1)
    np.testing.assert_array_equal(surprisal(h[order], h[order], context), whole[order])
    shards = [surprisal(part, part, context) for part in (h[:cut], h[cut:]) if len(part)]
    np.testing.assert_array_equal(np.concatenate(shards), whole)


def test_surprisal_in_small_tables_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    context, h = mixture(5, 2, rng), rng.normal(size=(33, 2))
    whole = surprisal(h, h, context)
    monkeypatch.setattr(utilities, "TABLE", 10)
    np.testing.assert_array_equal(surprisal(h, h, context), whole)


def test_surprisal_is_finite_where_densities_vanish():
    context = mixture(3, 2, np.random.default_rng(0))
    far = np.full((1, 2), 1e6)
    assert np.isfinite(surprisal(far, far, context)) and surprisal(far, far, context) > 1e9


@pytest.mark.parametrize("name", ["integrated_variance", "predictive_variance"])
def test_other_utilities_do_not_depend_on_order_or_shards(context, name):
    rng = np.random.default_rng(3)
    h, t = rng.normal(size=(23, 2)), rng.uniform(0, 0.1, (23, 2))
    whole, order = UTILITIES[name](h, t, context), rng.permutation(23)
    np.testing.assert_allclose(UTILITIES[name](h[order], t[order], context), whole[order], rtol=1e-8)
    shards = np.concatenate([UTILITIES[name](h[i : i + 5], t[i : i + 5], context) for i in range(0, 23, 5)])
    np.testing.assert_allclose(shards, whole, rtol=1e-8)


def test_integrated_variance_is_the_fall_of_a_gps_variance(context):
    """Condition a GP on the tasks, then on the candidate too; compare variances at the references."""
    lengthscale = 1.0 / context.posterior.rate_h.numpy()
    exact = SelectionContext(
        context.mean, np.zeros_like(context.mean), context.references, context.inputs, context.posterior, 3
    )
    h = np.array([[0.3, -1.0], [2.0, 2.0]])

    def kernel(a, b):
        return np.exp(-0.5 * (((a[:, None] - b) / lengthscale) ** 2).sum(-1))

    def total(points):
        inverse = np.linalg.inv(kernel(points, points) + 1e-6 * np.eye(len(points)))
        cross = kernel(context.references, points)
        return np.mean(1 - ((cross @ inverse) * cross).sum(1))

    expected = [total(context.mean) - total(np.vstack([context.mean, c])) for c in h]
    np.testing.assert_allclose(integrated_variance(h, np.zeros_like(h), exact), expected, rtol=1e-5)


def test_integrated_variance_gains_less_from_candidates_whose_latent_is_uncertain(context):
    h = np.random.default_rng(0).normal(size=(9, 2))
    lengthscale = 1.0 / context.posterior.rate_h.numpy()
    sure, vague = (integrated_variance(h, np.tile(t * lengthscale**2, (9, 1)), context) for t in (0.0, 5.0))
    assert (vague < sure).all()


def dense_covariance(context: SelectionContext, output: int, points: np.ndarray) -> np.ndarray:
    """a k(p, p') − k_pZ Q k_Zp' of points (x, h) in units of the length-scales, straight from the formula."""
    posterior = context.posterior
    z = torch.cat([posterior.zx, posterior.zh], -1).numpy()

    def k(a, b):
        return np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(-1))

    q = posterior.q[output].numpy()
    return posterior.amplitude.item() * k(points, points) - k(points, z) @ q @ k(z, points)


@pytest.mark.parametrize("pending", [[], [[0.5, 0.5]]])
def test_predictive_variance_is_the_fall_of_the_models_variance(context, pending):
    """Condition the dense posterior of every output on an imagined trajectory; compare variances at the references."""
    for latent in pending:
        context = context.observing(np.array(latent))
    posterior, inputs = context.posterior, len(context.inputs)

    def points(latents):
        x = np.tile(context.inputs * posterior.rate_x.numpy(), (len(latents), 1))
        return np.hstack([x, np.repeat(np.atleast_2d(latents) * posterior.rate_h.numpy(), inputs, axis=0)])

    def total(output, observed):
        everything = np.vstack([points(context.references), points(observed)]) if len(observed) else None
        everything = points(context.references) if everything is None else everything
        covariance, split = dense_covariance(context, output, everything), len(context.references) * inputs
        noisy = covariance[split:, split:] + posterior.noise[output].item() * np.eye(len(covariance) - split)
        gain = covariance[:split, split:] @ np.linalg.solve(noisy, covariance[split:, :split])
        return np.mean(np.diag(covariance)[:split] - np.diag(gain))

    h = np.array([[0.3, -1.0], [2.0, 2.0], context.mean[0]])
    expected = [
        np.mean([total(d, [*pending]) - total(d, [*pending, c]) for d in range(len(posterior.noise))]) for c in h
    ]
    np.testing.assert_allclose(predictive_variance(h, np.zeros_like(h), context), expected, rtol=1e-3, atol=1e-9)


def test_the_covariances_are_those_of_the_models_predictions(context):
    from distpaml.model.posterior import Latents

    h = torch.tensor([[0.3, -1.0]], dtype=torch.float64)
    x = torch.as_tensor(context.inputs)
    _, variance = context.posterior.predict(x[None], Latents(h, torch.zeros_like(h)))
    points = torch.cat([x * context.posterior.rate_x, (h * context.posterior.rate_h).expand(len(x), -1)], -1).numpy()
    for d, noise in enumerate(context.posterior.noise):
        own = np.diag(dense_covariance(context, d, points)) + noise.item()
        np.testing.assert_allclose(variance[0, :, d].numpy(), own, rtol=1e-4)


@pytest.mark.parametrize("name", UTILITIES)
def test_a_chosen_task_counts_as_observed(context, name):
    h = np.array([[1.0, 1.5], [-2.0, 0.5]])
    before = UTILITIES[name](h, np.zeros_like(h), context)
    after = UTILITIES[name](h, np.zeros_like(h), context.observing(h[0]))
    assert after[0] < 0.5 * before[0]


def test_an_unknown_utility_is_a_sentence():
    with pytest.raises(UserError, match="'suprisal', but there is no such utility; the nearest is surprisal"):
        get_utility("suprisal")
