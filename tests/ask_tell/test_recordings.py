"""Trajectories as they come from hardware."""

import time

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spring import claiming, declared, run

from distpaml.ask_tell import tables
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.recordings import record
from distpaml.config import load
from distpaml.data.tasks import TaskSet
from distpaml.errors import UserError
from distpaml.runtime.local import LocalSimulator


def declaration(**changes):
    return Declaration.of(declared(**changes))


PLAIN = declaration()


def changed(name, row, value, columns=None):
    columns = dict(columns or run({}))
    columns[name] = columns[name].astype(object)
    columns[name][row] = value
    return columns


def test_columns_become_states_and_controls():
    columns = run({})
    recording = record(columns, PLAIN)
    (states,), (controls,) = recording.states, recording.controls
    assert np.array_equal(states, np.stack([columns["x"], columns["v"]], axis=1))
    assert np.array_equal(controls, columns["u"][:-1, None]) and not recording.notes
    inputs, targets = recording.rows([])
    assert np.array_equal(inputs, np.hstack([states[:-1], controls])) and np.array_equal(
        targets, np.diff(states, axis=0)
    )


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet", "CSV"])
def test_the_same_from_every_kind_of_file(tmp_path, suffix):
    columns = run({}) | {"time": np.arange(25) * 0.1, "temperature": np.full(25, 21.5)}
    file = tmp_path / f"run.{suffix}"
    frame = pandas.DataFrame(columns)
    {
        "csv": lambda: frame.to_csv(file, index=False),
        "CSV": lambda: file.write_text("\ufeff" + frame.to_csv(index=False, sep=";"), encoding="utf-8"),
        "npz": lambda: np.savez(file, **columns),
        "parquet": lambda: frame.to_parquet(file),
    }[suffix]()
    plain, from_file, from_frame = record(run({}), PLAIN), record(file, PLAIN), record(frame, PLAIN)
    assert np.array_equal(plain.states, from_file.states) and np.array_equal(plain.controls, from_file.controls)
    assert np.array_equal(plain.states, from_frame.states)


def test_decimal_commas_where_columns_are_separated_otherwise(tmp_path):
    (tmp_path / "run.csv").write_text("x;v;u;trajectory\n0,5;-1;0;a,b\n1,5e0;,25;0;a,b\n")
    assert np.array_equal(record(tmp_path / "run.csv", PLAIN).states[0], [[0.5, -1.0], [1.5, 0.25]])


@pytest.mark.parametrize("missing", [np.nan, None, "", "NaN", " "])
def test_a_missing_sample_cuts_the_trajectory_and_is_named_by_row(missing):
    recording = record(changed("x", 10, missing), PLAIN)
    assert [len(piece) for piece in recording.states] == [10, 14] and recording.transitions == 22
    assert recording.notes == ("the trajectory: row 11 had missing values, so the trajectory is cut there.",)
    whole = record(run({}), PLAIN).states[0]
    assert np.array_equal(recording.states[1], whole[11:])


def test_the_last_control_may_be_missing_and_another_may_not():
    assert record(changed("u", 24, ""), PLAIN).transitions == 24
    recording = record(changed("u", 10, ""), PLAIN)
    assert recording.transitions == 22 and "row 11 had missing values" in recording.notes[0]


def test_what_is_masked_is_missing():
    columns = run({})
    hidden = np.ma.masked_array(columns["x"], mask=np.arange(25) == 10)
    recording = record(columns | {"x": hidden}, PLAIN)
    assert recording.notes == ("the trajectory: row 11 had missing values, so the trajectory is cut there.",)


@pytest.mark.parametrize("value", [10**400, 1 + 2j])
def test_objects_that_are_not_real_numbers_are_refused(value):
    values = np.array([1.0] * 24 + [value], dtype=object)
    with pytest.raises(UserError, match="The trajectory has values of x that are not real numbers"):
        record(run({}) | {"x": values}, PLAIN)


def test_labels_of_trajectories_are_numbers_or_words():
    with pytest.raises(UserError, match="has values of trajectory that are neither numbers nor words"):
        record(run({}) | {"trajectory": [{}] * 25}, PLAIN)


def test_only_line_breaks_end_a_row_of_a_csv_file(tmp_path):
    rows = [f"{k},0,0,{note}" for k, note in enumerate(("a\x0cb", "a\u2028b", "a\x85b", '"a\rb"'))]
    file = tmp_path / "run.csv"
    file.write_text("\n".join(["x,v,u,note", *rows]), encoding="utf-8", newline="")
    assert record(file, PLAIN).states[0][:, 0].tolist() == [0, 1, 2, 3]


