import json
import multiprocessing
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from deadly import die_at_fsync
from safetensors.numpy import load_file
from tiny import tiny

from distpaml.config import ExperimentConfig
from distpaml.domains import SimulationError
from distpaml.durable_io import append_durably
from distpaml.errors import UserError
from distpaml.model.storage import load_model
from distpaml.records import RunDirectory, read_arrays, read_records
from distpaml.runtime.repair import repair
from distpaml.runtime.run_experiment import run_to_end

CONFIG = tiny("method=paml-pool", "evaluation.shots=[3]")
ROUNDS = CONFIG.rounds + 1


class StopHere(Exception):  # noqa: N818
    pass


def stop_after(round: int):
    def finished(record):
        if record.round == round:
            raise StopHere

    return finished


def results(path: Path) -> list[dict]:
    return [record.result() for record in read_records(path)]


def same_run(path: Path, undisturbed: Path) -> None:
    """Records, arrays and the last model are those of the undisturbed run, to the bit."""
    assert results(path) == results(undisturbed)
    for round in range(ROUNDS):
        mine, theirs = read_arrays(path, round), read_arrays(undisturbed, round)
        assert mine.keys() == theirs.keys()
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)
    mine, theirs = (load_file(folder / f"round-{ROUNDS - 1:02d}/model.safetensors") for folder in (path, undisturbed))
    assert mine.keys() == theirs.keys()
    assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run_to_end(CONFIG, path)
    return path


@pytest.fixture
def copy(undisturbed, tmp_path) -> Path:
    return Path(shutil.copytree(undisturbed, tmp_path / "run"))


