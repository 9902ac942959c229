"""Whatever file is told, it is accepted or refused with a sentence, and the experiment stays as it should be."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spring import declared, run

from distpaml import Experiment
from distpaml.errors import UserError

FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.floats(-10, 10).map("{:.3f}".format),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(["", " ", "nan", "inf", "-", "1,5", "0x1F", "1e400", '"', "é", "True", "2026-01-01", "NULL"]),
    st.text(max_size=5),
)
HEADERS = st.lists(
    st.sampled_from(["x", "v", "u", "time", "trajectory", "x [m]", "v (deg)", "note", "", "X"]), min_size=1, max_size=7
)
ROWS = st.lists(st.lists(CELLS, min_size=0, max_size=7), max_size=12)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    experiment = Experiment(declared(angles=["x"], initial=10**6), tmp_path_factory.mktemp("fuzz") / "experiment")
    experiment.ask()
    return experiment


def told(experiment, file):
    """Tell a file, and check that the stored experiment is what the answer says."""
    before = len(experiment.history())
    try:
        answer = experiment.tell(1, file)
    except UserError as error:
        assert str(error).strip() and "\n" not in str(error) and str(error).endswith(".")
        answer = None
    again = Experiment.load(experiment.directory)
    assert len(again.history()) == before + (answer is not None)
    if answer is not None:
        recording = again._journal.recording(before + 1)
        assert recording.transitions == answer.transitions > 0
        assert all(np.isfinite(part).all() for part in (*recording.states, *recording.controls))
        inputs, targets = recording.rows([0])
        assert np.isfinite(inputs).all() and np.isfinite(targets).all() and len(inputs) == answer.transitions
    return answer


@given(HEADERS, ROWS, st.sampled_from([",", ";", "\t"]), st.booleans())
@FUZZ
def test_tables_of_any_cells(experiment, tmp_path, header, rows, separator, proper):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator)
    header = ["x", "v", "u", *header] if proper else header
    writer.writerow(header)
    writer.writerows([(row + [""] * len(header))[: len(header)] if proper else row for row in rows])
    (tmp_path / "run.csv").write_text(buffer.getvalue(), encoding="utf-8", errors="replace")
    told(experiment, tmp_path / "run.csv")


@given(st.binary(max_size=300), st.sampled_from(["csv", "npz", "parquet"]))
@FUZZ
def test_files_of_any_bytes(experiment, tmp_path, contents, suffix):
    (tmp_path / f"run.{suffix}").write_bytes(contents)
    told(experiment, tmp_path / f"run.{suffix}")


@given(st.data(), st.sampled_from(["csv", "npz", "parquet"]))
@FUZZ
def test_good_files_with_damage(experiment, tmp_path, data, suffix):
    import pandas

    frame = pandas.DataFrame(run({}, steps=12) | {"time": np.arange(12) * 0.1})
    file = tmp_path / f"run.{suffix}"
    match suffix:
        case "csv":
            frame.to_csv(file, index=False)
        case "npz":
            np.savez(file, **{name: frame[name].to_numpy() for name in frame})
        case "parquet":
            frame.to_parquet(file)
    contents = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(contents)))
    file.write_bytes(bytes(contents[: cut or None]))
    told(experiment, file)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=12),
    st.lists(st.floats(0.001, 0.3), min_size=12, max_size=12),
    st.sampled_from([1e-9, 1.0, 1e8]),
)
@FUZZ
def test_any_numbers_at_any_times(experiment, values, gaps, scale):
    size = len(values)
    columns = {
        "x": np.array(values) / 1e9 * scale,
        "v": np.array(values)[::-1],
        "u": np.ones(size),
        "time": np.cumsum(gaps[:size]),
    }
    told(experiment, columns)


def test_what_was_accepted_can_be_fitted(tmp_path):
    """Columns that do not move, tiny and huge ones, single transitions: an ask must not stumble over them."""
    declaration = declared(initial=2, outliers="keep")
    cases = [
        {"x": np.zeros(5), "v": np.zeros(5), "u": np.zeros(5)},
        {"x": np.array([1e9, -1e9, 1e9]), "v": np.array([1e-300, 0, 1e-300]), "u": np.array([1e9, -1e9, 0])},
        {"x": np.array([0.0, 1.0]), "v": np.array([0.0, 0.0]), "u": np.array([0.0, 0.0])},
        {"x": np.arange(5) * 1e-12, "v": 1e8 + np.arange(5.0), "u": np.full(5, 7.0)},
    ]
    for number, case in enumerate(cases):
        experiment = Experiment(declaration, tmp_path / str(number))
        for columns in (case, run({}), case):
            (task,) = experiment.ask()
            experiment.tell(task.id, columns)
        assert len(experiment.ask(2)) == 2
    json.dumps(experiment.history()[-1].model_dump())
