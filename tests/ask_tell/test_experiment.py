import numpy as np
import pytest
from spring import declared, run

from distpaml import Experiment
from distpaml.errors import UserError


@pytest.fixture
def experiment(tmp_path):
    return Experiment(declared(), tmp_path / "experiment")


def observe(experiment, n):
    for task in experiment.ask(n):
        experiment.tell(task.id, run(task.descriptor))


def test_numbers_go_up_and_nothing_is_asked_twice(experiment):
    observe(experiment, 3)
    tasks = [*experiment.ask(4), *experiment.ask(2)]
    assert [task.id for task in tasks] == list(range(4, 10))
    assert len({tuple(task.descriptor.values()) for task in experiment.status().tasks}) == 9


def test_what_is_out_counts_as_observed(experiment):
    observe(experiment, 3)
    (first,), (second,) = experiment.ask(), experiment.ask()
    width = np.array([1.0, 2.5])
    distance = np.abs((np.array([*first.descriptor.values()]) - [*second.descriptor.values()]) / width).max()
    assert distance > 0.2  # without it the second would lie beside the first


def test_a_failed_task_is_not_asked_again_at_once_nor_its_neighbour(experiment):
    observe(experiment, 3)
    (broken,) = experiment.ask()
    experiment.fail(broken.id, "a screw came loose")
    again = experiment.ask(5)
    assert broken.descriptor not in [task.descriptor for task in again]
    difference = np.array([*broken.descriptor.values()]) - [*again[0].descriptor.values()]
    assert np.abs(difference / [1.0, 2.5]).max() > 0.2


def test_a_failed_task_may_come_back_after_some_others(tmp_path):
    rows = [[1.0, 1.0], [1.5, 1.0], [2.0, 1.0], [1.0, 2.0], [1.5, 2.0]]
    experiment = Experiment(declared(choices=rows, selection={"retry_after": 2}), tmp_path / "experiment")
    (broken,) = experiment.ask()
    experiment.fail(broken.id, "no power")
    asked = []
    for _ in range(4):
        (task,) = experiment.ask()
        asked.append(task.descriptor)
        experiment.tell(task.id, run(task.descriptor))
    assert broken.descriptor not in asked[:2]
    experiment.ask()
    with pytest.raises(UserError, match="nothing left to ask for: each of the 5 descriptors"):
        experiment.ask()


def test_a_failed_task_comes_back_at_once_if_nothing_else_is_left(tmp_path):
    experiment = Experiment(declared(choices=[[1.0, 1.0], [2.0, 2.0]]), tmp_path / "experiment")
    first, second = experiment.ask(8)
    experiment.tell(first.id, run(first.descriptor))
    experiment.fail(second.id, "no power")
    (again,) = experiment.ask()
    assert again.descriptor == second.descriptor and again.id == 3


def test_failing_withdraws_what_was_told_and_telling_revives(experiment):
    observe(experiment, 3)
    with_all = experiment.predict({"mass": 1.2, "stiffness": 1.0}, [[1.0]] * 3, [0.0, 0.0]).mean
    experiment.fail(3, "wrong file.")
    assert experiment.status().count("observed") == 2
    assert experiment.status().tasks[2].reason == "wrong file"
    without = experiment.predict({"mass": 1.2, "stiffness": 1.0}, [[1.0]] * 3, [0.0, 0.0]).mean
    assert not np.array_equal(with_all, without)
    with pytest.raises(UserError, match="has failed already: wrong file"):
        experiment.fail(3, "again")
    experiment.tell(3, run(experiment.status().tasks[2].descriptor))
    assert experiment.status().count("observed") == 3


def test_several_trajectories_of_one_task_share_its_latent(experiment):
    (task,) = experiment.ask()
    experiment.tell(task.id, [run(task.descriptor), run(task.descriptor, steps=10, start=1.0)])
    experiment.tell(task.id, run(task.descriptor, steps=5))
    (known,) = experiment.status().tasks
    assert known.transitions == 24 + 9 + 4 and known.lines == (2, 3)
    assert experiment.infer(run(task.descriptor)).mean.shape == (2,)


def test_forecasts_are_right_for_a_well_known_task_whatever_way_it_is_named(tmp_path):
    declaration = declared(model={"inducing": 60}, fit={"evaluations": 60}, initial=4)
    experiment = Experiment(declaration, tmp_path / "experiment")
    observe(experiment, 4)
    truth = run(experiment.status().tasks[0].descriptor, start=0.3)
    controls, states = truth["u"][:-1, None], np.stack([truth["x"], truth["v"]], axis=1)
    for task in (1, np.int64(1), truth, experiment.status().tasks[0].descriptor):
        forecast = experiment.predict(task, controls, [0.3, 0.0])
        assert forecast.mean.shape == forecast.deviation.shape == (25, 2)
        assert np.allclose(forecast.mean[0], [0.3, 0.0]) and forecast.deviation[0].max() < 1e-9
        error = np.sqrt(np.mean((forecast.mean - states) ** 2, axis=0)) / states.std(axis=0)
        assert error.max() < 0.25
        assert np.array_equal(forecast.mean, experiment.predict(task, controls, [0.3, 0.0]).mean)
    onward = experiment.predict(truth, [[0.0]])
    assert np.allclose(onward.mean[0], states[-1])
    again = experiment.predict(truth)
    assert np.array_equal(again.mean, experiment.predict(truth, controls, [0.3, 0.0]).mean)
    known = experiment.predict({"mass": 1.2, "stiffness": 1.0})  # as the newest observation was made
    assert known.mean.shape == (25, 2) and np.allclose(known.mean[0], [0.1, 0.0])


