"""Errors of left-out tasks: what is left out is left out, and what more tasks brought is told."""

import json
import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from spring import declared, run

from distpaml import Experiment
from distpaml.ask_tell.learning import LearningCurve, LearningFile, LearningPoint
from distpaml.ask_tell.leave_one_out import learning_point, without
from distpaml.checksums import sealed
from distpaml.data import Dataset
from distpaml.model.expectations import rbf


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An experiment with five observed tasks, its model and its data; tests must not change it."""
    experiment = Experiment(declared(), tmp_path_factory.mktemp("made") / "experiment")
    for _ in range(5):
        (task,) = experiment.ask()
        experiment.tell(task.id, run(task.descriptor))
    with experiment._writing() as state:
        return experiment, experiment._model(state), experiment._models.dataset(state.data, state)


@pytest.mark.parametrize("task", [0, 2, 4])
def test_nothing_of_a_task_is_left_but_the_kernel(made, task):
    """Other data in its place give the same model, bit for bit."""
    _, model, data = made
    garbled = Dataset(data.inputs.copy(), data.targets.copy(), data.counts, data.descriptors)
    garbled.inputs[task] = garbled.inputs[task][::-1]
    garbled.targets[task] = 7.0
    one, other = without(model, data, task), without(model, garbled, task)
    assert torch.equal(one.posterior.w, other.posterior.w) and torch.equal(one.posterior.root, other.posterior.root)
    assert len(one.embeddings) == len(data) - 1
    others = [row for row in range(len(data)) if row != task]
    assert torch.equal(one.embeddings.mean, model.embeddings.mean[others])
    kept = model.gp.owner != task
    assert torch.allclose(one.gp.zh, model.gp.zh[kept], atol=1e-12) and torch.equal(one.gp.zx, model.gp.zx[kept])
    assert set(one.gp.owner.tolist()) <= set(range(len(data) - 1))


def test_with_an_inducing_point_on_every_sample_it_is_the_exact_process(made):
    """mean = k' (K + noise)^-1 y over the samples of the other tasks, with their latents known."""
    _, model, data = made
    gp = deepcopy(model.gp)
    scaled = data.standardised(model.inputs, model.targets)
    owner = torch.arange(len(data)).repeat_interleave(data.inputs.shape[1])
    with torch.no_grad():
        gp.place_inducing(torch.as_tensor(scaled.inputs).flatten(0, 1), owner)
        gp.log_variance.fill_(-40.0)
        gp.log_ratio.zero_()
        gp.likelihood.initialize(noise=1e-3)
    full, task = replace(model, gp=gp), 1
    rest = without(full, data, task)
    own = data.tasks(slice(task, task + 1))
    latents = full.embeddings.take(slice(task, task + 1))
    mean, _ = rest.predict(own.inputs, latents)

    rate_x, rate_h, amplitude = gp.values
    others = [row for row in range(len(data)) if row != task]

    def points(rows):
        x = torch.as_tensor(scaled.inputs[rows]).flatten(0, 1) * rate_x
        return torch.cat([x, (gp.mean[rows] * rate_h).repeat_interleave(data.inputs.shape[1], 0)], -1).detach()

    known, new = points(others), points([task])
    noise = gp.noise[0] * gp.log_ratio.detach().exp()[others].repeat_interleave(data.inputs.shape[1])
    covariance = amplitude * rbf(known, known) + torch.diag(noise)
    y = torch.as_tensor(scaled.targets[others]).flatten(0, 1)
    exact = amplitude * rbf(new, known) @ torch.linalg.solve(covariance, y)
    assert np.allclose(mean[0], model.targets.undo(exact.detach().numpy()), atol=1e-3 * np.abs(own.targets).max())


def test_errors_are_those_of_a_model_that_infers_the_task(made):
    _, model, data = made
    observed = tuple((k + 1, (k,)) for k in range(len(data)))
    point = learning_point(model, data, observed)
    rest, own = without(model, data, 3), data.tasks(slice(3, 4))
    mean, variance = rest.predict(own.inputs, rest.infer(own))
    errors = (own.targets - mean)[0]
    assert np.allclose(point.squares[3], (errors**2).mean(0))
    assert point.coverage[3] == pytest.approx((np.abs(errors) < 1.96 * np.sqrt(variance[0])).mean())
    fitted, _ = model.predict(data.inputs, model.embeddings)
    assert point.rmse(point.scale).mean() > np.sqrt(((data.targets - fitted) ** 2 / np.square(point.scale)).mean())


def point(errors, scale=(1.0,), coverage=0.9):
    data = tuple((k + 1, (k + 1,)) for k in range(len(errors)))
    return LearningPoint(
        data=data, squares=tuple((e**2,) for e in errors), coverage=(coverage,) * len(errors), scale=scale
    )


def test_the_change_is_of_the_tasks_that_both_models_know():
    """The newest three are hard: their errors are in the mean, and not in the change."""
    curve = LearningCurve((point([2.0, 2.0, 2.0, 2.0]), point([1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0])))
    assert curve.errors[-1].mean() > curve.errors[0].mean()
    assert curve.change.tasks == 3 and curve.change.share == pytest.approx(-0.5) and curve.change.pays
    assert "more tasks still pay: the last 3 changed the error of the others by −50" in curve.worded()


