"""The examples run, go on after a crash, and learn something."""

import signal
import subprocess
import sys
import time
from importlib import import_module

import pytest

from distpaml import Experiment


@pytest.mark.parametrize("tasks", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_the_robot_in_another_process_even_if_the_workshop_is_killed(tmp_path, tasks):
    command = [sys.executable, "-m", "distpaml.examples.workshop", str(tmp_path), str(tasks)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    journal = tmp_path / "experiment" / "journal.jsonl"
    while not journal.exists() or len(journal.read_bytes().splitlines()) < tasks:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = Experiment.load(tmp_path / "experiment").history()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    experiment = Experiment.load(tmp_path / "experiment")
    assert experiment.history()[: len(before)] == before
    status = experiment.status()
    assert status.count("observed") >= tasks and status.choosing == (tasks > 2)
    if tasks > 4:
        assert status.tasks[3].reason == "the gripper lost its payload"
    notes = next(event.notes for event in experiment.history() if event.event == "tell")
    assert "row 41 had missing values" in notes[0] and "resampled" in notes[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "acrobot"])
def test_forecasts_of_untried_tasks_are_of_use(tmp_path, name):
    module = import_module(f"distpaml.examples.{name}")
    error, still = module.main(str(tmp_path / "experiment"), 8)
    assert error < 0.4 * still


@pytest.mark.parametrize("name", ["pendulum", "acrobot"])
def test_an_attempt_can_be_told(tmp_path, name):
    module = import_module(f"distpaml.examples.{name}")
    experiment = Experiment(module.DECLARATION, tmp_path / "experiment")
    for task in experiment.ask(2):
        assert experiment.tell(task.id, module.attempt(task.descriptor)).transitions == 79
    first, second = (module.attempt(task.descriptor) for task in experiment.status().tasks)
    state = module.DECLARATION["states"][0]
    assert abs(first[state] - second[state]).max() > 0.1  # the descriptor makes a difference