@pytest.mark.parametrize("samples", [0, -1, True, 2.5, "x", 10**12])
def test_a_forecast_takes_a_number_of_samples(experiment, samples):
    observe(experiment, 1)
    with pytest.raises(UserError, match=f"A forecast takes 1 to 100000 samples, not {samples!r}"):
        experiment.predict(1, samples=samples)


def test_forecasts_are_in_declared_units(tmp_path):
    def turned(columns, factor):
        return {**columns, "x": columns["x"] * factor}

    forecasts = []
    for unit, factor in (("rad", 1.0), ("deg", 180 / np.pi), ("turn", 0.5 / np.pi)):
        experiment = Experiment(declared(angles=["x"], units={"x": unit}), tmp_path / unit)
        for task in experiment.ask(2):
            experiment.tell(task.id, turned(run(task.descriptor), factor))
        forecast = experiment.predict(1, [[1.0]] * 4, [0.2 * factor, 0.0])
        forecasts.append((forecast.mean / [factor, 1.0], forecast.deviation / [factor, 1.0]))
    for other in forecasts[1:]:
        assert np.allclose(forecasts[0], other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda e: e.tell(7, run({})), "There is no task 7; none is out; ask first."),
        (lambda e: e.tell("1", run({})), "There is no task '1'"),
        (lambda e: e.ask(0), "One can ask for 1 to 1000 tasks at once, not for 0."),
        (lambda e: e.ask(1.5), "not for 1.5"),
        (lambda e: e.preview(0), "One can ask for 1 to 1000 tasks at once, not for 0."),
        (lambda e: e.fail(1, " "), "Please say why"),
        (lambda e: e.infer(run({})), "Nothing has been observed yet"),
        (lambda e: e.predict({"mass": 1.0, "stiffness": 1.0}, [[1.0]], [0.0]), "start should be 2 finite numbers"),
        (
            lambda e: e.predict({"mass": 1.0, "stiffness": 1.0}, [[1.0, 2.0]]),
            "controls should be rows of 1 finite number",
        ),
        (
            lambda e: e.predict({"mass": 1.0, "stiffness": 1.0}, [[10**400]]),
            "controls should be rows of 1 finite number",
        ),
        (lambda e: e.predict({"mass": 1.0, "stiffness": 1.0}), "Nothing has been observed yet"),
        (lambda e: e.attach({"mass": 1.0}, run({})), "The descriptor has no stiffness"),
        (lambda e: e.infer(run({}), {"mass": 9, "stiffness": 1}), "mass = 9, which should lie in \\[1, 2\\]"),
        (lambda e: e.attach({"mass": "x", "stiffness": 1}, run({})), "mass = 'x', which should be a number"),
        (lambda e: e.attach({"mas": 1, "stiffness": 1}, run({})), "mas is not part of a descriptor"),
        (lambda e: e.attach([1.0, 2.0], run({})), "should be given by name"),
        (lambda e: e.tell(1, 3.0), "should be a file or a mapping of columns, not float"),
        (lambda e: e.tell(1, []), "no trajectory in an empty list"),
    ],
)
def test_mistakes_are_sentences_and_leave_nothing(experiment, call, message):
    with pytest.raises(UserError, match=message):
        call(experiment)
    assert not experiment.history()


def test_two_objects_on_one_directory_see_each_other(experiment):
    other = Experiment.load(experiment.directory)
    (first,), (second,) = experiment.ask(), other.ask()
    assert (first.id, second.id) == (1, 2) and first.descriptor != second.descriptor
    experiment.tell(2, run(second.descriptor))
    assert other.status() == experiment.status() and len(other.history()) == 3


def test_torch_is_not_loaded_before_there_is_a_model():
    import subprocess
    import sys

    code = "import sys, distpaml; print(distpaml.Experiment.__name__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "Experiment False\n"


def test_data_from_outside_the_box_are_taken_with_a_note_and_used(experiment):
    observe(experiment, 3)
    event = experiment.attach({"mass": 2.5, "stiffness": 1.0}, run({"mass": 2.5, "stiffness": 1.0}))
    (note,) = event.notes
    assert note.startswith("mass = 2.5 is outside of what can be asked for (it should lie in [1, 2]); the model learns")
    assert experiment.embeddings.loc[event.id, "mass"] == 2.5
    assert Experiment.load(experiment.directory).status().tasks[-1].descriptor == {"mass": 2.5, "stiffness": 1.0}
    assert all(1.0 <= task.descriptor["mass"] <= 2.0 for task in experiment.ask(5))


@pytest.mark.parametrize("value, note", [(9, "(it should be a whole number from 1 to 8)"), (4, None)])
def test_whole_numbers_may_lie_outside_but_not_in_between(tmp_path, value, note):
    experiment = Experiment(declared(descriptors={"mass": {"integers": [1, 8]}}), tmp_path / "experiment")
    notes = experiment.attach({"mass": value}, run({"mass": value})).notes
    assert (note in notes[0]) if note else not notes
    with pytest.raises(UserError, match=r"mass = 4\.5, which should be a whole number from 1 to 8"):
        experiment.attach({"mass": 4.5}, run({}))


@pytest.mark.parametrize("steps, short", [(2, True), (4, True), (5, False)])
def test_a_recording_too_short_to_teach_anything_says_so(experiment, steps, short):
    """Two states and a control are three inputs: with a constant, a linear model has four unknowns."""
    experiment.ask()
    notes = experiment.tell(1, run({}, steps=steps)).notes
    transitions = f"{steps - 1} transition{'s' * (steps > 2)}"
    expected = f"{transitions} can hardly teach anything: with 3 inputs even a linear model needs 4. Record longer."
    assert notes == ((expected,) if short else ())
    two = experiment.tell(1, [run({}, steps=3), run({}, steps=4)])
    assert two.transitions == 5 and not two.notes
