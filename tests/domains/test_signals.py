"""Control signals: the paper's to the last bit, and others within the limits of every control."""

import numpy as np
import pytest
from families import ARM, load_family
from hypothesis import given, settings
from hypothesis import strategies as st

from distpaml.config import load
from distpaml.domains import CartPole, control_signals
from distpaml.domains.signals import Signal, alternating_ramp, default_signals
from distpaml.errors import UserError
from distpaml.runtime.local import LocalSimulator

SHAPES = ["ramp", "chirp", "prbs", "multisine"]


class TwoControls(CartPole):
    controls = ("left", "right")
    limits = {"right": (0.0, 4.0)}  # noqa: RUF012
    control_noise = None


def test_the_default_is_the_papers_ramp_to_the_last_bit():
    domain = CartPole()
    mine = default_signals(domain, np.random.default_rng(3))
    noisy = alternating_ramp(25.0, 10, 100) + np.random.default_rng(3).standard_normal(100)
    np.testing.assert_array_equal(mine, np.clip(noisy, -25.0, 25.0)[:-1, None])


@settings(deadline=None)  # scipy's part for PRBS is imported when it is needed
@given(st.sampled_from(SHAPES), st.floats(0.1, 50), st.integers(1, 8), st.integers(8, 120), st.integers(0, 99))
def test_every_control_stays_within_its_own_limits(shape, limit, alternations, length, seed):
    signal = Signal(shape, {"left": (-3.0, 1.0)}, noise=0.5)
    values = control_signals(TwoControls(), signal, limit, alternations, length, np.random.default_rng(seed))
    assert values.shape == (length - 1, 2)
    for column, (low, high) in zip(values.T, [(-3.0, 1.0), (0.0, 4.0)], strict=True):
        assert column.min() >= max(low, -limit) - 1e-12
        assert column.max() <= min(high, limit) + 1e-12
    again = control_signals(TwoControls(), signal, limit, alternations, length, np.random.default_rng(seed))
    np.testing.assert_array_equal(values, again)


@pytest.mark.parametrize("shape", SHAPES)
def test_controls_of_one_system_can_be_told_apart(shape):
    values = control_signals(TwoControls(), Signal(shape), 4.0, 5, 200, np.random.default_rng(0))
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.9
    assert (values.std(axis=0) > 0.2).all()


def test_a_chirp_rises_from_one_frequency_to_the_other():
    """Zero crossings of 1 → 5 Hz over 10 s: about twice the mean frequency times the seconds."""
    values = control_signals(Slow(), Signal("chirp", frequencies=(1.0, 5.0)), 1.0, 1, 1001, np.random.default_rng(0))
    crossings = np.flatnonzero(np.diff(np.sign(values[:, 0])))
    assert len(crossings) == pytest.approx(60, abs=2)
    assert (crossings < 250).sum() < (crossings > 750).sum() / 2


class Slow(CartPole):
    dt = 0.01


def test_a_prbs_has_two_values_and_holds_them():
    values = control_signals(CartPole(), Signal("prbs", hold=4), 2.0, 1, 401, np.random.default_rng(0))[:, 0]
    assert set(values) == {-2.0, 2.0}
    np.testing.assert_array_equal(values.reshape(-1, 4), np.repeat(values[::4, None], 4, axis=1))
    assert abs(values.mean()) < 0.5


def test_a_multisine_has_power_at_its_frequencies_only():
    signal = Signal("multisine", frequencies=(1.0, 4.0), sines=4)
    values = control_signals(Slow(), signal, 1.0, 1, 1001, np.random.default_rng(0))[:, 0]
    power = np.abs(np.fft.rfft(values)) ** 2  # of 10 s: 0.1 Hz apart
    assert power[[10, 20, 30, 40]].sum() > 0.99 * power.sum()
    assert np.abs(values).max() == pytest.approx(1.0)


def test_recorded_controls_are_taken_as_they_are_and_travel_with_the_config(tmp_path):
    rows = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    lines = ["elbow_motor,shoulder_motor", *(f"{a!r},{b!r}" for a, b in rows.tolist())]
    (tmp_path / "drive.csv").write_text("\n".join(lines) + "\n")
    config = load_family(tmp_path, ARM | {"signal": {"recorded": "drive.csv"}}, "domain.trajectory_length=41")
    (tmp_path / "drive.csv").unlink()
    assert config.domain.signal.shape == "recorded"
    again = type(config).from_yaml(config.to_yaml())
    np.testing.assert_array_equal(LocalSimulator(again).signal, rows[:, ::-1])
    with pytest.raises(UserError, match=r"have 40 rows, but domain.trajectory_length=42 needs 41"):
        LocalSimulator(config.model_copy(update={"domain": config.domain.model_copy(update={"trajectory_length": 42})}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("elbow_motor\n1\n", "no column shoulder_motor; their columns are elbow_motor"),
        ("elbow_motor,shoulder_motor\n" + "0,9\n" * 99, "shoulder_motor is 9 in row 1, outside"),
        ("elbow_motor,shoulder_motor\n1\n", "has 1 values in line 2, but 2 names"),
        ("elbow_motor,shoulder_motor\n1,x\n", "line 2 has 'x', which is no number"),
        ("a,a\n1,2\n", "names that differ"),
        ("", "a line of names"),
    ],
)
def test_a_recording_that_does_not_fit_is_a_sentence(tmp_path, text, said):
    (tmp_path / "drive.csv").write_text(text)
    with pytest.raises(UserError) as caught:
        LocalSimulator(load_family(tmp_path, ARM | {"signal": {"recorded": "drive.csv"}}))
    assert said in str(caught.value)


def test_a_signal_is_for_the_papers_domains_too():
    plain, chirp = (LocalSimulator(load("cartpole", words)).signal for words in ([], ["domain.signal.shape=chirp"]))
    assert plain.shape == chirp.shape == (99, 1)
    assert np.abs(chirp).max() <= 25.0
    assert not np.array_equal(plain, chirp)


def test_limits_beyond_the_control_limit_are_a_sentence():
    with pytest.raises(UserError, match=r"limits \[5, 9\], of which nothing lies within the control limit ±2"):
        control_signals(CartPole(), Signal(limits={"control": (5.0, 9.0)}), 2.0, 5, 20, np.random.default_rng(0))