def test_the_interval_is_student_s_of_the_log_ratios():
    ratios = np.array([0.9, 1.0, 1.05, 0.95])
    curve = LearningCurve((point([1.0] * 4), point([*ratios, *[1.0] * 3])))
    logs = np.log(ratios)
    half = 3.182446 * logs.std(ddof=1) / 2  # the 97.5 % quantile with three degrees of freedom
    change = curve.change
    assert (change.low, change.high) == pytest.approx((math.expm1(logs.mean() - half), math.expm1(logs.mean() + half)))
    assert change.pays is False and "more tasks have stopped paying" in curve.worded()


@pytest.mark.parametrize(
    "ratios, more, pays",
    [
        ([0.89, 0.89, 0.89], 3, True),
        ([0.91, 0.91, 0.91], 3, False),
        ([0.91, 0.91, 0.91], 2, None),  # too few that followed
        ([0.7, 1.0, 1.2], 3, None),  # too wide an interval
        ([0.5, 0.5, 0.5], 1, True),
        ([1.1, 1.1, 1.1], 3, False),
    ],
)
def test_when_more_tasks_pay(ratios, more, pays):
    curve = LearningCurve((point([1.0] * 3), point([*ratios, *[1.0] * more])))
    assert curve.change.tasks == more and curve.change.pays is pays
    assert ("it is open whether more tasks pay" in curve.worded()) == (pays is None)


def test_errors_of_all_points_have_the_units_of_the_last():
    first, last = point([2.0] * 3, scale=(1.0,)), point([2.0] * 4, scale=(4.0,))
    curve = LearningCurve((first, last))
    assert curve.errors[0].tolist() == [0.5] * 3 and curve.errors[1].tolist() == [0.5] * 4
    assert curve.change.tasks == 1 and curve.change.share == 0.0


def test_one_point_says_nothing_about_more_tasks():
    assert LearningCurve((point([1.0] * 3),)).change is None
    assert "too few tasks to tell" in LearningCurve((point([1.0] * 3),)).worded()


def test_a_curve_is_a_data_frame_and_a_sentence():
    curve = LearningCurve((point([2.0, 4.0, 6.0]), point([1.0, 1.0, 1.0, 5.0], coverage=0.5)))
    frame = curve.to_frame()
    assert frame.index.tolist() == [3, 4] and frame["rmse"].tolist() == [4.0, 2.0]
    assert frame["rmse_worst"].tolist() == [6.0, 5.0] and frame["coverage"].tolist() == [0.9, 0.5]
    assert repr(curve).startswith("<LearningCurve at 3, 4 tasks. Each of 4 tasks left out: error 2 std. dev., 50 %")


def test_a_curve_has_the_points_of_the_data_that_are_still_there(tmp_path):
    file = LearningFile(tmp_path)
    data = tuple((k + 1, (k + 1,)) for k in range(7))
    assert file.curve(data) is None and file.missing(data) == [3, 4, 5, 6, 7]
    for size in (7, 3):
        file.add(point([1.0] * size), data)
    assert [p.tasks for p in file.curve(data).points] == [3, 7] and file.missing(data) == [4, 5, 6]
    withdrawn = data[:4] + data[5:]
    assert [p.tasks for p in file.curve(withdrawn).points] == [3]
    told_again = ((1, (1, 9)), *data[1:])
    assert file.curve(told_again) is None
    whole = file.file.read_bytes()
    odd = json.loads(whole)
    odd["points"][0]["scale"] *= 2
    for damaged in (
        b"[{",
        b"",
        b"[]\n",
        whole[:-1],
        whole.replace(b"1.0", b"9.0", 1),
        sealed(json.dumps(odd), {}, "")[0],
    ):
        file.file.write_bytes(damaged)
        assert file.curve(data) is None and file.missing(data) == [3, 4, 5, 6, 7]


def test_asking_keeps_a_point_and_learning_computes_the_others(tmp_path):
    experiment = Experiment(declared(), tmp_path / "experiment")
    for _ in range(5):
        (task,) = experiment.ask()
        experiment.tell(task.id, run(task.descriptor))
    assert [p.tasks for p in experiment.status().learning.points] == [3, 4]  # what the last two asks knew
    seen = []
    curve = experiment.learning(lambda tasks, of: seen.append((tasks, of)))
    assert seen == [(5, 5)] and [p.tasks for p in curve.points] == [3, 4, 5]
    journal = (tmp_path / "experiment" / "journal.jsonl").read_bytes()
    (tmp_path / "experiment" / "learning.json").unlink()
    again = Experiment.load(tmp_path / "experiment").learning()
    assert [p.tasks for p in again.points] == [3, 4, 5] and again.last == curve.last
    assert (tmp_path / "experiment" / "journal.jsonl").read_bytes() == journal


def test_a_preview_is_what_ask_answers_and_changes_nothing(tmp_path):
    experiment = Experiment(declared(), tmp_path / "experiment")
    first = experiment.preview(2)
    assert first.utilities is None and not experiment.history()
    assert repr(first).startswith("<Preview: mass = ") and "no model chooses yet" in repr(first)
    assert list(first.tasks) == experiment.ask(2)
    for task in (1, 2):
        experiment.tell(task, run(experiment.status().tasks[task - 1].descriptor))
    lines = len(experiment.history())
    preview = experiment.preview(3)
    assert len(experiment.history()) == lines
    assert preview.tasks[0].utility == preview.utilities.max() and len(preview.utilities) == 62
    assert preview.nearest in (1, 2)
    assert list(preview.tasks) == experiment.ask(3)
