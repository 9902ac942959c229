"""The config keeps what it is given and knows the paper's values; refusals are in test_config_errors."""

import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from distpaml.config import ExperimentConfig, load, shipped
from distpaml.config.load import QUICK
from distpaml.config.validation_errors import dotted_keys

PAPER = {  # name: domain, box, control limit, alternations, initial tasks, training steps, descriptor
    "cartpole": ("cartpole", {"pole_mass": (0.5, 5), "pole_length": (0.5, 2)}, 25, 10, 3, 5000, "full"),
    "pendubot": ("pendubot", {"upper_length": (0.6, 3), "lower_length": (0.6, 3)}, 10, 5, 4, 5000, "full"),
    "cart_double_pole": (
        "cart_double_pole",
        {"inner_length": (0.5, 3), "outer_length": (0.5, 3)},
        25,
        10,
        3,
        7000,
        "full",
    ),
    "cartpole_partial": (
        "cartpole_short",
        {"pole_mass": (0.4, 3), "pole_length": (0.4, 3)},
        25,
        10,
        3,
        5000,
        "partial",
    ),
    "cartpole_noisy": (
        "cartpole",
        {"pole_mass": (0.5, 5), "pole_length": (0.5, 2)},
        25,
        10,
        4,
        5000,
        "noisy",
    ),
    "cartpole_images": ("cartpole_length", {"pole_length": (0.5, 4.5)}, 25, 10, 1, 10000, "image"),
}


@pytest.mark.parametrize("name", PAPER)
def test_shipped_experiments_have_the_papers_values(name):
    domain, box, limit, alternations, initial, steps, kind = PAPER[name]
    experiment = load(name)
    assert experiment.name == name
    assert (experiment.domain.name, experiment.domain.variant) == (domain, "paper")
    assert experiment.domain.box == box
    assert list(experiment.domain.box) == list(box)
    assert (experiment.domain.control_limit, experiment.domain.alternations) == (limit, alternations)
    assert (experiment.initial, experiment.rounds, experiment.domain.trajectory_length) == (initial, 15, 100)
    assert (experiment.fit.adam_steps, experiment.fit.learning_rate) == (steps, 2e-3 if kind == "image" else 1e-2)
    assert (experiment.model.latent, experiment.model.inducing) == (2, "auto")
    assert load(name, ["model.preset=paper"]).model.inducing == 300
    assert (experiment.selection.per_dimension, experiment.selection.slack) == (100, 10)
    assert (experiment.evaluation.grid, experiment.evaluation.inference_steps) == (25 if kind == "image" else 10, 100)
    assert (experiment.method, experiment.descriptor.kind) == ("paml-plus", kind)
    assert experiment.descriptor.hidden == (("pole_mass",) if kind == "partial" else ())
    assert experiment.descriptor.superfluous == ({"epsilon": (0.5, 5)} if kind == "noisy" else {})
    assert experiment.descriptor.neutral == 1


def test_every_shipped_experiment_is_in_the_table_and_the_defaults_are_the_first():
    assert set(shipped()) == set(PAPER)
    assert load() == ExperimentConfig() == load("cartpole")


def test_domain_fills_what_is_missing_and_a_written_config_says_it():
    experiment = load(None, ["domain.name=pendubot", "domain.box.lower_length=[1, 2]"])
    assert experiment.domain.box == {"upper_length": (0.6, 3.0), "lower_length": (1.0, 2.0)}
    assert (experiment.domain.control_limit, experiment.domain.alternations) == (10, 5)
    assert experiment.name == "pendubot"
    assert "upper_length: [0.6, 3.0]" in experiment.to_yaml()


intervals = st.tuples(st.floats(1e-3, 1e3, allow_subnormal=False), st.floats(1e-3, 1e3, allow_subnormal=False)).filter(
    lambda pair: pair[0] < pair[1]
)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(
    [
        "no",
        "null",
        "1e-2",
        "010",
        "2001-01-01",
        "<<",
        "=",
        "~",
        ".nan",
        "0x10",
        "1_000",
        "1:30",
        "- a",
        "a: b",
        "#",
        "\x85",
        "\u2028 a\n\n b",
    ]
)
names = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\."), min_size=1) | st.sampled_from(
    ["no", "null", "1e-2", "010", "2001-01-01", "<<", "=", "~", "0x10", "1_000", "1:30", "- a", "a: b", "#"]
)
experiments = st.builds(
    lambda **values: ExperimentConfig.model_validate(values),
    name=names,
    method=st.sampled_from(["paml", "paml-pool", "paml-plus", "uni", "lhs", "oracle"]),
    seed=st.integers(0, 10**30),
    initial=st.integers(1, 10**4),
    out=st.none() | texts,
    domain=st.fixed_dictionaries(
        {},
        optional={"box": st.fixed_dictionaries({}, optional={"pole_mass": intervals, "pole_length": intervals})},
    ),
    descriptor=st.sampled_from([{"kind": "full"}, {"kind": "partial", "hidden": ["pole_length"]}, {"kind": "noisy"}]),
    fit=st.fixed_dictionaries({"learning_rate": st.floats(1e-300, 1e300), "tolerance": st.floats(1e-12, 1)}),
    selection=st.fixed_dictionaries(
        {"choices": st.none() | st.lists(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), min_size=1)}
    ),
    evaluation=st.fixed_dictionaries({"shots": st.lists(st.integers(0, 98))}),
)


@given(experiments)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_yaml_round_trip_loses_nothing(experiment):
    again = ExperimentConfig.from_yaml(experiment.to_yaml())
    assert again == experiment
    assert again.to_yaml() == experiment.to_yaml()