def test_a_gap_in_time_cuts_as_a_missing_sample_does():
    keep = np.arange(25) != 10
    columns = {name: column[keep] for name, column in (run({}) | {"time": np.arange(25) * 0.1}).items()}
    with_gap, with_nan = record(columns, PLAIN), record(changed("x", 10, np.nan), PLAIN)
    assert all(np.array_equal(a, b) for a, b in zip(with_gap.states, with_nan.states, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(with_gap.controls, with_nan.controls, strict=True))
    late = "row 11 came more than 1.5 steps after the row before, so the trajectory is cut there."
    assert with_gap.notes == (f"the trajectory: {late}",)


def test_several_trajectories_in_one_file():
    parts = [run({}, steps=n, start=s) for n, s in ((8, 0.1), (12, 1.0))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    recording = record(columns | {"trajectory": ["first"] * 8 + ["second"] * 12}, PLAIN)
    assert [len(piece) for piece in recording.controls] == [7, 11]
    assert np.array_equal(recording.states[1][:, 0], parts[1]["x"])


def test_irregular_times_are_resampled_to_the_truth():
    """x = t² has speed 2t; straight lines are right to the square of the step, and the control's effect is kept."""
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.005, 0.015, 1000))
    columns = {"time": time, "x": time**2, "v": 2 * time, "u": np.cos(time)}
    recording = record(columns, PLAIN)
    (states,), (controls,) = recording.states, recording.controls
    grid = time[0] + 0.1 * np.arange(len(states))
    assert np.allclose(states, np.stack([grid**2, 2 * grid], axis=1), atol=1e-4)
    assert np.allclose(controls[:, 0], np.diff(np.sin(grid)) / 0.1, atol=0.02)
    assert "resampled" in recording.notes[0]
    with pytest.raises(UserError, match="let irregular be resample"):
        record(columns, declaration(irregular="refuse"))


def test_even_times_are_left_alone_even_if_they_drift():
    time = 1000.0 + np.arange(25) * 0.1005
    recording = record(run({}) | {"time": time}, declaration(irregular="refuse"))
    assert np.array_equal(recording.states[0][:, 0], run({})["x"]) and not recording.notes


