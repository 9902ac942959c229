from argparse import Namespace

import pytest
from tiny import SIZE

from distpaml.bench import images, trial
from distpaml.config import load


def test_a_trial_is_compared_stage_by_stage(capsys):
    results = {result.name: result for result in trial.run(Namespace(experiment="cartpole"), SIZE)}
    assert results.keys() == {"trial", "trial-fit", "trial-evaluate"}
    for result in results.values():
        assert "extrapolated" in result.against and result.unit == "s" and result.ours < result.other
    assert results["trial"].ours >= results["trial-fit"].ours + results["trial-evaluate"].ours
    out = capsys.readouterr().out
    assert out.count("round ") == 3 and "seconds by stage: choose " in out


def test_a_trial_with_images_races_the_papers_schedule(capsys, monkeypatch):
    monkeypatch.setattr(images, "TIMED_TASKS", (1, 2))
    size = [*SIZE, "rounds=1", "descriptor.images=12", "descriptor.height=16", "descriptor.width=8"]
    (result,) = trial.run(Namespace(experiment="images", steps=3), size)
    assert result.name == "trial-fit" and result.ours < result.other
    assert "10000 steps a round" in result.against
    out = capsys.readouterr().out
    assert "bound on a round of 2 tasks, ours: " in out and "the paper's, 3 steps: " in out
    assert "a step of the paper's schedule: " in out


def test_the_authors_trial_takes_hours():
    """5000 steps a round at 57 … 219 ms and 16 evaluations of 290 s: about 4.4 hours."""
    seconds = trial.authors_seconds(load("cartpole"), range(3, 19))
    assert seconds["evaluate"] == pytest.approx(16 * 290)
    assert seconds["fit"] == pytest.approx(5000 * 16 * 0.138, rel=0.02)
    assert sum(seconds.values()) / 3600 == pytest.approx(4.4, abs=0.1)


def test_a_smaller_test_grid_costs_less():
    seconds = trial.authors_seconds(load("cartpole", ["evaluation.grid=5"]), [3])
    assert seconds == {"fit": pytest.approx(5000 * 0.057), "evaluate": pytest.approx(290 / 4)}
