import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from distpaml.select.candidates import Candidates
from distpaml.select.context import Embedded
from distpaml.select.surprisal import surprisal

seeds = st.integers(0, 2**32 - 1)


def mixture(tasks: int, latent: int, rng: np.random.Generator) -> Embedded:
    variance = 10.0 ** rng.uniform(-6, 1, (tasks, latent))
    return Embedded(rng.normal(0, 2, (tasks, latent)), variance)


def score(h: np.ndarray, known: Embedded) -> np.ndarray:
    return surprisal(Candidates.at(h), known)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), seeds)
def test_surprisal_is_the_negative_log_of_the_mixture_density(tasks, latent, seed):
    rng = np.random.default_rng(seed)
    context, h = mixture(tasks, latent, rng), rng.normal(0, 3, (7, latent))
    components = [
        multivariate_normal(n, np.diag(t)).logpdf(h) for n, t in zip(context.mean, context.variance, strict=True)
    ]
    expected = -logsumexp(np.array(components), axis=0, b=1 / tasks)
    np.testing.assert_allclose(score(h, context), expected, rtol=1e-10)


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
    np.testing.assert_allclose(score(h, context), expected, rtol=1e-12, atol=1e-13)


def test_surprisal_in_high_precision():
    """Variances of 1e-8 and 1, distances from 1e-5 to 1e4: fifty digits say the same."""
    from mpmath import mp, mpf

    variance = np.array([[1e-8, 1e-4], [1.0, 1e-8], [1e-3, 1e-3]])
    mean = np.array([[0.0, 0.0], [1.0, -1.0], [0.1, 0.1]])
    context = Embedded(mean, variance)
    h = np.array([[1e-5, 0.0], [0.5, -0.5], [1e4, -1e4], [0.1, 0.1], [0.02, 0.03], [1.0, -1.0 + 1e-5]])
    with mp.workdps(50):
        for row, found in zip(h, score(h, context), strict=True):
            density = sum(
                mp.exp(-sum((mpf(x) - mpf(m)) ** 2 / (2 * mpf(v)) for x, m, v in zip(row, n, t, strict=True)))
                / mp.sqrt(mp.fprod(2 * mp.pi * mpf(v) for v in t))
                for n, t in zip(mean, variance, strict=True)
            )
            assert found == pytest.approx(float(-mp.log(density / 3)), rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), seeds)
def test_surprisal_does_not_depend_on_order_or_shards(tasks, candidates, seed):
    rng = np.random.default_rng(seed)
    context, h = mixture(tasks, 2, rng), rng.normal(0, 3, (candidates, 2))
    whole = score(h, context)
    order, cut = rng.permutation(candidates), rng.integers(candidates + 1)
    np.testing.assert_array_equal(score(h[order], context), whole[order])
    shards = [score(part, context) for part in (h[:cut], h[cut:]) if len(part)]
    np.testing.assert_array_equal(np.concatenate(shards), whole)


def test_surprisal_in_small_tables_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    context, h = mixture(5, 2, rng), rng.normal(size=(33, 2))
    whole = score(h, context)
    monkeypatch.setattr("distpaml.select.surprisal.TABLE", 10)
    np.testing.assert_array_equal(score(h, context), whole)


def test_surprisal_is_finite_where_densities_vanish():
    context = mixture(3, 2, np.random.default_rng(0))
    far = np.full((1, 2), 1e6)
    assert np.isfinite(score(far, context)) and score(far, context) > 1e9
