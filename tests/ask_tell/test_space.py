"""Kinds of descriptors, lists, constraints, costs and images."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spring import claiming, declared, run

from distpaml import Experiment
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.ranking import gain_per_cost
from distpaml.ask_tell.space import Space, settled
from distpaml.errors import UserError

MIXED = {
    "mass": [1.0, 2.0],
    "screws": {"integers": [1, 8]},
    "wheel": {"categories": ["rubber", "steel", "wood"]},
}


@pytest.fixture(autouse=True)
def plugins(tmp_path, monkeypatch):
    (tmp_path / "rules.py").write_text(
        "def light(mass, screws, wheel):\n    return mass < 1.5 and (wheel != 'steel' or screws > 4)\n"
        "def never(**parts):\n    return False\n"
        "def minutes(mass, screws, wheel):\n    return 100.0 if wheel == 'steel' else 1.0\n"
        "def free(**parts):\n    return 0\n"
        "def broken(mass):\n    return True\n"
        "def negative(candidates, known):\n"
        "    from distpaml.select.surprisal import surprisal\n"
        "    return surprisal(candidates, known) - 1e12\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def space(**changes):
    return Space(settled(Declaration.of(declared(**changes))))


def test_candidates_fill_every_dimension_and_are_numbers_in_minus_one_to_one():
    mixed = space(descriptors=MIXED, selection={"pool_size": 500})
    rows = mixed.candidates
    assert len(rows) == 500 == len({tuple(row.values()) for row in rows})
    assert {row["screws"] for row in rows} == set(range(1, 9))
    assert {row["wheel"] for row in rows} == {"rubber", "steel", "wood"}
    encoded = mixed.encode(rows)
    assert encoded.shape == (500, 5) and np.abs(encoded).max() <= 1.0
    assert np.array_equal(np.sort(encoded[:, 2:], axis=1), np.tile([-1.0, -1.0, 1.0], (500, 1)))
    for place in range(10):  # the first of them are spread evenly too
        inside = [1.0 + place / 10 <= row["mass"] < 1.1 + place / 10 for row in rows[:100]]
        assert 7 <= sum(inside) <= 13


def test_finite_dimensions_are_listed():
    finite = space(descriptors={"screws": MIXED["screws"], "wheel": MIXED["wheel"]})
    assert len(finite.candidates) == 24 == len({tuple(row.values()) for row in finite.candidates})


def test_a_constraint_is_kept():
    rows = space(descriptors=MIXED, constraint="rules:light", selection={"pool_size": 300}).candidates
    assert len(rows) == 300
    assert all(row["mass"] < 1.5 and (row["wheel"] != "steel" or row["screws"] > 4) for row in rows)


def test_a_list_of_ones_own(tmp_path):
    (tmp_path / "parts.csv").write_text("wheel,mass,screws\nwood,1.5,3\nsteel,1.0,8\nwood,1.5,3\n")
    for choices in ("parts.csv", [[1.5, 3, "wood"], [1.0, 8, "steel"]]):
        rows = space(descriptors=MIXED, choices=choices).candidates
        assert sorted(row["mass"] for row in rows) == [1.0, 1.5]
    experiment = Experiment(declared(descriptors=MIXED, choices="parts.csv"), tmp_path / "experiment")
    (tmp_path / "parts.csv").unlink()  # the directory has it all
    assert len(Experiment.load(experiment.directory).ask(5)) == 2


def test_images_of_a_file_and_of_a_folder(tmp_path):
    from PIL import Image

    lengths = np.arange(2, 14)
    images = np.array([(np.arange(16)[:, None] < length) * np.full((16, 16), 200) for length in lengths], np.uint8)
    np.savez(tmp_path / "poles.npz", images=images, names=[f"pole-{length:02d}" for length in lengths])
    (tmp_path / "poles").mkdir()
    for length, image in zip(lengths, images, strict=True):
        Image.fromarray(image).save(tmp_path / "poles" / f"pole-{length:02d}.png")
    for source in ("poles.npz", "poles"):
        experiment = Experiment(declared(descriptors={"look": {"images": source}}), tmp_path / f"with-{source}")
        codes = experiment.space.encode([{"look": name} for name in experiment.space.dimensions["look"].names])
        assert codes.shape == (12, 3) and np.abs(codes).max() == 1.0
        assert (np.diff(codes[:, 0]) > 0).all() or (np.diff(codes[:, 0]) < 0).all()  # it has found the length
        shutil.move(source, f"old-{source}")  # the directory has it all
        assert Experiment(declared(descriptors={"look": {"images": source}}), experiment.directory).space.candidates
        for _ in range(4):
            (task,) = experiment.ask()
            experiment.tell(task.id, run({"mass": 1.0 + int(task.descriptor["look"][5:7]) / 14}))
            experiment = Experiment.load(experiment.directory)
        assert len({task.descriptor["look"] for task in experiment.status().tasks}) == 4
        assert all(task.descriptor["look"].startswith("pole-") for task in experiment.status().tasks)


def test_costly_tasks_are_avoided_whatever_the_sign_of_the_utility(tmp_path):
    descriptors = {"mass": [1.0, 2.0], "screws": {"integers": [1, 8]}, "wheel": {"categories": ["rubber", "steel"]}}
    chosen = {}
    for utility in ("surprisal", "rules:negative"):
        for cost in (None, "rules:minutes"):
            declaration = declared(
                descriptors=descriptors, cost=cost, selection={"pool_size": 64, "utility": utility}, initial=4
            )
            experiment = Experiment(declaration, tmp_path / f"{utility[-5:]}-{cost}")
            for task in experiment.ask(4):
                experiment.tell(task.id, run(task.descriptor))
            tasks = experiment.ask(6)
            chosen[utility, cost] = [task.descriptor for task in tasks]
            if cost:
                assert not any(task.descriptor["wheel"] == "steel" for task in tasks)
                assert all(task.cost == 1.0 for task in tasks)
    assert chosen["surprisal", None] == chosen["rules:negative", None]
    assert chosen["surprisal", "rules:minutes"] == chosen["rules:negative", "rules:minutes"]
    assert any(row["wheel"] == "steel" for row in chosen["surprisal", None])


NUMBERS = st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 1000)), min_size=2, max_size=20)


@given(NUMBERS, st.integers(-(10**6), 10**6))
def test_gain_per_cost(pairs, zero):
    utilities, costs = np.array(pairs, dtype=float).T
    gains = gain_per_cost(utilities, costs, zero)
    assert (gains >= 0).all()
    assert np.allclose(gain_per_cost(utilities + 1e3, costs, zero + 1e3), gains, atol=1e-6)
    even = gain_per_cost(utilities, np.ones_like(costs), zero)
    assert even.argmax() == utilities.argmax()
    dearer = costs.copy()
    dearer[gains.argmax()] *= 2.0
    assert gain_per_cost(utilities, dearer, zero)[gains.argmax()] <= gains.max()
    better = utilities.copy()
    better[gains.argmax()] += 1.0
    assert gain_per_cost(better, costs, zero).argmax() == gains.argmax()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"descriptors": {}}, "descriptors is {} but"),
        ({"descriptors": {"mass": [2.0, 1.0]}}, "two finite numbers with low < high"),
        ({"descriptors": {"mass": 3}}, "should be .low, high., .integers"),
        ({"descriptors": {"mass": {"integers": [2, 2]}}}, "two whole numbers with low < high"),
        ({"descriptors": {"wheel": {"categories": ["a", "a"]}}}, "should be different names"),
        ({"descriptors": {"look": {"images": "x" * 300}}}, "is neither a folder of images nor an npz file"),
        ({"descriptors": {"look": {"images": "nowhere"}}}, "nowhere is neither a folder of images nor an npz file"),
        ({"descriptors": {"look": {"images": "huge.npz"}}}, "an npz file .* larger than the memory"),
        ({"descriptors": {"x": [0.0, 1.0]}}, "should not use the name 'x' twice"),
        ({"states": ["time"]}, "should not use the name 'time'"),
        ({"angles": ["u"]}, "should name states only, and 'u' is none"),
        ({"units": {"x": "m", "y": "m"}}, "and 'y' is none"),
        ({"angles": ["x"], "units": {"x": "m"}}, "should be rad, deg or turn for the angle x"),
        ({"dt": 0}, "dt is 0 but should be greater than 0"),
        ({"dtt": 0.1}, "dtt .here 0.1. is not a key; the nearest is dt"),
        ({"choices": [[1.0]]}, "Row 1 of choices has 1 values, but a descriptor has 2"),
        ({"choices": [[1.0, 1.0], [5.0, 1.0]]}, "Row 2 of choices cannot be used: .* mass = 5.0"),
        ({"choices": []}, "choices has 0 rows"),
        ({"choices": "nowhere.csv"}, "nowhere.csv cannot be read"),
        ({"constraint": "rules:missing"}, "rules has no missing"),
        ({"constraint": "rules:never"}, "The constraint rules:never leaves nothing"),
        ({"constraint": "rules:broken"}, "The constraint rules:broken failed for mass = .* .TypeError"),
        ({"cost": "rules:free"}, "rules:free should give a positive number, but gives 0 for mass"),
        ({"selection": {"utility": "surprise"}}, "there is no such utility; the nearest is surprisal"),
        ({"selection": {"target": {"mas": [1, 2]}}}, "'mas', which is no numeric descriptor; the nearest is mass"),
        ({"selection": {"target": {"mass": [90, 91]}}}, "leaves none of the .* descriptors that can be asked for"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(tmp_path, changes, message):
    (tmp_path / "huge.npz").write_bytes(claiming(10**12))
    with pytest.raises(UserError, match=message):
        Experiment(declared(**changes), tmp_path / "experiment")
    assert not (tmp_path / "experiment" / "experiment.yaml").exists()


def test_a_declaration_survives_yaml():
    declaration = Declaration.of(declared(descriptors=MIXED, units={"x": "m"}, choices=[[1.5, 3, "wood"]]))
    assert Declaration.from_yaml(declaration.to_yaml(), "here") == declaration


def test_the_tasks_that_count_are_the_candidates_in_the_target():
    mixed = space(descriptors=MIXED, selection={"pool_size": 500, "target": {"mass": [1.0, 1.5], "screws": [2, 3]}})
    rows = mixed.targeted()
    inside = {i for i, row in enumerate(mixed.candidates) if 1.0 <= row["mass"] <= 1.5 and row["screws"] in (2, 3)}
    assert rows and set(rows) == inside and len(inside) < 500
    assert space(descriptors=MIXED, selection={"pool_size": 50}).targeted() == list(range(50))
