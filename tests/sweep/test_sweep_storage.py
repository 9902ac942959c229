"""A sweep's files in a shared folder and in object storage. `file://` takes the road of `s3://`, by pyarrow."""

import socket
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer
from sweeps import SweepProcess, in_process, results, small

from distpaml.errors import UserError
from distpaml.sweep.storage import Storage
from distpaml.sweep.storage_check import trouble


@pytest.fixture(autouse=True)
def own_scratch(tmp_path, monkeypatch):
    """Mirrors of what is stored lie in here."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()


def stored(tmp_path) -> Storage:
    (tmp_path / "store").mkdir()
    return Storage.of((tmp_path / "store").as_uri() + "/sweep")


def test_what_is_pushed_is_pulled_elsewhere(tmp_path):
    storage = stored(tmp_path)
    (storage.local / "trials" / "one").mkdir(parents=True)
    (storage.local / "trials" / "one" / "records.jsonl").write_text("1\n")
    storage.push("trials/one", "not there")
    assert (tmp_path / "store" / "sweep" / "trials" / "one" / "records.jsonl").read_text() == "1\n"
    elsewhere = Storage(storage.where, "another machine")
    assert elsewhere.local != storage.local
    elsewhere.pull("trials/one")
    elsewhere.pull("not there")
    assert (elsewhere.local / "trials" / "one" / "records.jsonl").read_text() == "1\n"
    elsewhere.drop("trials/one/records.jsonl")
    elsewhere.drop("trials/one/records.jsonl")
    assert not (tmp_path / "store" / "sweep" / "trials" / "one" / "records.jsonl").exists()


def test_a_shared_folder_is_itself(tmp_path):
    storage = Storage.of(str(tmp_path / "sweep"))
    assert storage.local == tmp_path / "sweep" and not storage.remote
    assert storage.identify() == storage.identify() == (tmp_path / "sweep" / "id").read_text()


@pytest.mark.parametrize("where", ["{0}/sweep", "file://{0}/sweep"])
def test_only_the_folder_with_the_right_id_is_taken(tmp_path, where):
    storage = Storage.of(where.format(tmp_path))
    assert trouble(Storage(storage.where, storage.identify()), 0.0) is None
    assert "does not see the sweep's folder at " in trouble(Storage(storage.where, "another"), 0.0)


def test_an_id_that_cannot_be_read_is_a_sentence(tmp_path):
    storage = Storage.of(str(tmp_path))
    (tmp_path / "id").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"id, by which machines know the sweep's folder, cannot be read: .*utf-8"):
        storage.identify()
    (tmp_path / "id").unlink()
    (tmp_path / "id").mkdir()
    with pytest.raises(UserError, match=r"cannot be read: .*Is a directory"):
        storage.identify()


def test_storage_that_cannot_be_reached_is_said_on_which_machine():
    said = trouble(Storage("nowhere://bucket/sweep", "id"), 0.0)
    assert said.startswith(f"On {socket.gethostname()}, nowhere://bucket/sweep cannot be used: ")


def test_a_mirror_of_what_is_stored_no_more_is_forgotten(tmp_path):
    storage = stored(tmp_path)
    storage.local.mkdir()
    (storage.local / "sweep.yaml").write_text("name: one\n")
    storage.push("sweep.yaml")
    storage.forget()
    assert (storage.local / "sweep.yaml").exists()
    storage.drop("sweep.yaml")
    storage.forget()
    assert not storage.local.exists()


def test_a_bucket_with_options_has_folders_inside():
    inner = Storage("s3://bucket/path?region=eu-west-1", "id").inside("deeper")
    assert inner == Storage("s3://bucket/path/deeper?region=eu-west-1", "id")


def test_a_uri_that_nothing_serves_is_a_sentence():
    with pytest.raises(UserError, match=r"nowhere://bucket cannot be used: .*\.$"):
        Storage("nowhere://bucket").pull()


@pytest.fixture
def s3(monkeypatch):
    """A bucket of a server on this machine: its URI, with room for a folder."""
    for name, value in {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1").create_bucket(Bucket="results")
    yield f"s3://results/{{}}?region=us-east-1&scheme=http&endpoint_override={host}%3A{port}"
    server.stop()


def test_a_bucket_that_does_not_exist_is_a_sentence(s3):
    there = Storage(s3.format("sweep"))
    assert there.identify() and not there.missing_folders()
    with pytest.raises(UserError, match=r"^[^\n]* cannot be copied to nowhere/sweep/id: [^\n]*\.$"):
        Storage(s3.format("sweep").replace("results", "nowhere")).identify()


@pytest.fixture(params=["file", "s3"])
def where(request, tmp_path) -> str:
    """A sweep's folder in object storage."""
    if request.param == "file":
        return (tmp_path / "store" / "sweep").as_uri()
    return request.getfixturevalue("s3").format("sweep")


@pytest.mark.slow
def test_a_sweep_in_object_storage_goes_on_without_what_its_machine_kept(tmp_path, where):
    scratch = {"TMPDIR": str(tmp_path / "scratch"), "RAY_TMPDIR": "/tmp"}
    begun = SweepProcess(*small("methods=[uni]", "seeds=1"), "--out", where, cwd=tmp_path, **scratch).wait()
    assert begun.code == 0, begun.out + begun.err
    first = pulled(where, "once")
    assert list(results(first)) == ["cartpole-uni-seed0"]
    assert (first / "tensorboard" / "cartpole-uni-seed0").is_dir() and (first / "report" / "index.html").exists()
    mirrors = [path for path in Path(scratch["TMPDIR"]).iterdir() if path.name.startswith("distpaml-")]
    for path in mirrors:
        path.rename(tmp_path / f"lost-{path.name}")
    assert mirrors

    done = SweepProcess("--resume", where, "seeds=2", cwd=tmp_path, **scratch).wait()
    assert done.code == 0, done.out + done.err
    assert "cartpole-uni-seed0  " not in done.out.partition("┏")[0]  # it was finished
    runs = {f"cartpole-uni-seed{seed}": ("method=uni", f"seed={seed}") for seed in (0, 1)}
    assert results(pulled(where, "again")) == in_process(tmp_path / "alone", runs)


def pulled(where: str, machine: str) -> Path:
    """All that is stored, as another machine sees it."""
    storage = Storage(where, machine)
    storage.pull()
    return storage.local
