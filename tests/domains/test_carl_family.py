"""Families from CARL contexts, with a stand-in that has CARL's interface.

carl-bench asks for gymnasium below 1.0 and cannot be installed beside the versions that are tested here; the README of
the folder says how it runs beside them all the same.
"""

import os
import sys
from types import ModuleType, SimpleNamespace

import gymnasium
import numpy as np
import pytest
from families import load_family

from distpaml.domains import check_domain
from distpaml.domains.carl import environment_class
from distpaml.errors import UserError


class CARLPendulum(gymnasium.Wrapper):
    """As CARL's: features with bounds, a context that `reset` applies, and observations in a mapping."""

    def __init__(self, contexts):
        super().__init__(gymnasium.make("Pendulum-v1"))
        self.base_observation_space = self.env.observation_space
        self.context = {name: feature.default_value for name, feature in self.get_context_features().items()}
        self.context |= contexts[0]

    @staticmethod
    def get_context_features():
        bounds = {
            "g": (0.0, np.inf, 10.0),
            "m": (1e-6, np.inf, 1.0),
            "l": (0.5, 1.5, 1.0),
            "wind": (-np.inf, np.inf, 0.0),
        }
        return {
            name: SimpleNamespace(lower=low, upper=high, default_value=value)
            for name, (low, high, value) in bounds.items()
        }

    def reset(self, *, seed=None, options=None):
        for name, value in self.context.items():
            setattr(self.env.unwrapped, name, value)
        observation, info = super().reset(seed=seed, options=options)
        return {"obs": observation, "context": self.context}, info

    def step(self, action):
        observation, *rest = super().step(action)
        return {"obs": observation, "context": self.context}, *rest


@pytest.fixture(autouse=True)
def carl(monkeypatch):
    package, envs = ModuleType("carl"), ModuleType("carl.envs")
    package.envs, envs.CARLPendulum = envs, CARLPendulum
    monkeypatch.setitem(sys.modules, "carl", package)
    monkeypatch.setitem(sys.modules, "carl.envs", envs)


PENDULUM = {
    "carl": "CARLPendulum",
    "parameters": {"m": {}, "l": {}, "g": {"range": [5, 15]}},
    "start": {"state_0": "pi"},
}


def test_unbounded_features_get_a_box_and_the_contract_is_kept(tmp_path):
    config = load_family(tmp_path, PENDULUM)
    assert config.domain.box == {"m": (0.5, 2.0), "l": (0.5, 1.5), "g": (5.0, 15.0)}
    assert config.name == "pendulum"
    assert check_domain(config.domain.make()) == []


def test_the_same_as_the_environment_itself(tmp_path):
    gym = {
        "gymnasium": "Pendulum-v1",
        "parameters": {n: {"range": [0.5, 15]} for n in "mlg"},
        "start": PENDULUM["start"],
    }
    tasks, starts = np.array([[0.7, 1.2, 9.0]]), np.array([[3.0, 0.5]])
    controls = np.random.default_rng(0).uniform(-2, 2, (1, 20, 1))
    mine, theirs = (
        load_family(tmp_path, domain).domain.make().simulate(tasks, starts, controls) for domain in (PENDULUM, gym)
    )
    np.testing.assert_array_equal(mine, theirs)


def test_features_that_are_no_parameters_keep_what_the_context_says(tmp_path):
    few = {"parameters": {"m": {}}, "carl": {"make": "CARLPendulum", "context": {"l": 1.2, "g": 9.0}}}
    tasks, starts, controls = np.array([[0.7, 1.2, 9.0]]), np.array([[3.0, 0.5]]), np.ones((1, 20, 1))
    whole = load_family(tmp_path, PENDULUM).domain.make().simulate(tasks, starts, controls)
    part = load_family(tmp_path, PENDULUM | few).domain.make().simulate(tasks[:, :1], starts, controls)
    np.testing.assert_array_equal(whole, part)


def test_observations_serve_where_the_state_is_not_wanted(tmp_path):
    domain = {"carl": {"make": "CARLPendulum", "observe": "observation"}, "parameters": {"m": {}}}
    family = load_family(tmp_path, domain).domain.make()
    assert family.states == ("observation_0", "observation_1", "observation_2")
    assert check_domain(family) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"carl": "CARLPendulm"}, "no environment 'CARLPendulm'; the nearest is CARLPendulum"),
        ({"parameters": {"gg": {}}}, "no context feature 'gg'; the nearest is g"),
        ({"parameters": {"wind": {}}}, "domain.parameters.wind is {} but makes no difference"),
        ({"parameters": {"m": {"sets": {"m": "m"}}}}, "a parameter of CARL is a context feature"),
        ({"carl": {"make": "CARLPendulum", "context": {"mm": 1}}}, "domain.carl.context.mm is 1 but"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, change, said):
    with pytest.raises(UserError) as caught:
        load_family(tmp_path, PENDULUM | change)
    assert said in str(caught.value)


def test_carl_that_is_not_installed_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "carl.envs", None)
    with pytest.raises(UserError, match="CARL cannot be imported"):
        load_family(tmp_path, PENDULUM | {"dt": 0.07})


def test_carl_is_imported_without_a_display_and_the_environment_stays_as_it_was(monkeypatch, tmp_path):
    """A package that looks, while it is imported, as pygame does."""
    for module in ("carl", "carl.envs"):
        monkeypatch.delitem(sys.modules, module)
    (tmp_path / "carl").mkdir()
    (tmp_path / "carl" / "__init__.py").touch()
    (tmp_path / "carl" / "envs.py").write_text(
        'import os\nSEEN = os.environ["SDL_VIDEODRIVER"], os.environ["PYGAME_HIDE_SUPPORT_PROMPT"]\n'
        "class CARLSeen: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "mine")
    environment_class("CARLSeen")
    assert sys.modules["carl.envs"].SEEN == ("dummy", "mine")
    assert "SDL_VIDEODRIVER" not in os.environ and os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] == "mine"
