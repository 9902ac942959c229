import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distpaml.domains import CartPole
from distpaml.domains.signals import Signal, alternating_ramp, control_signals

limits = st.floats(0.1, 100)
shapes = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 200)))


def test_the_papers_ramp():
    ramp = alternating_ramp(25, 10, 100)
    np.testing.assert_allclose(ramp[:10], np.linspace(12.5, 25, 10))
    np.testing.assert_allclose(ramp[10:20], -np.linspace(12.5, 25, 10))
    np.testing.assert_allclose(ramp[20:], np.tile(ramp[:20], 4))


@given(limits, shapes)
def test_ramps_alternate_fill_the_length_and_lie_between_half_and_full(limit, shape):
    alternations, length = shape
    ramp = alternating_ramp(limit, alternations, length)
    assert ramp.shape == (length,)
    assert np.abs(ramp).min() == limit / 2
    assert np.abs(ramp).max() <= limit
    assert (np.diff(np.sign(ramp)) != 0).sum() == alternations - 1
    assert ramp[0] > 0
    sizes = np.diff([0, *np.flatnonzero(np.diff(np.sign(ramp))) + 1, length])
    assert sizes.max() - sizes.min() <= 1
    assert list(sizes) == sorted(sizes, reverse=True)


@given(limits, shapes, st.integers(0, 2**32))
def test_signal_is_the_clipped_noisy_ramp_of_its_rng(limit, shape, seed):
    alternations, steps = shape
    signal = control_signals(CartPole(), Signal(), limit, alternations, steps, np.random.default_rng(seed))
    assert signal.shape == (steps - 1, 1)
    assert np.abs(signal).max(initial=0.0) <= limit
    again = control_signals(CartPole(), Signal(), limit, alternations, steps, np.random.default_rng(seed))
    np.testing.assert_array_equal(signal, again)


def test_noise_is_standard_normal_where_nothing_is_clipped():
    signal = control_signals(CartPole(), Signal(), 1000, 1, 20_001, np.random.default_rng(0))[:, 0]
    noise = (signal - alternating_ramp(1000, 1, 20_001)[:-1])[:19_000]
    assert noise.mean() == pytest.approx(0, abs=0.03)
    assert noise.std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("alternations", [0, 6])
def test_ramps_that_do_not_fit_are_refused(alternations):
    with pytest.raises(ValueError, match=f"{alternations} alternations do not fit into a signal of length 5"):
        alternating_ramp(1.0, alternations, 5)