@given(st.floats(-20.0, 20.0), st.integers(0, 1000), st.sampled_from(["rad", "deg", "turn"]), st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_wrapped_angle_is_unwrapped(start, seed, unit, positive):
    truth = start + np.cumsum(np.random.default_rng(seed).uniform(-2.0, 2.0, 60))
    turn = {"rad": 2 * np.pi, "deg": 360.0, "turn": 1.0}[unit]
    shown = truth / (2 * np.pi) * turn
    wrapped = shown % turn if positive else (shown + turn / 2) % turn - turn / 2
    setting = declaration(angles=["x"], units={"x": unit})
    found = record({"x": wrapped, "v": np.zeros(60), "u": np.zeros(60)}, setting).states[0][:, 0]
    assert np.allclose(np.diff(found), np.diff(truth))
    assert np.allclose(np.cos(found), np.cos(truth)) and np.allclose(np.sin(found), np.sin(truth), atol=1e-6)


def test_an_angle_that_leaves_its_turn_is_not_unwrapped():
    """Four radians a sample: only a file that is not wrapped can say so."""
    fast = {"x": 4.0 * np.arange(20), "v": np.full(20, 40.0), "u": np.zeros(20)}
    assert np.array_equal(record(fast, declaration(angles=["x"])).states[0][:, 0], fast["x"])


def test_an_outlier_is_named_by_row():
    columns = changed("v", 12, 50.0)
    with pytest.raises(UserError, match=r"The trajectory has an outlier: v in row 13 leaps .* \(first 50\); mend it"):
        record(columns, PLAIN)
    dropped = record(columns, declaration(outliers="drop"))
    assert [len(piece) for piece in dropped.states] == [12, 12] and "dropped" in dropped.notes[0]
    kept = record(columns, declaration(outliers="keep"))
    assert kept.states[0][12, 1] == 50.0 and "kept" in kept.notes[0]


@pytest.mark.parametrize("name", ["cartpole", "pendubot", "cart_double_pole"])
def test_no_trajectory_of_the_papers_tasks_has_outliers(name):
    config = load(name)
    task_set, simulator = TaskSet(config), LocalSimulator(config)
    tasks = task_set.test()
    states = simulator.domain.simulate(
        tasks.parameters, tasks.starts, np.repeat(simulator.signal[None], len(tasks), axis=0)
    )
    setting = declaration(states=list(simulator.domain.states), angles=list(simulator.domain.angles))
    for trajectory in states:
        columns = dict(zip(simulator.domain.states, trajectory.T, strict=True)) | {"u": np.zeros(len(trajectory))}
        recording = record(columns, setting)
        unbounded = np.abs(trajectory[:, simulator.angles]).max() > 2 * np.pi + 0.01
        if unbounded:
            assert np.array_equal(recording.states[0], trajectory)


def test_a_unit_behind_a_name_must_be_the_declared_one():
    setting = declaration(angles=["x"], units={"x": "deg", "v": "m/s"})
    columns = run({})
    named = {"x [deg]": columns["x"], "v (m/s)": columns["v"], "u [N]": columns["u"]}
    assert np.allclose(record(named, setting).states[0][:, 0], np.radians(columns["x"]))
    with pytest.raises(UserError, match="has x in rad, but deg was declared"):
        record({**_without(named, "x [deg]"), "x [rad]": columns["x"]}, setting)


def _without(columns, name):
    return {key: value for key, value in columns.items() if key != name}


@pytest.mark.parametrize(
    "columns, message",
    [
        (changed("x", 4, "abc"), "has x = 'abc' in row 5, which is not a number"),
        (changed("x", 4, "1,5"), "has x = '1,5' in row 5"),
        (changed("x", 4, np.inf), "has x = inf in row 5; nothing beyond 1e.09"),
        (changed("x", 4, 1e20), r"has x = 1e\+20 in row 5"),
        (_without(run({}), "v"), "has no column v; it has x, u"),
        ({**_without(run({}), "v"), "vv": np.zeros(25)}, "has no column v; the nearest is vv"),
        ({**run({}), "u": np.zeros(24)}, "columns of different lengths: 24 rows of u, 25 of x"),
        ({**run({}), "u": np.zeros((25, 2))}, "u should be one column"),
        ({**run({}), "u": np.zeros(25, complex)}, "has u as complex128, but it should be numbers"),
        ({**run({}), "x ": np.zeros(25)}, "two columns of x"),
        ({**run({}), "time": np.arange(25) * 0.2}, "typically 0.2 s apart, but dt is 0.1 s"),
        ({**run({}), "time": np.zeros(25)}, "has time = 0 in row 2, which is not after the row before it"),
        (changed("time", 3, np.nan, run({}) | {"time": np.arange(25) * 0.1}), "has no time in row 4"),
        (
            {name: column[:1] for name, column in run({}).items()},
            "no two samples in a row that could be used, of 1 rows",
        ),
        (
            {name: column[:0] for name, column in run({}).items()},
            "no two samples in a row that could be used, of 0 rows",
        ),
        ({**run({}), "x": np.full(25, np.nan)}, "no two samples .* rows 1, 2, 3, 4, 5 and 20 more had missing values"),
        ({name: np.zeros(10_002) for name in "xvu"}, "has 10001 steps of 0.1 s, and more than 10000"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(columns, message):
    with pytest.raises(UserError, match=message) as refused:
        record(columns, PLAIN)
    assert "the trajectory" in str(refused.value).lower() and str(refused.value).endswith(".")


@pytest.mark.parametrize(
    "name, contents, message",
    [
        ("wide.csv", ",".join(f"c{k}" for k in range(30_000)) + ",c0", "has 30001 columns, and more than 10000"),
        ("twice.csv", ",".join(f"c{k}" for k in range(9_000)) + ",c0", "has two columns named 'c0'"),
        ("spaces.csv", f"a{' ' * 5_000}b,x,v\n1,2,3", "has no column u"),
        ("long.csv", "x,v,u\n" + "1,2,3\n" * 50_001, "has more than 50000 rows"),
        ("split.csv", "trajectory,x,v,u\n" + "".join(f"{k},1,2,3\n" for k in range(20_000)), "has 20000 trajectories"),
        ("large.csv", "x" * 1_000_001, "cannot be read: it has more than 1 MB"),
        ("huge.npz", claiming(10**12), "claims to be larger than the memory"),
        ("endless.npz", claiming(10**30), "claims to be larger than the memory"),
        ("bomb.npz", claiming(250_000, bytes(2_000_000)), "unpacked it has more than 2 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)
@pytest.mark.timeout(20)
def test_absurd_files_are_refused_before_they_cost_time_or_memory(tmp_path, monkeypatch, name, contents, message):
    for limit, value in {"LARGEST": 10**6, "UNPACKED": 2 * 10**6, "MOST_ROWS": 50_000}.items():
        monkeypatch.setattr(tables, limit, value)
    (tmp_path / name).write_bytes(contents.encode() if isinstance(contents, str) else contents)
    begin = time.process_time()
    with pytest.raises(UserError, match=message):
        record(tmp_path / name, PLAIN)
    assert time.process_time() - begin < 5


def test_files_that_cannot_be_read_are_refused_with_a_sentence(tmp_path):
    for name, contents in (("a.csv", b""), ("b.npz", b"PK\3\4"), ("c.parquet", b"PAR1"), ("d.csv", b"\xff\xfe\0")):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(UserError, match=name):
            record(tmp_path / name, PLAIN)
    with pytest.raises(UserError, match=r"e.csv cannot be read: No such file"):
        record(tmp_path / "e.csv", PLAIN)
    with pytest.raises(UserError, match=r"should be a file that ends in .csv, .npz, .parquet"):
        record(tmp_path / "e.xlsx", PLAIN)
    np.savez(tmp_path / "f.npz", x=np.array([object()]), v=[1], u=[1])
    with pytest.raises(UserError, match="not an npz file of plain arrays"):
        record(tmp_path / "f.npz", PLAIN)
