"""W&B online, rehearsed: what a server gets to see."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from test_tracking import CONFIG, GROUP, KEY, NAME, leaks, nobody, same_rows  # noqa: F401
from wandb_server import ENTITY, Server

from distpaml.records import read_records

pytestmark = pytest.mark.slow
LIFE = """
import sys, time
from pathlib import Path
from test_tracking import *
where, first, last, wait = Path(sys.argv[1]), *map(int, sys.argv[2:])
run, config = where / "runs" / NAME, tiny(*OVERRIDES, f"out={where}")
arguments = config, run, where, NAME, GROUP, "online", print, "quickstart"
with RunDirectory(run, config) as kept, Tracker(*arguments) as tracker:
    for round in rounds_of(*OVERRIDES)[first:last]:
        kept.add(round)
        tracker.add(round.record)
    print("logged", flush=True)
    time.sleep(wait)
"""
UNSENT = {"out": True, "descriptor": {"superfluous"}, "selection": {"target"}}
"""Keys of the config that are not sent: the folder, and what is empty, which W&B drops."""


def life(tmp_path: Path, first: int, last: int, wait: int = 0) -> subprocess.Popen:
    """A process of the trial's life, which finishes some of its rounds, and then waits."""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", LIFE, str(tmp_path), str(first), str(last), str(wait)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths}
    )


@pytest.fixture
def server(monkeypatch):
    with Server() as server:
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        yield server


def test_a_trial_arrives_whole_and_nothing_else_does(tmp_path, server):
    out, err = life(tmp_path, 0, 3).communicate(timeout=400)
    assert out == "logged\n", out + err  # nothing went wrong
    (run,) = server.runs.values()
    about = run.about
    assert (about["project"], about["groupName"], about["displayName"]) == ("distpaml", GROUP, NAME)
    assert about["jobType"] == "paml-pool" and run.ended == 0
    assert set(about["tags"]) == {"cartpole", "paml-pool", "seed-0", "quickstart"}
    config = {name: entry["value"] for name, entry in json.loads(about["config"]).items()}
    sent = CONFIG.model_dump(mode="json", exclude=UNSENT)
    assert {name: config[name] for name in sent} == sent and "out" not in config
    same_rows(run.rows, read_records(tmp_path / "runs" / NAME))

    (model,) = [id for id, artifact in server.artifacts.items() if artifact["artifactTypeName"] == "model"]
    assert server.artifacts[model]["entityName"] == ENTITY
    kept = tmp_path / "runs" / NAME / "round-02" / "model.safetensors"
    assert server.uploads[f"{model}/model.safetensors"] == kept.read_bytes()
    assert sum("media/images/latents_" in name for name in server.uploads) == 3

    assert server.keys == {"Basic " + base64.b64encode(f"api:{KEY}".encode()).decode()}
    private = [KEY, str(tmp_path), str(Path(__file__).parents[2]), sys.prefix, str(Path.home())]
    host = re.compile(rb"(?<![\w-])" + re.escape(os.uname().nodename).encode() + rb"(?![\w-])")
    for path, body in server.bodies:
        assert not [text for text in private if text.encode() in body], (path, body[:2000])
        assert not host.search(body) or path.endswith((".png", ".safetensors")), (path, body[:2000])
    manifests = [body for name, body in server.uploads.items() if name.endswith("/manifest.json")]
    assert len(manifests) == 4  # three tables and the model
    here = str(Path(tempfile.gettempdir()) / f"distpaml-{os.getuid()}")
    for manifest in manifests:  # W&B sends paths of what it uploads: those of a temporary folder
        assert all(file["local_path"].startswith(here) for file in json.loads(manifest)["contents"].values())
    assert not [path for path, _ in server.bodies if path.startswith("/sdk/")]  # no telemetry, which has tracebacks
    assert leaks(tmp_path) == []


@pytest.mark.parametrize("arrived", [0, 2])
def test_a_trial_that_was_killed_and_resumed_arrives_with_every_step_once(tmp_path, server, arrived):
    first = life(tmp_path, 0, 2, wait=60)
    assert first.stdout.readline() == "logged\n"
    end = time.monotonic() + 120
    while len(next(iter(server.runs.values())).rows) < arrived and time.monotonic() < end:  # sent now and then
        time.sleep(0.2)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    out, err = life(tmp_path, 2, 3).communicate(timeout=400)
    assert out == "logged\n", out + err
    (run,) = server.runs.values()
    same_rows(run.rows, read_records(tmp_path / "runs" / NAME))
    assert run.ended == 0