def test_a_run_leaves_its_config_records_arrays_and_newest_model(undisturbed):
    assert ExperimentConfig.from_yaml(undisturbed / "config.yaml") == CONFIG
    lines = [json.loads(line) for line in (undisturbed / "records.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [0, 1, 2]
    assert all(isinstance(line[name], float) for line in lines for name in ("rmse", "nll", "rmse_paper", "nll_paper"))
    arrays = read_arrays(undisturbed, 1)
    assert arrays["test_rmse"].mean() == pytest.approx(lines[1]["rmse"])
    assert np.median(arrays["shots3_nll"]) == pytest.approx(lines[1]["shots"]["3"]["nll_median"])
    assert arrays["embedding_mean"].shape == (4, 2) and arrays["inputs"].shape == (1, 19, 6)
    assert [path.parent.name for path in undisturbed.rglob("*.safetensors")] == ["round-02"]


@pytest.mark.parametrize("round", range(ROUNDS))
def test_stopped_after_any_round_it_ends_like_an_undisturbed_run(tmp_path, undisturbed, round):
    with pytest.raises(StopHere):
        run_to_end(CONFIG, tmp_path / "run", finished=stop_after(round))
    assert len(read_records(tmp_path / "run")) == round + 1
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


def _run_and_die(config: str, path: Path, at: int) -> None:
    """Run an experiment in a process that kills itself at its `at`-th fsync, before or after it took place."""
    die_at_fsync(at)
    run_to_end(ExperimentConfig.from_yaml(config), path)


def _start(*arguments) -> multiprocessing.Process:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distpaml.runtime.local", "tiny"])
    process = context.Process(target=_run_and_die, args=arguments)
    process.start()
    return process


def test_killed_at_every_write_it_ends_like_an_undisturbed_run(tmp_path, undisturbed):
    """Each life dies at the n-th write after the last: of the config, the arrays, the model, the folders, the line."""
    for at in (1, 2, 3, 4, 5, 6, 7, 2, 6, 4):
        process = _start(CONFIG.to_yaml(), tmp_path / "run", at)
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    assert len(read_records(tmp_path / "run")) == 2
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


def test_killed_at_random_moments_it_ends_like_an_undisturbed_run(tmp_path, undisturbed):
    rng = np.random.default_rng()
    killed = 0
    for _ in range(8):
        process = _start(CONFIG.to_yaml(), tmp_path / "run", -1)
        process.join(rng.uniform(0.05, 0.9))
        process.kill()
        process.join()
        killed += process.exitcode != 0
    assert killed
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


def test_a_finished_run_is_not_run_again(copy, undisturbed):
    before = (copy / "records.jsonl").stat().st_mtime_ns
    assert [record.result() for record in run_to_end(CONFIG, copy)] == results(undisturbed)
    assert (copy / "records.jsonl").stat().st_mtime_ns == before


def test_a_second_run_in_the_same_directory_is_refused(copy):
    with RunDirectory(copy, CONFIG), pytest.raises(UserError, match="Another run is writing into"):
        run_to_end(CONFIG, copy)
    run_to_end(CONFIG, copy)  # free again


@pytest.mark.parametrize("left", ['{"round":2,"ta', '{"round":2}', "\0\0\0\0"])
def test_a_torn_last_line_is_dropped_and_its_round_redone(tmp_path, undisturbed, left):
    with pytest.raises(StopHere):
        run_to_end(CONFIG, tmp_path / "run", finished=stop_after(1))
    with open(tmp_path / "run" / "records.jsonl", "a") as file:
        file.write(left)
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


@pytest.mark.parametrize(
    "damage, line",
    [
        (lambda lines: [lines[0], "not json", lines[2]], 2),
        (lambda lines: [lines[0], lines[1].replace('"tasks":4', '"tasks":5'), lines[2]], 2),
        (lambda lines: [lines[0], lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[2]], 1),
        (lambda lines: [lines[0], lines[2], lines[1]], 2),
        (lambda lines: [*lines[:2], lines[2].replace("rmse", "rmze", 1)], 3),
        (lambda lines: ["", *lines], 1),
    ],
)
def test_a_damaged_line_is_a_sentence_and_nothing_is_rewritten(copy, damage, line):
    records = copy / "records.jsonl"
    records.write_text("".join(line + "\n" for line in damage(records.read_text().splitlines())))
    before = contents_of(copy)
    sentence = f"records.jsonl is damaged in line {line}, which does not match its checksum; .*--repair"
    with pytest.raises(UserError, match=sentence):
        run_to_end(CONFIG, copy)
    with pytest.raises(UserError, match=sentence):
        read_records(copy)
    assert contents_of(copy) == before


def contents_of(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "file, how",
    [
        ("round-00/arrays.npz", "bit"),
        ("round-01/arrays.npz", "missing"),
        ("round-02/model.safetensors", "bit"),
        ("round-02/model.safetensors", "empty"),
        ("config.yaml", "bit"),
    ],
)
def test_a_damaged_file_is_a_sentence_until_it_is_repaired(copy, undisturbed, file, how):
    contents = bytearray((copy / file).read_bytes())
    (copy / file).unlink()
    if how != "missing":
        contents[len(contents) // 2] ^= 1
        (copy / file).write_bytes(contents if how == "bit" else b"")
    before = contents_of(copy)
    with pytest.raises(UserError, match=f"{file} (is damaged|cannot be read)"):
        run_to_end(CONFIG, copy)
    assert contents_of(copy) == before
    repair(CONFIG, copy)
    run_to_end(CONFIG, copy)
    same_run(copy, undisturbed)


def test_records_that_are_gone_are_not_silently_made_again(copy):
    (copy / "records.jsonl").unlink()
    before = contents_of(copy)
    with pytest.raises(UserError, match=r"records.jsonl has 0 rounds, but round-02 is there; .*--repair"):
        run_to_end(CONFIG, copy)
    assert contents_of(copy) == before


def test_repair_keeps_every_round_up_to_the_last_whole_one(tmp_path, undisturbed):
    with pytest.raises(StopHere):
        run_to_end(CONFIG, tmp_path / "run", finished=stop_after(1))
    lines = tmp_path / "run" / "records.jsonl"
    two = lines.read_bytes()
    with open(lines, "ab") as file:
        file.write(b'{"round":2}\n')
    with pytest.raises(UserError, match="damaged in line 3"):
        run_to_end(CONFIG, tmp_path / "run")
    repair(CONFIG, tmp_path / "run")
    run_to_end(CONFIG, tmp_path / "run")
    assert lines.read_bytes().startswith(two)  # times and all: not made again
    same_run(tmp_path / "run", undisturbed)


def test_no_flipped_bit_goes_unnoticed(copy, undisturbed):
    """One bit in any byte of any file: a sentence, or the very same run."""
    rng = np.random.default_rng(0)
    files = [file for file in sorted(copy.rglob("*")) if file.is_file() and file.name != "lock"]
    for _ in range(60):
        file = files[rng.integers(len(files))]
        whole = file.read_bytes()
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        file.write_bytes(changed)
        try:
            with RunDirectory(copy, CONFIG) as run:
                run.state()
                assert len(run.records) < ROUNDS and file.name == "records.jsonl"  # its last line break
        except UserError:
            pass
        file.write_bytes(whole)
    with RunDirectory(copy, CONFIG) as run:
        assert run.state() is not None


def test_pickled_arrays_are_not_read(copy):
    np.savez(copy / "round-00" / "arrays.npz", inputs=np.array([print], dtype=object))
    with pytest.raises(UserError, match=r"round-00/arrays.npz is damaged"), RunDirectory(copy, CONFIG) as run:
        run.state()


def test_another_config_is_refused_by_the_first_key_that_differs(copy):
    other = tiny("method=paml-pool", "evaluation.shots=[3]", "model.inducing=30", "evaluation.grid=3")
    with pytest.raises(UserError, match=r"holds another experiment: model.inducing is 40 there and 30 here"):
        run_to_end(other, copy)
    same = tiny("method=paml-pool", "evaluation.shots=[3]", "runtime.threads=2", "out=elsewhere")
    assert len(run_to_end(same, copy)) == ROUNDS


def test_a_run_that_failed_in_its_first_round_does_not_claim_the_directory(tmp_path):
    with pytest.raises(SimulationError, match="diverged"):
        run_to_end(tiny("domain.control_limit=1e6"), tmp_path / "run")
    assert len(run_to_end(tiny("rounds=0"), tmp_path / "run")) == 1


def test_a_directory_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"is not the directory of a run: it has thesis.tex but no config.yaml"):
        run_to_end(CONFIG, tmp_path)


@pytest.mark.parametrize("place", ["/sys/distpaml-run", "/dev/null/run"])
def test_a_directory_that_cannot_be_written_is_a_sentence(place):
    with pytest.raises(UserError, match=f"^{place} cannot be written: "):
        run_to_end(CONFIG, Path(place))


@pytest.mark.parametrize("which", [min, max])
def test_a_full_disk_is_a_sentence_and_nothing_complete_is_lost(tmp_path, undisturbed, which):
    """After the first round no file may grow beyond just less than the smaller or the larger file needs."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = [file.stat().st_size for file in (undisturbed / "round-02").iterdir()]
    room = which(sizes) - 1

    def fill(record):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))

    try:
        with pytest.raises(UserError, match="File too large; every finished round is kept, and the run goes on"):
            run_to_end(CONFIG, tmp_path / "run", finished=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert 1 <= len(read_records(tmp_path / "run")) < ROUNDS
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(tmp_path, undisturbed):
    """The disk fills up in the middle of a line."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(StopHere):
        run_to_end(CONFIG, tmp_path / "run", finished=stop_after(0))
    lines = tmp_path / "run" / "records.jsonl"
    before = lines.read_bytes()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        with pytest.raises(OSError):
            append_durably(lines, b"x" * 1000 + b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert lines.read_bytes() == before
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", undisturbed)


def test_the_model_that_is_kept_is_the_one_that_was_evaluated(undisturbed):
    model = load_model(undisturbed / "round-02" / "model.safetensors")
    np.testing.assert_array_equal(model.embeddings.mean.numpy(), read_arrays(undisturbed, 2)["embedding_mean"])
    assert dict(model.terms) == read_records(undisturbed)[2].terms
