"""A run that is loaded again predicts in raw units, by name, and is an environment."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny

import distpaml
from distpaml.errors import UserError
from distpaml.runtime.local import LocalSimulator
from distpaml.runtime.run_experiment import run_to_end

SIZE = ("rounds=1", "model.inducing=100", "fit.evaluations=40")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(tiny("method=paml-pool", *SIZE), path)
    return path


@pytest.fixture(scope="module")
def run(folder):
    return distpaml.load_run(folder)


def truth(run, task):
    """The simulated trajectory of a known task as columns by name, and its states [T + 1, D]."""
    simulator = LocalSimulator(run.config)
    start = run.model.domain.start(np.random.default_rng(0))
    states = simulator.domain.simulate(np.array([task]), start[None], simulator.signal[None])[0]
    held = np.append(simulator.signal[:, 0], np.nan)
    return dict(zip(run.model.states, states.T, strict=True)) | {"control": held}, states


def test_a_forecast_follows_the_simulation_step_by_step(run):
    task = run.model.tasks[1]
    columns, states = truth(run, task)
    descriptor = dict(zip(run.config.domain.box, task, strict=True))
    errors, spreads = [], []
    for t in range(0, 15, 2):
        step = run.model.predict(descriptor, {"control": [columns["control"][t]]}, states[t])
        errors.append(step.mean[1] - states[t + 1])
        spreads.append(np.diff(states, axis=0).std(axis=0))
        assert np.allclose(step.mean[0], states[t])
    assert np.sqrt(np.mean((np.array(errors) / np.array(spreads)) ** 2)) < 0.3


def test_a_trajectory_finds_its_own_task(run):
    columns, _ = truth(run, run.model.tasks[1])
    found = run.model.infer(columns)
    means = run.model.embeddings[["h1", "h2"]].to_numpy()
    assert np.argmin(np.linalg.norm(means - found.mean, axis=1)) == 1
    assert "±" in repr(found)


def test_names_and_places_are_the_same_question(run):
    descriptor = {"pole_length": 1.0, "pole_mass": 2.0}
    start = {"theta": 3.0, "x": 0.1, "theta_dot": 0.0, "x_dot": 0.2}
    by_name = run.model.predict(descriptor, {"control": [1.0, -1.0]}, start)
    by_place = run.model.predict(descriptor, [[1.0], [-1.0]], [0.1, 3.0, 0.2, 0.0])
    assert np.array_equal(by_name.mean, by_place.mean)
    assert list(by_name.to_frame().columns[:4]) == list(run.model.states)
    assert np.array_equal(run.model.rollout(descriptor, [1.0, -1.0], start).mean(axis=0), by_name.mean)


def test_a_task_is_a_number_a_latent_a_descriptor_or_a_trajectory(run):
    h = run.model.embeddings.loc[0, ["h1", "h2"]].to_numpy(float)
    columns, states = truth(run, run.model.tasks[0])
    ends = [run.model.predict(task, [1.0], states[-1]).mean[1] for task in (0, h, run.model.infer(columns), columns)]
    assert np.ptp(ends, axis=0).max() < 0.5 * np.diff(states, axis=0).std(axis=0).max()
    assert np.array_equal(run.model.start(columns), states[-1])


@pytest.mark.parametrize(
    "ask, sentence",
    [
        (lambda m: m.predict({"pole_mas": 1.0}), "no descriptor pole_mas; the nearest is pole_mass"),
        (lambda m: m.predict({"pole_mass": 1.0}), "should have pole_length"),
        (lambda m: m.predict(99), "There is no task 99"),
        (lambda m: m.predict([1.0, 2.0, 3.0]), "A latent has 2 dimensions here, not 3"),
        (lambda m: m.predict([10**400, 1.0]), "A task is a descriptor, a number, a latent or a trajectory"),
        (lambda m: m.predict(0, [[1.0, 2.0]]), "controls should be rows of 1 finite number: control"),
        (lambda m: m.predict(0, [1.0], {"x": 0.0}), "start should have theta"),
        (lambda m: m.infer({"x": [0.0, 1.0]}), "has no column theta"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(run, ask, sentence):
    with pytest.raises(UserError, match=sentence):
        ask(run.model)


def test_the_environment_is_one_that_gymnasium_accepts(run):
    from gymnasium.utils.env_checker import check_env

    env = run.as_env({"pole_mass": 1.0, "pole_length": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # recommendations about ranges
        check_env(env, skip_render_check=True)
    assert env.action_space.low.tolist() == [-25.0] and "cartpole" in repr(env)


def test_the_environment_steps_as_a_rollout_does(run):
    start, h = [0.0, 3.0, 0.0, 0.0], run.model.embeddings.loc[0, ["h1", "h2"]].to_numpy(float)
    mean = run.as_env(h, sampled=False)
    mean.reset(options={"start": start})
    expected, *_ = mean.step([4.0])
    rolled = run.model.rollout(h, [4.0], start, samples=2000)[:, 1]
    sampled = run.as_env(h)
    drawn = []
    for seed in range(300):
        sampled.reset(seed=seed, options={"start": start})
        drawn.append(sampled.step([4.0])[0])
    for draws in (rolled, np.array(drawn)):
        assert (np.abs(draws.mean(axis=0) - expected) < 5 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-9).all()
    assert np.allclose(np.std(drawn, axis=0), rolled.std(axis=0), rtol=0.25)


@pytest.mark.parametrize("action", [[1.0, 2.0], [], [np.nan], "x", None])
def test_an_action_is_a_number_for_every_control(run, action):
    env = run.as_env(0)
    env.reset(seed=0)
    with pytest.raises(UserError, match="action should be 1 finite number: control"):
        env.step(action)


def test_an_episode_ends_after_a_trajectory_and_pays_the_given_reward(run):
    env = run.as_env(0, reward=lambda x, u, after: float(u[0]), terminated=lambda after: False)
    env.reset(seed=0)
    steps = [env.step([2.0]) for _ in range(19)]
    assert [truncated for *_, truncated, _ in steps] == [False] * 18 + [True]
    assert {reward for _, reward, *_ in steps} == {2.0}


def test_loading_says_what_it_found(run, folder, tmp_path):
    assert f"cartpole paml-pool seed 0 in {folder}: round 1 of 1, 4 tasks, rmse" in repr(run)
    assert "states x, theta, x_dot, theta_dot; controls control" in repr(run.model)
    assert run.arrays()["embedding_mean"].shape == (4, 2) and len(run.results()) == 2
    for round in (2, -3, "x"):
        with pytest.raises(UserError, match=f"There is no round {round!r}; they are numbered from 0 to 1"):
            run.arrays(round)
    with pytest.raises(UserError, match=r"no run with a finished round: it has no config.yaml and no records.jsonl"):
        distpaml.load_run(tmp_path)
    with pytest.raises(UserError, match="xxx cannot be read: File name too long"):
        distpaml.load_run(tmp_path / ("x" * 300))
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "one").symlink_to(folder)
    with pytest.raises(UserError, match=r"is a sweep of 1 run; load one of them, such as .*/trials/one"):
        distpaml.load_run(tmp_path)


def test_a_damaged_config_is_no_misspelt_one(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("network", "oetwork"))
    with pytest.raises(UserError, match=r"config.yaml is damaged: .* restore it from a copy"):
        distpaml.load_run(copy)
    config.unlink()
    with pytest.raises(UserError, match=r"it has no config.yaml\.$"):
        distpaml.load_run(copy)


def test_hidden_and_superfluous_descriptors(tmp_path):
    run_to_end(tiny("method=uni", "rounds=0", experiment="cartpole_noisy"), tmp_path / "noisy")
    model = distpaml.load_run(tmp_path / "noisy").model
    plain, neutral = ({"pole_mass": 1.0, "pole_length": 1.0} | extra for extra in ({}, {"epsilon": 1.0}))
    assert np.array_equal(model.predict(plain, [1.0]).mean, model.predict(neutral, [1.0]).mean)
    run_to_end(tiny("method=uni", "rounds=0", experiment="cartpole_partial"), tmp_path / "partial")
    with pytest.raises(UserError, match=r"no descriptor pole_mass; there is pole_length|the nearest is pole_length"):
        distpaml.load_run(tmp_path / "partial").model.predict(plain)
