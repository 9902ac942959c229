"""One suite over all domains and variants, and the checker that users run on their own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toy_domain import FAULTS, Spring

from distpaml.domains import DOMAINS, Domain, check_domain
from distpaml.domains.signals import default_signals
from distpaml.errors import UserError

ALL = [cls(variant) for cls in DOMAINS.values() for variant in cls.variants]


@pytest.fixture(params=ALL, ids=[f"{domain.name}-{domain.variant}" for domain in ALL])
def domain(request) -> Domain:
    return request.param


@pytest.fixture
def batch(domain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid of 36 tasks over the box, corners included, under one control signal."""
    axes = [np.linspace(low, high, round(36 ** (1 / len(domain.box)))) for low, high in domain.box.values()]
    tasks = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(axes))
    starts = np.stack([domain.start(np.random.default_rng(i)) for i in range(len(tasks))])
    signal = default_signals(domain, np.random.default_rng(0))
    return tasks, starts, np.repeat(signal[None], len(tasks), axis=0)


def test_spec_has_the_papers_numbers(domain):
    paper = {
        "cartpole": ({"pole_mass": (0.5, 5), "pole_length": (0.5, 2)}, 4, 0.125, 25, 10),
        "cartpole_short": ({"pole_mass": (0.4, 3), "pole_length": (0.4, 3)}, 4, 0.125, 25, 10),
        "cartpole_length": ({"pole_length": (0.5, 4.5)}, 4, 0.125, 25, 10),
        "pendubot": ({"upper_length": (0.6, 3), "lower_length": (0.6, 3)}, 4, 0.05, 10, 5),
        "cart_double_pole": ({"inner_length": (0.5, 3), "outer_length": (0.5, 3)}, 6, 0.05, 25, 10),
    }
    box, size, dt, limit, alternations = paper[domain.name]
    assert domain.box == box
    assert len(domain.states) == size
    assert (domain.dt, domain.control_limit, domain.alternations) == (dt, limit, alternations)
    assert domain.trajectory_length == 100


def test_starts_hang_at_rest_with_small_noise(domain):
    starts = np.stack([domain.start(np.random.default_rng(i)) for i in range(400)])
    hanging = np.zeros(len(domain.states))
    hanging[domain.states.index(domain.angles[0])] = -np.pi if domain.name == "pendubot" else np.pi
    np.testing.assert_allclose(starts.mean(axis=0), hanging, atol=0.003)
    np.testing.assert_allclose(starts.std(axis=0), 0.01, rtol=0.15)


def test_contract_holds(domain):
    assert check_domain(domain) == []


def test_finite_and_moving_over_the_whole_box(domain, batch):
    states = domain.simulate(*batch)
    assert states.shape == (36, 100, len(domain.states))
    assert np.isfinite(states).all()
    assert (np.abs(np.diff(states, axis=1)).max(axis=(1, 2)) > 0.1).all()


def test_no_seed_diverges_where_speeds_are_highest(domain):
    """The short end of the last parameter, over 20 control signals."""
    low, high = np.array(list(domain.box.values())).T
    tasks = np.linspace(low, high, 10)
    tasks[:, -1] = low[-1]
    starts = np.stack([domain.start(np.random.default_rng(i)) for i in range(10)])
    for seed in range(20):
        signal = default_signals(domain, np.random.default_rng(seed))
        domain.simulate(tasks, starts, np.repeat(signal[None], 10, axis=0))


def test_same_bits_whatever_batch_order_and_threads(domain, batch):
    states = domain.simulate(*batch)
    order = np.random.default_rng(1).permutation(len(states))
    shuffled = domain.simulate(*(values[order] for values in batch), threads=3)
    np.testing.assert_array_equal(shuffled, states[order])
    for i in (0, 17, 35):
        alone = domain.simulate(*(values[i : i + 1] for values in batch))
        np.testing.assert_array_equal(alone[0], states[i])


def test_arguments_survive_and_results_are_new(domain, batch):
    before = [values.copy() for values in batch]
    first, second = domain.simulate(*batch), domain.simulate(*batch)
    for now, then in zip(batch, before, strict=True):
        np.testing.assert_array_equal(now, then)
        assert not np.shares_memory(first, now)
    assert not np.shares_memory(first, second)


def test_unknown_reading_is_refused_by_name():
    with pytest.raises(UserError, match=r"no variant 'printed'; it knows paper, code"):
        DOMAINS["cartpole"]("printed")


def test_a_good_domain_without_mujoco_passes():
    assert check_domain(Spring()) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_checker_names_a_planted_fault(fault):
    faults = check_domain(fault())
    assert len(faults) == 1, faults
    assert fault.sentence in faults[0]


def test_checker_as_a_command(tmp_path):
    here = Path(__file__).parent
    (tmp_path / "mine.py").write_text((here / "toy_domain.py").read_text())

    def run(name: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "distpaml.domains.check", name]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    good, bad, absent = run("mine:Spring"), run("mine:Deaf"), run("cartpol")
    assert (good.returncode, good.stderr) == (0, "")
    assert bad.returncode == 1
    assert "the control makes no difference" in bad.stdout
    assert absent.returncode == 2
    assert "the nearest is cartpole" in absent.stderr
    assert absent.stdout == ""
