"""The roads of three users, each as one script: a student, an engineer with a robot, someone with a cluster."""

import json
import os
import subprocess
import sys

import pytest
from sweeps import SweepProcess, small

pytestmark = pytest.mark.slow
STUDENT = """
import distpaml
from distpaml.report.collect import collect
from distpaml.report.figures import curves
from distpaml.report.payload import payload

table = distpaml.results("out")
last = table.groupby(["method", "seed"]).tail(1).groupby("method")["rmse"].agg(["mean", "sem"])
print(list(last.index), len(table))
(entry,) = payload(collect(["out"]))["experiments"]
curves(entry, ("rmse", "nll")).savefig("figure.png")
"""
ENGINEER = """
import numpy as np

import distpaml

run = distpaml.load_run("robot")
arm = {"upper_length": 0.5, "payload": 1.0, "friction": 1.0}
forecast = run.model.predict(arm, controls={"shoulder_motor": [0.5] * 8, "elbow_motor": [0.0] * 8})
print(list(forecast.to_frame().columns[:2]), len(forecast.mean))
recording = forecast.to_frame().assign(shoulder_motor=0.5, elbow_motor=0.0)
latent = run.model.infer(recording)
env = run.as_env(latent, reward=lambda state, action, after: -float(np.square(after).sum()))
env.reset(seed=0)
print(env.action_space.shape, env.step(env.action_space.sample())[0].shape)
"""


def run(folder, *words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "WANDB_"))}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reproduce_then_a_data_frame_then_a_figure(tmp_path):
    sweep = SweepProcess(*small("methods=[lhs, uni]"), "--out", "out", cwd=tmp_path).wait()
    assert sweep.code == 0, sweep.err
    assert run(tmp_path, "-c", STUDENT) == "['lhs', 'uni'] 12\n"
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "12 rows" in run(tmp_path, "-m", "distpaml.results", "out", "--out", "all.parquet")


def test_a_model_of_one_s_own_then_predictions_then_an_environment(tmp_path):
    words = ["two_link_arm", "rounds=1", "method=uni", "domain.trajectory_length=30", "model.inducing=60"]
    assert "keeps the contract" in run(tmp_path, "-m", "distpaml", "check", "two_link_arm")
    run(tmp_path, "-m", "distpaml", "run", *words, "evaluation.grid=2", "--out", "robot")
    columns, shapes = run(tmp_path, "-c", ENGINEER).splitlines()
    assert columns == "['shoulder', 'elbow'] 9" and shapes == "(2,) (4,)"


def test_a_cluster_then_wandb_then_the_models(tmp_path):
    words = [word for word in small("methods=[uni]") if word != "wandb=off"]
    sweep = SweepProcess(*words, "wandb=offline", "--out", "out", cwd=tmp_path).wait()
    assert sweep.code == 0, sweep.err
    assert len(list(tmp_path.glob("out/wandb/offline-run-*/*.wandb"))) == 2
    assert len(list(tmp_path.glob("out/tensorboard/*/events*"))) == 2
    for file in tmp_path.glob("out/wandb/offline-run-*/*.wandb"):
        lines = map(json.loads, run(tmp_path, "-m", "wandb", "leet", "inspect", "--json", str(file)).splitlines())
        artifacts = [line["artifact"]["type"] for line in lines if line["type"] == "artifact"]
        assert artifacts.count("model") == 1
    script = "import distpaml; print(distpaml.load_run('out/trials/cartpole-uni-seed1').model.embeddings.shape)"
    assert run(tmp_path, "-c", script) == "(5, 6)\n"
    sentence = "2 of 2 trials done; 0 left, with 0 of 6 rounds to go."
    assert sentence in run(tmp_path, "-m", "distpaml.sweep", "--resume", "out", "--dry-run")
