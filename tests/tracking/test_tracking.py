import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from tensorboardX.proto.api_pb2 import Status
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData
from tiny import rounds_of, tiny

from distpaml.records import RunDirectory, read_records
from distpaml.tracking import Tracker, network

OVERRIDES = "method=paml-pool", "evaluation.shots=[3]"
CONFIG = tiny(*OVERRIDES)
KEY = "0123456789abcdef" * 2 + "deadbeef"
NAME, GROUP = "cartpole-paml-pool-0", "cartpole"


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """A machine whose user has no account."""
    for name in list(os.environ):
        if name.startswith("WANDB_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def track(tmp_path, rounds, mode="offline", say=lambda sentence: pytest.fail(sentence), name=NAME, config=CONFIG):
    """Open a trial, finish the given rounds and close it, as one process of its life does."""
    run = tmp_path / "runs" / name
    with RunDirectory(run, config) as kept, Tracker(config, run, tmp_path, name, GROUP, mode, say) as tracker:
        for round in rounds:
            kept.add(round)
            tracker.add(round.record)
    return run


def wandb_files(tmp_path) -> list[Path]:
    return sorted(tmp_path.glob("wandb/*run-*/run-*.wandb"))


def inspect(file: Path) -> list[dict]:
    """What is in an offline file, as W&B's own tool reads it."""
    command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def history(file: Path) -> list[dict]:
    return [line["history"]["item"] for line in inspect(file) if line["type"] == "history"]


def events(folder: Path) -> list[Event]:
    found = []
    for file in sorted(folder.glob("events.*")):
        data = file.read_bytes()
        while data:
            (size,) = struct.unpack("Q", data[:8])
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return found


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    return [
        (event.step, value.simple_value)
        for event in events(folder)
        for value in event.summary.value
        if value.tag == name
    ]


def same_rows(rows: list[dict], records) -> None:
    assert [row["_step"] for row in rows] == [record.round for record in records]
    for row, record in zip(rows, records, strict=True):
        expected = {
            **{name: getattr(record, name) for name in ("tasks", "rmse", "nll", "rmse_paper", "nll_median")},
            **{f"terms/{name}": value for name, value in record.terms.items()},
            **{f"seconds/{name}": value for name, value in record.seconds.items()},
            "shots/3/rmse": record.shots[3]["rmse"],
        }
        if record.candidates:
            expected["candidates/valid"] = record.candidates.valid
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def same_curves(folder: Path, records) -> None:
    for name in ("rmse", "nll_paper", "terms/elbo"):
        values = [record.terms["elbo"] if "/" in name else getattr(record, name) for record in records]
        curve = scalars(folder, name)
        assert [step for step, _ in curve] == [record.tasks for record in records]
        assert [value for _, value in curve] == pytest.approx(values, rel=1e-6)


def test_a_trial_is_a_run_whose_rows_are_its_records(tmp_path):
    records = read_records(track(tmp_path, rounds_of(*OVERRIDES)))
    (file,) = wandb_files(tmp_path)
    lines = inspect(file)
    same_rows([line["history"]["item"] for line in lines if line["type"] == "history"], records)
    (run,) = [line["run"] for line in lines if line["type"] == "run"]
    assert (run["display_name"], run["run_group"], run["job_type"]) == (NAME, GROUP, "paml-pool")
    assert set(run["tags"]) == {"cartpole", "paml-pool", "seed-0"} and run["project"] == "distpaml"
    config = run["config"]["update"]
    assert config["model"]["inducing"] == 40 and config["domain"]["box"]["pole_mass"] == [0.5, 5.0]
    metrics = [line["metric"] for line in lines if line["type"] == "metric"]
    assert {"tasks"} == {metric["step_metric"] for metric in metrics if "step_metric" in metric}
    same_curves(tmp_path / "tensorboard" / NAME, records)


def test_the_sweep_is_a_tag_and_the_final_model_an_artifact(tmp_path):
    rounds = rounds_of(*OVERRIDES)
    run = tmp_path / "runs" / NAME
    tracker = Tracker(CONFIG, run, tmp_path, NAME, GROUP, "offline", pytest.fail, sweep="quickstart")
    with RunDirectory(run, CONFIG) as kept, tracker:
        for round in rounds:
            kept.add(round)
            tracker.add(round.record)
    lines = inspect(*wandb_files(tmp_path))
    assert "quickstart" in next(line["run"]["tags"] for line in lines if line["type"] == "run")
    (artifact,) = [
        line["artifact"] for line in lines if line["type"] == "artifact" and line["artifact"]["type"] == "model"
    ]
    assert artifact["name"] == f"{NAME}-model"
    (entry,) = artifact["manifest"]["contents"]
    assert Path(entry["local_path"]).read_bytes() == (run / "round-02" / "model.safetensors").read_bytes()


def test_tensorboard_compares_trials_by_the_keys_of_their_configs(tmp_path):
    track(tmp_path, rounds_of(*OVERRIDES), mode="off")
    found = {
        value.tag: HParamsPluginData.FromString(value.metadata.plugin_data.content)
        for event in events(tmp_path / "tensorboard" / NAME)
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == "hparams"
    }
    given = found["_hparams_/session_start_info"].session_start_info.hparams
    assert given["model.inducing"].number_value == 40 and given["method"].string_value == "paml-pool"
    assert "out" not in given
    metrics = [metric.name.tag for metric in found["_hparams_/experiment"].experiment.metric_infos]
    assert metrics == ["rmse", "nll", "rmse_paper", "nll_paper"]  # scalars of these names are in the same folder
    assert found["_hparams_/session_end_info"].session_end_info.status == Status.Value("STATUS_SUCCESS")


def test_a_trial_that_failed_has_no_end_in_tensorboard(tmp_path):
    with pytest.raises(ZeroDivisionError), Tracker(CONFIG, tmp_path / "run", tmp_path, NAME, GROUP, "off"):
        1 / 0  # noqa: B018
    tags = [value.tag for event in events(tmp_path / "tensorboard" / NAME) for value in event.summary.value]
    assert "_hparams_/session_start_info" in tags and "_hparams_/session_end_info" not in tags


def test_system_metrics_are_logged(tmp_path):
    track(tmp_path, rounds_of(*OVERRIDES))
    stats = [line["stats"]["item"] for line in inspect(*wandb_files(tmp_path)) if line["type"] == "stats"]
    assert stats and 0 < stats[0]["memory_percent"] < 100 and stats[0]["proc.memory.rssMB"] > 10


def test_choices_are_a_table_and_latent_space_is_an_image(tmp_path):
    rounds = rounds_of(*OVERRIDES)
    track(tmp_path, rounds)
    tables = sorted((tmp_path / "wandb").glob("offline-run-*/files/media/table/*.json"))
    table = json.loads(tables[-1].read_text())
    assert table["columns"] == ["round", "task", "pole_mass", "pole_length", "h1", "h2", "utility", "repeats"]
    assert [row[:2] for row in table["data"]] == [[0, 0], [0, 1], [0, 2], [1, 3], [2, 4]]
    last = rounds[-1].record.added[0]
    assert table["data"][-1][2:-1] == pytest.approx([*last.task, *last.latent, last.utility])
    assert table["data"][-1][-1] == last.repeats and table["data"][0][-4:] == [None] * 4
    images = list((tmp_path / "wandb").glob("offline-run-*/files/media/images/latents_*.png"))
    assert len(images) == 3 and len({image.read_bytes() for image in images}) == 3
    tags = [value.tag for event in events(tmp_path / "tensorboard" / NAME) for value in event.summary.value]
    assert tags.count("latents") == tags.count("choices/text_summary") == 3 and tags.count("config/text_summary") == 1


@pytest.mark.parametrize("experiment, extra", [("cartpole_partial", []), ("cartpole_noisy", ["epsilon"])])
def test_a_table_has_what_was_shown_beside_what_is_true(tmp_path, experiment, extra):
    rounds = rounds_of(experiment=experiment)
    track(tmp_path, rounds[:1], config=tiny(experiment=experiment))
    (file,) = (tmp_path / "wandb").glob("offline-run-*/files/media/table/*.json")
    table = json.loads(file.read_text())
    assert table["columns"][2:-4] == ["pole_mass", "pole_length", *extra]
    added = rounds[0].record.added
    shown = [[*task.task, *task.descriptor[len(task.descriptor) - len(extra) :]] for task in added]
    assert [row[2:-4] for row in table["data"]] == [pytest.approx(row) for row in shown]


def test_trials_of_one_process_are_runs_of_their_own(tmp_path):
    before = dict(os.environ)
    for name in ("one", "two", "three"):
        track(tmp_path, rounds_of(*OVERRIDES), name=name)
    files = wandb_files(tmp_path)
    assert len(files) == 3
    assert [len(history(file)) for file in files] == [3, 3, 3]
    assert sorted(path.name for path in (tmp_path / "tensorboard").iterdir()) == ["one", "three", "two"]
    import wandb

    assert wandb.run is None
    assert os.environ == before


@pytest.mark.parametrize("split", [[1, 3], [2, 3], [1, 2, 3], [0, 3], [3, 3]])
def test_a_resumed_trial_has_every_round_once(tmp_path, split):
    rounds, done = rounds_of(*OVERRIDES), 0
    for until in split:
        run = track(tmp_path, rounds[done:until])
        done = until
    (file,) = wandb_files(tmp_path)
    same_rows(history(file), read_records(run))
    same_curves(tmp_path / "tensorboard" / NAME, read_records(run))


def test_rounds_that_were_never_shown_are_shown_later(tmp_path):
    """The process died after a round was recorded and before it was logged."""
    run = tmp_path / "runs" / NAME
    with RunDirectory(run, CONFIG) as kept:
        kept.add(rounds_of(*OVERRIDES)[0])
    track(tmp_path, rounds_of(*OVERRIDES)[1:])
    same_rows(history(wandb_files(tmp_path)[0]), read_records(run))
    same_curves(tmp_path / "tensorboard" / NAME, read_records(run))


def test_what_was_synced_is_not_written_again(tmp_path):
    rounds = rounds_of(*OVERRIDES)
    track(tmp_path, rounds[:2])
    (first,) = wandb_files(tmp_path)
    first.with_suffix(".wandb.synced").touch()  # the mark that `wandb sync` leaves
    run = track(tmp_path, rounds[2:])
    assert first.exists()
    (second,) = set(wandb_files(tmp_path)) - {first}
    same_rows(history(first) + history(second), read_records(run))
    ids = {line["run"]["run_id"] for file in (first, second) for line in inspect(file) if line["type"] == "run"}
    assert len(ids) == 1


LIFE = """
import os, signal, sys, time
from pathlib import Path
from test_tracking import *
where = Path(sys.argv[1])
run = where / "runs" / NAME
rounds = rounds_of(*OVERRIDES)
with RunDirectory(run, CONFIG) as kept, Tracker(CONFIG, run, where, NAME, GROUP, "offline") as tracker:
    for round in rounds[:2]:
        kept.add(round)
        tracker.add(round.record)
    print("logged", flush=True)
    time.sleep(60)
"""


def test_killed_in_the_middle_it_stays_readable_and_goes_on(tmp_path):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command, temporary = [sys.executable, "-c", LIFE, str(tmp_path)], tmp_path / "tmp"
    temporary.mkdir()
    surroundings = os.environ | {"PYTHONPATH": paths, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings)
    assert process.stdout.readline() == "logged\n"
    (file,) = wandb_files(tmp_path)
    begin = time.monotonic()
    while len(history(file)) < 2 and time.monotonic() < begin + 90:  # written within a second
        time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [path.name for path in temporary.iterdir()] == [f"distpaml-{os.getuid()}"]  # which the next start tidies
    same_rows(history(file), read_records(tmp_path / "runs" / NAME))
    same_curves(tmp_path / "tensorboard" / NAME, read_records(tmp_path / "runs" / NAME))
    run = track(tmp_path, rounds_of(*OVERRIDES)[2:])
    (file,) = wandb_files(tmp_path)
    same_rows(history(file), read_records(run))
    same_curves(tmp_path / "tensorboard" / NAME, read_records(run))


def leaks(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]


def test_no_key_is_written_or_said(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    said = []
    track(tmp_path, rounds_of(*OVERRIDES), "auto", said.append)
    track(tmp_path, [], "online", said.append)
    assert leaks(tmp_path) == []
    assert len(wandb_files(tmp_path)) == 1
    assert KEY not in " ".join([*said, *capfd.readouterr()])
    with Tracker(CONFIG, tmp_path / "none", tmp_path, "other", GROUP, "off", said.append) as tracker:
        tracker._say(f"Key {KEY} is wrong.")
    assert said[-1] == "Key … is wrong; the records of the run are complete."


def test_nothing_of_the_machine_is_in_a_run(tmp_path):
    config = tiny(*OVERRIDES, "out=/secret/place")
    track(tmp_path, rounds_of(*OVERRIDES)[:1], config=config)
    text = json.dumps(inspect(wandb_files(tmp_path)[0]))
    assert "/secret/place" not in text
    name = rf"\b{re.escape(os.uname().nodename)}\b"  # as a word: random tokens may have short names in them
    assert not re.search(name, text.replace(str(tmp_path), ""))
    assert not list((tmp_path / "home" / ".local").rglob("*wandb*")), "tables wait in the sweep's folder"
    assert not list(tmp_path.glob("wandb/*/files/wandb-metadata.json"))


def test_a_closed_port_means_offline_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    said, begin = [], time.monotonic()
    run = track(tmp_path, rounds_of(*OVERRIDES), "online", said.append)
    assert time.monotonic() - begin < 15
    assert said == ["W&B logs offline: http://127.0.0.1:9 cannot be reached; the records of the run are complete."]
    (file,) = wandb_files(tmp_path)
    same_rows(history(file), read_records(run))


class _Refuses(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(401)

    def do_POST(self):
        self.send_error(401)

    def log_message(self, *_):
        pass


@pytest.fixture
def refusing():
    """A server that answers, but lets nobody in."""
    server = HTTPServer(("127.0.0.1", 0), _Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_server_that_refuses_means_offline_within_seconds(tmp_path, monkeypatch, refusing):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", refusing)
    said, begin = [], time.monotonic()
    run = track(tmp_path, rounds_of(*OVERRIDES)[:2], "auto", said.append)
    assert time.monotonic() - begin < 15
    assert len(said) == 1 and said[0].startswith("W&B logs offline: ") and "\n" not in said[0]
    run = track(tmp_path, rounds_of(*OVERRIDES)[2:], "auto", said.append)
    (file,) = wandb_files(tmp_path)
    assert file.parent.name.startswith("offline-run-")
    same_rows(history(file), read_records(run))
    assert leaks(tmp_path) == []


def test_without_a_key_auto_is_offline_and_says_nothing(tmp_path):
    track(tmp_path, rounds_of(*OVERRIDES)[:1], "auto")
    assert len(wandb_files(tmp_path)) == 1
    said = []
    track(tmp_path, rounds_of(*OVERRIDES)[:1], "online", said.append, name="other")
    assert len(said) == 1 and "there is no key (WANDB_API_KEY or an entry in ~/.netrc)" in said[0]


def test_a_key_in_netrc_counts(tmp_path, monkeypatch, refusing):
    (tmp_path / "netrc").write_text(f"machine api.wandb.ai login user password {KEY}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert network._has_key("https://api.wandb.ai")
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.org")
    assert not network._has_key("https://wandb.example.org")
    assert network._reachable(refusing)


@pytest.mark.parametrize("mode, variable", [("off", None), ("auto", "disabled")])
def test_off_writes_no_run(tmp_path, monkeypatch, mode, variable):
    if variable:
        monkeypatch.setenv("WANDB_MODE", variable)
    run = track(tmp_path, rounds_of(*OVERRIDES), mode)
    assert not (tmp_path / "wandb").exists()
    same_curves(tmp_path / "tensorboard" / NAME, read_records(run))


def test_an_empty_wandb_mode_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "")
    track(tmp_path, rounds_of(*OVERRIDES)[:1], "auto")
    assert len(wandb_files(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_does_not_stop_the_trial(tmp_path):
    said, run, rounds = [], tmp_path / "run", rounds_of(*OVERRIDES)
    (tmp_path / "file").touch()
    arguments = CONFIG, run, tmp_path / "file", NAME, GROUP, "offline", said.append
    with RunDirectory(run, CONFIG) as kept, Tracker(*arguments) as tracker:
        for round in rounds:
            kept.add(round)
            tracker.add(round.record)
    assert len(read_records(run)) == 3
    assert [sentence.split()[0] for sentence in said] == ["TensorBoard", "W&B"]
    assert all(sentence.endswith("; the records of the run are complete.") for sentence in said)


def test_what_breaks_in_the_middle_is_said_once(tmp_path):
    said, run, rounds = [], tmp_path / "run", rounds_of(*OVERRIDES)
    arguments = CONFIG, run, tmp_path, NAME, GROUP, "offline", said.append
    with RunDirectory(run, CONFIG) as kept, Tracker(*arguments) as tracker:
        for number, round in enumerate(rounds):
            kept.add(round)
            tracker.add(round.record)
            if number == 0:
                tracker.sinks[0].writer.close()  # writing to a closed file fails
    assert len(said) == 1 and said[0].startswith("TensorBoard stops logging cartpole-paml-pool-0: ")
    same_rows(history(wandb_files(tmp_path)[0]), read_records(run))


def test_a_failed_trial_is_marked(tmp_path):
    run = tmp_path / "run"
    with pytest.raises(ZeroDivisionError), Tracker(CONFIG, run, tmp_path, NAME, GROUP, "offline"):
        raise ZeroDivisionError
    (exit,) = [line["exit"] for line in inspect(wandb_files(tmp_path)[0]) if line["type"] == "exit"]
    assert exit["exit_code"] == 1


@pytest.mark.parametrize("latents", [1, 2, 3])
def test_an_image_of_any_latent_space(latents):
    from distpaml.tracking.latent_plot import LatentPlot

    rng = np.random.default_rng(0)
    arrays = {
        "test_mean": rng.normal(size=(9, latents)),
        "test_rmse": rng.random(9),
        "embedding_mean": rng.normal(size=(4, latents)),
        "embedding_variance": rng.random((4, latents)),
    }
    plot = LatentPlot()
    first, again = plot.draw(arrays, 1, 4), plot.draw(arrays, 1, 4)
    assert first.shape == (320, 384, 3) and first.dtype == np.uint8 and len(np.unique(first)) > 10
    np.testing.assert_array_equal(first, again)
    fewer = {
        **arrays,
        "embedding_mean": arrays["embedding_mean"][:2],
        "embedding_variance": arrays["embedding_variance"][:2],
    }
    assert not np.array_equal(plot.draw(fewer, 1, 2), first)
