"""Reloading changes nothing: every answer is a function of what is on disk."""

import itertools
import shutil

import pytest
from spring import declared, run

from distpaml import Experiment
from distpaml.errors import UserError

COST = "spring_plugins:cost"


@pytest.fixture(autouse=True)
def plugins(tmp_path, monkeypatch):
    (tmp_path / "spring_plugins.py").write_text("def cost(mass, stiffness):\n    return mass + stiffness\n")
    monkeypatch.syspath_prepend(tmp_path)


def script(between, experiment):
    """Every kind of call, with `between` in between; what each of them answered."""
    answers = []

    def call(name, *arguments):
        nonlocal experiment
        answers.append(getattr(experiment, name)(*arguments))
        experiment = between(experiment)
        return answers[-1]

    def told(tasks):
        for task in tasks:
            call("tell", task.id, run(task.descriptor))

    told(call("ask", 2))
    first = call("ask", 3)
    call("fail", first[0].id, "the spring broke")
    told(first[1:])
    attached = call("attach", {"mass": 1.5, "stiffness": 2.0}, run({"mass": 1.5, "stiffness": 2.0}))
    out = call("ask")
    call("tell", attached.id, run({"mass": 1.5, "stiffness": 2.0}, start=0.5))
    forecast = call("predict", {"mass": 1.2, "stiffness": 1.0}, [[1.0]] * 5, [0.0, 0.0])
    inferred = call("infer", run({"mass": 1.2, "stiffness": 1.0}))
    told(out)
    call("ask", 2)
    call("fail", attached.id, "it was the wrong file")  # withdrawn: the next fit starts afresh
    call("ask")
    numbers = [forecast.mean.tobytes(), forecast.deviation.tobytes(), inferred.mean.tobytes()]
    return [task for answer in answers if isinstance(answer, list) for task in answer], numbers


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return script(lambda experiment: experiment, Experiment(declared(), folder / "experiment"))


def test_loaded_again_between_every_two_calls(tmp_path, undisturbed):
    experiment = Experiment(declared(), tmp_path / "experiment")
    assert script(lambda old: Experiment.load(old.directory), experiment) == undisturbed


def test_saved_elsewhere_dropped_and_loaded_between_every_two_calls(tmp_path, undisturbed):
    numbers = itertools.count()

    def moved(old):
        target = tmp_path / f"copy-{next(numbers)}"
        old.save(target)
        shutil.rmtree(old.directory)
        return Experiment.load(target)

    assert script(moved, Experiment(declared(), tmp_path / "experiment")) == undisturbed


def test_declared_again_with_all_models_lost_between_every_two_calls(tmp_path, undisturbed):
    def robbed(old):
        for model in old.directory.glob("model-*"):
            model.unlink()
        return Experiment(declared(), old.directory)

    assert script(robbed, Experiment(declared(), tmp_path / "experiment")) == undisturbed


def test_predictions_leave_no_trace_in_what_is_chosen(tmp_path, undisturbed):
    def asked(experiment):
        if experiment.status().count("observed"):
            experiment.predict({"mass": 1.8, "stiffness": 0.6}, [[0.5]], [0.0, 0.0])
        return experiment

    assert script(asked, Experiment(declared(), tmp_path / "experiment")) == undisturbed


def test_several_at_once_are_those_that_come_one_after_the_other(tmp_path):
    for cost in (None, COST):
        together, single = (Experiment(declared(cost=cost), tmp_path / f"{kind}-{cost}") for kind in ("all", "one"))
        for experiment in (together, single):
            for task in experiment.ask(2):
                experiment.tell(task.id, run(task.descriptor))
        assert together.ask(4) == [single.ask()[0] for _ in range(4)]


def test_another_declaration_is_refused(tmp_path):
    Experiment(declared(), tmp_path / "experiment")
    with pytest.raises(UserError, match="holds another experiment: seed is different"):
        Experiment(declared(seed=1), tmp_path / "experiment")
    with pytest.raises(UserError, match=r"is not empty: it has experiment;"):
        Experiment(declared(), tmp_path)
    with pytest.raises(UserError, match="is not the directory of an experiment"):
        Experiment.load(tmp_path)
