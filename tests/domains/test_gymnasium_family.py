"""Families from gymnasium environments."""

import numpy as np
import pytest
from families import load_family

from distpaml.domains import check_domain
from distpaml.domains.vector_environments import has_vector_version
from distpaml.errors import UserError

PENDULUM = {
    "gymnasium": "Pendulum-v1",
    "parameters": {"m": {"range": [0.5, 2.0]}, "long": {"range": [0.5, 1.5], "attribute": "l"}},
    "states": ["theta", "theta_dot"],
    "angles": ["theta"],
    "controls": ["torque"],
    "start": {"theta": "pi"},
    "links": [["theta", "long"]],
}
CART = {
    "gymnasium": "CartPole-v1",
    "parameters": {
        "mass": {
            "range": [0.1, 1.0],
            "sets": {"masspole": "mass", "total_mass": "1 + mass", "polemass_length": "0.5 * mass"},
        }
    },
}


def test_the_pendulum_obeys_its_equation(tmp_path):
    family = load_family(tmp_path, PENDULUM).domain.make()
    assert (family.name, family.dt, family.control_limit) == ("pendulum", 0.05, 2.0)
    tasks, starts = np.array([[0.7, 1.3], [2.0, 0.5]]), np.array([[3.0, 0.1], [3.2, 0.0]])
    controls = np.random.default_rng(0).uniform(-2, 2, (2, 30, 1))
    states = family.simulate(tasks, starts, controls)
    for (mass, length), (theta, speed), signal, trajectory in zip(tasks, starts, controls, states, strict=True):
        for (u,), state in zip(signal, trajectory[1:], strict=True):
            speed = speed + (15.0 / length * np.sin(theta) + 3.0 / (mass * length**2) * u) * 0.05
            theta = theta + speed * 0.05
            np.testing.assert_allclose(state, [theta, speed], rtol=1e-12)


@pytest.mark.parametrize(
    "domain",
    [PENDULUM, CART, PENDULUM | {"gymnasium": {"make": "Pendulum-v1", "observe": "observation"}, "states": None}],
    ids=["pendulum", "cart-pole", "observed"],
)
def test_the_contract_is_kept(tmp_path, domain):
    domain = dict(domain)
    if domain.get("states", ()) is None:
        for key in ("states", "start", "angles", "links"):
            del domain[key]
    family = load_family(tmp_path, domain).domain.make()
    assert check_domain(family) == []
    assert len(family.states) == {"CartPole-v1": 4}.get(family.make, 2 if family.access == "state" else 3)


def test_links_are_drawn_from_the_states(tmp_path):
    family = load_family(tmp_path, PENDULUM).domain.make()
    points = family.look(np.array([[0.0, 1.0], [np.pi / 2, 0.0]]), np.array([1.0, 1.2]))
    np.testing.assert_allclose(points, [[[0, 0], [0, 1.2]], [[0, 0], [1.2, 0]]], atol=1e-12)


def test_a_vectorised_environment_gives_the_same_bits_as_single_ones(tmp_path):
    family = load_family(tmp_path, CART).domain.make()
    assert has_vector_version("CartPole-v1") and not has_vector_version("Pendulum-v1")
    assert family.discrete_controls
    rng = np.random.default_rng(0)
    tasks, starts = rng.uniform(0.1, 1.0, (7, 1)), np.stack([family.start(rng) for _ in range(7)])
    controls = rng.integers(0, 2, (7, 60, 1)).astype(float)
    together, singly = family._together(tasks, starts, controls), family._singly(tasks, starts, controls)
    np.testing.assert_array_equal(together, singly)
    assert np.abs(together[:, :, 2]).max() > 0.3  # long after an episode would have ended


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gymnasium": "Pendulm-v1"}, "no environment 'Pendulm-v1'; the nearest is Pendulum-v1"),
        ({"gymnasium": {"make": "Pendulum-v1", "options": {"mass": 1}}}, "cannot be made"),
        ({"parameters": {"mass": {"range": [1, 2]}}}, "no number 'mass'"),
        ({"parameters": {"gravity": {"range": [1, 2], "sets": {"g": "gravty"}}}}, "no parameter 'gravty'"),
        ({"links": [], "parameters": {"screen_dim": {"range": [1, 2]}}}, "makes no difference to Pendulum-v1"),
        ({"parameters": {"m": {"range": [1, 2], "scales": ["m"]}}}, "has attribute and sets"),
        ({"states": ["theta"]}, "2 different names"),
        ({"angles": ["thta"]}, "no state 'thta'; the nearest is theta"),
        ({"start": {"thta": 1}}, "no state 'thta'; the nearest is theta"),
        ({"start": "home"}, "no keyframes"),
        ({"controls": ["a", "b"]}, "1 different names"),
        ({"substeps": 2}, "it is for domain.mjcf"),
        ({"links": [["thta", 1]]}, "no state 'thta'; the nearest is theta"),
        ({"links": [["theta", "m +"]]}, "not arithmetic"),
        ({"gymnasium": "FrozenLake-v1"}, "no number"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, change, said):
    with pytest.raises(UserError) as caught:
        load_family(tmp_path, PENDULUM | change)
    assert said in str(caught.value)
    assert "line" in str(caught.value) and "\n" not in str(caught.value)