def test_yaml_round_trip_through_a_file(tmp_path):
    experiment = load("cartpole_noisy", ["seed=7", "out=runs/ü"])
    path = tmp_path / "config.yaml"
    path.write_text(experiment.to_yaml(), encoding="utf-8")
    assert ExperimentConfig.from_yaml(path) == load(str(path)) == load(path) == experiment


@given(
    st.sampled_from(
        [
            "initial",
            "model.inducing",
            "fit.adam_steps",
            "selection.batch",
            "evaluation.inference_steps",
            "runtime.threads",
        ]
    ),
    st.integers(1, 10**4),
)
def test_an_override_is_read_back_and_changes_nothing_else(key, value):
    changed, plain = load(None, [f"{key}={value}"]).model_dump(), ExperimentConfig().model_dump()
    section, _, name = key.rpartition(".")
    assert (changed[section] if section else changed).pop(name) == value
    (plain[section] if section else plain).pop(name)
    assert changed == plain


@pytest.mark.parametrize(
    ("override", "read", "expected"),
    [
        ("fit.learning_rate=1e-2", lambda e: e.fit.learning_rate, 0.01),
        ("fit.learning_rate=2", lambda e: e.fit.learning_rate, 2.0),
        ("seed=010", lambda e: e.seed, 10),
        ("selection.pool_size=1000000", lambda e: e.selection.pool_size, 1_000_000),
        ("evaluation.grid=300", lambda e: e.evaluation.grid, 300),
        ("name='Arm, 2 links'", lambda e: e.name, "Arm, 2 links"),
        ("name=no", lambda e: e.name, "no"),
        ("name='1e-2'", lambda e: e.name, "1e-2"),
        ("out=a=b", lambda e: e.out, "a=b"),
        ("out=null", lambda e: e.out, None),
        ("selection.utility=mine:score", lambda e: e.selection.utility, "mine:score"),
        ("selection.candidates=descriptor-pool", lambda e: e.selection.candidates, "descriptor-pool"),
        ("selection.choices=[[1, 2], [3, 4.5]]", lambda e: e.selection.choices, ((1.0, 2.0), (3.0, 4.5))),
        ("evaluation.shots=[0, 10]", lambda e: e.evaluation.shots, (0, 10)),
        ("domain.box.pole_length=[1, 2]", lambda e: e.domain.box["pole_length"], (1.0, 2.0)),
        ("domain={name: pendubot}", lambda e: e.domain.control_limit, 10.0),
        (
            "descriptor={kind: noisy, superfluous: {a: [-1, 1]}}",
            lambda e: e.descriptor.superfluous,
            {"a": (-1, 1)},
        ),
    ],
)
def test_override_values_are_yaml(override, read, expected):
    value = read(load("cartpole", ["out=x", override]))
    assert value == expected and type(value) is type(expected)


def test_later_overrides_win_and_the_file_is_left_alone():
    assert load("cartpole", ["seed=1", "seed=2"]).seed == 2
    assert load("cartpole").seed == 0


def test_quick_only_shrinks_and_yields_to_overrides():
    quick = load("pendubot", quick=True)
    assert (quick.rounds, quick.model.inducing_cap, quick.evaluation.grid) == (
        QUICK["rounds"],
        QUICK["model.inducing_cap"],
        QUICK["evaluation.grid"],
    )
    assert quick.domain == load("pendubot").domain
    assert load("pendubot", ["rounds=9"], quick=True).rounds == 9
    assert set(QUICK) <= set(dotted_keys(ExperimentConfig))


def test_quick_does_not_enlarge(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text("rounds: 0\nmodel: {inducing: 7}")
    assert (load(path, quick=True).rounds, load(path, quick=True).model.inducing) == (0, 7)


def test_an_experiment_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        ExperimentConfig().seed = 3
    with pytest.raises(ValidationError, match="frozen"):
        ExperimentConfig().model.inducing = 3


def test_every_key_is_documented():
    models = [
        ExperimentConfig,
        *(f.annotation for f in ExperimentConfig.model_fields.values() if hasattr(f.annotation, "model_fields")),
    ]
    for model in models:
        for name, field in model.model_fields.items():
            assert field.description or field.annotation.__doc__.strip(), f"{model.__name__}.{name}"


def test_the_command_prints_yaml_or_one_sentence_within_two_seconds():
    command = [sys.executable, "-m", "distpaml.config"]
    printed = subprocess.run([*command, "pendubot", "seed=3"], capture_output=True, text=True, check=True).stdout
    assert ExperimentConfig.from_yaml(printed) == load("pendubot", ["seed=3"])

    started = time.monotonic()
    failed = subprocess.run([*command, "cartpole", "model.inducng=5"], capture_output=True, text=True)
    assert time.monotonic() - started < 2
    assert (failed.returncode, failed.stdout, len(failed.stderr.splitlines())) == (2, "", 1)
    assert "model.inducing" in failed.stderr


def test_config_and_data_need_no_heavy_library():
    script = "import sys, distpaml.config, distpaml.data, distpaml.descriptors, distpaml.data.designs;"
    script += "print([m for m in ('torch', 'ray', 'scipy', 'mujoco', 'dm_control') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_a_preset_sets_what_is_not_given():
    paper = load("cartpole", ["model.preset=paper", "model.noise=task"]).model
    assert (paper.inducing, paper.inducing_inputs, paper.noise) == (300, "free", "task")
    assert load("cartpole").model.preset == "distpaml"
    assert (
        ExperimentConfig.from_yaml(load("cartpole", ["model.preset=paper"]).to_yaml()).model
        == load("cartpole", ["model.preset=paper"]).model
    )
