"""The config keeps what it is given, knows the paper's values and refuses everything else in one sentence."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from distpaml.config import Experiment, load, shipped
from distpaml.config.load import QUICK
from distpaml.config.sentences import dotted_keys
from distpaml.errors import UserError

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
        "cartpole",
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
}


@pytest.mark.parametrize("name", PAPER)
def test_shipped_experiments_have_the_papers_values(name):
    domain, box, limit, alternations, initial, steps, kind = PAPER[name]
    experiment = load(name)
    assert experiment.name == name
    assert (experiment.domain.name, experiment.domain.reading) == (domain, "text")
    assert experiment.domain.box == box
    assert list(experiment.domain.box) == list(box)
    assert (experiment.domain.control_limit, experiment.domain.alternations) == (limit, alternations)
    assert (experiment.initial, experiment.rounds, experiment.domain.steps) == (initial, 15, 100)
    assert (experiment.fit.steps, experiment.fit.learning_rate) == (steps, 1e-2)
    assert (experiment.model.latent, experiment.model.inducing) == (2, 300)
    assert (experiment.selection.per_dimension, experiment.selection.slack) == (100, 10)
    assert (experiment.evaluation.grid, experiment.evaluation.steps) == (10, 100)
    assert (experiment.method, experiment.descriptor.kind) == ("paml", kind)
    assert experiment.descriptor.hidden == (("pole_mass",) if kind == "partial" else ())
    assert experiment.descriptor.superfluous == ({"epsilon": (0.5, 5)} if kind == "noisy" else {})
    assert experiment.descriptor.neutral == 1


def test_every_shipped_experiment_is_in_the_table_and_the_defaults_are_the_first():
    assert set(shipped()) == set(PAPER)
    assert load() == Experiment() == load("cartpole")


def test_domain_fills_what_is_missing_and_a_written_config_says_it():
    experiment = load(None, ["domain.name=pendubot", "domain.box.lower_length=[1, 2]"])
    assert experiment.domain.box == {"upper_length": (0.6, 3.0), "lower_length": (1.0, 2.0)}
    assert (experiment.domain.control_limit, experiment.domain.alternations) == (10, 5)
    assert experiment.name == "pendubot"
    assert "upper_length: [0.6, 3.0]" in experiment.to_yaml()


intervals = st.tuples(
    st.floats(1e-3, 1e3, allow_subnormal=False), st.floats(1e-3, 1e3, allow_subnormal=False)
).filter(lambda pair: pair[0] < pair[1])
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
experiments = st.builds(
    lambda **values: Experiment.model_validate(values),
    name=texts,
    method=st.sampled_from(["paml", "paml-set", "uni", "lhs", "oracle"]),
    seed=st.integers(0, 10**30),
    initial=st.integers(1, 10**6),
    out=st.none() | texts,
    domain=st.fixed_dictionaries(
        {},
        optional={
            "box": st.fixed_dictionaries({}, optional={"pole_mass": intervals, "pole_length": intervals})
        },
    ),
    descriptor=st.sampled_from(
        [{"kind": "full"}, {"kind": "partial", "hidden": ["pole_length"]}, {"kind": "noisy"}]
    ),
    fit=st.fixed_dictionaries({"learning_rate": st.floats(1e-300, 1e300), "tolerance": st.floats(1e-12, 1)}),
    selection=st.fixed_dictionaries(
        {"choices": st.none() | st.lists(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), min_size=1)}
    ),
    evaluation=st.fixed_dictionaries({"shots": st.lists(st.integers(0, 99))}),
)


@given(experiments)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_yaml_round_trip_loses_nothing(experiment):
    again = Experiment.from_yaml(experiment.to_yaml())
    assert again == experiment
    assert again.to_yaml() == experiment.to_yaml()


def test_yaml_round_trip_through_a_file(tmp_path):
    experiment = load("cartpole_noisy", ["seed=7", "out=runs/ü"])
    path = tmp_path / "config.yaml"
    path.write_text(experiment.to_yaml(), encoding="utf-8")
    assert Experiment.from_yaml(path) == load(str(path)) == load(path) == experiment


@given(
    st.sampled_from(
        ["initial", "model.inducing", "fit.steps", "selection.batch", "evaluation.steps", "runtime.threads"]
    ),
    st.integers(1, 10**9),
)
def test_an_override_is_read_back_and_changes_nothing_else(key, value):
    changed, plain = load(None, [f"{key}={value}"]).model_dump(), Experiment().model_dump()
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
        ("name=no", lambda e: e.name, "no"),
        ("name='1e-2'", lambda e: e.name, "1e-2"),
        ("out=a=b", lambda e: e.out, "a=b"),
        ("out=null", lambda e: e.out, None),
        ("selection.utility=mine:score", lambda e: e.selection.utility, "mine:score"),
        ("selection.candidates=descriptor-set", lambda e: e.selection.candidates, "descriptor-set"),
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
    assert (quick.rounds, quick.model.inducing, quick.evaluation.grid) == (
        QUICK["rounds"],
        QUICK["model.inducing"],
        QUICK["evaluation.grid"],
    )
    assert quick.domain == load("pendubot").domain
    assert load("pendubot", ["rounds=9"], quick=True).rounds == 9
    assert set(QUICK) <= set(dotted_keys(Experiment))


def test_quick_does_not_enlarge(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text("rounds: 0\nmodel: {inducing: 7}")
    assert (load(path, quick=True).rounds, load(path, quick=True).model.inducing) == (0, 7)


def test_an_experiment_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Experiment().seed = 3
    with pytest.raises(ValidationError, match="frozen"):
        Experiment().model.inducing = 3


BAD_OVERRIDES = [  # overrides → what the sentence must contain
    (["model.inducng=5"], ["model.inducng", "5", "not a key", "nearest is model.inducing"]),
    (["inducing=5"], ["inducing (here 5)", "nearest is model.inducing"]),
    (["steps=5"], ["nearest is domain.steps, fit.steps or evaluation.steps"]),
    (["model.zzqqzz=5"], ["model.zzqqzz", "valid are model.latent, model.inducing"]),
    (["zzqqzz=5"], ["zzqqzz", "valid are method, seed", "and runtime"]),
    (["model.inducing=many"], ["model.inducing is 'many'", "whole number"]),
    (["model.inducing=2.5"], ["model.inducing is 2.5", "whole number"]),
    (["model.inducing=true"], ["model.inducing is true", "whole number"]),
    (["model.inducing=-3"], ["model.inducing is -3", "greater than or equal to 1"]),
    (["model.inducing=null"], ["model.inducing is null", "whole number"]),
    (["model=3"], ["model is 3", "section"]),
    (["seed=-1"], ["seed is -1", "greater than or equal to 0"]),
    (["seed.x=1"], ["'seed.x=1'", "seed is {'x': 1}", "whole number"]),
    (["seed=" + "9" * 5000], ["cannot be read"]),
    (["initial=0"], ["initial is 0", "greater than or equal to 1"]),
    (["method=pamll"], ["method is 'pamll'", "paml-set", "nearest is paml"]),
    (["method=[paml]"], ["method is ['paml']", "paml-set"]),
    (["fit.tolerance=.nan"], ["fit.tolerance is nan", "finite"]),
    (["selection.slack=.inf"], ["selection.slack is inf", "finite"]),
    (["fit.learning_rate=1e999"], ["fit.learning_rate is inf", "finite"]),
    (["fit.learning_rate='1e-2'"], ["fit.learning_rate is '1e-2'", "number"]),
    (["fit.learning_rate=false"], ["fit.learning_rate is false", "number"]),
    (["name=3"], ["name is 3", "text"]),
    (["name=''"], ["name is ''", "not be empty"]),
    (["domain.name=pendubt"], ["domain.name is 'pendubt'", "pendubot"]),
    (["domain.name=no_such_module:Arm"], ["domain.name", "no_such_module"]),
    (["domain.reading=txt"], ["domain.reading is 'txt'", "text or released", "nearest is text"]),
    (["domain.box.pole_mass=[5, 0.5]"], ["domain.box.pole_mass is [5, 0.5]", "low < high"]),
    (["domain.box.pole_mass=[1, 1]"], ["domain.box.pole_mass is [1, 1]", "low < high"]),
    (["domain.box.pole_mass=[1, .inf]"], ["domain.box.pole_mass is [1, inf]", "finite"]),
    (["domain.box.pole_mass=[.nan, 1]"], ["domain.box.pole_mass is [nan, 1]", "finite"]),
    (["domain.box.pole_mass=[false, true]"], ["domain.box.pole_mass is [False, True]", "two finite numbers"]),
    (["domain.box.pole_mass=[1, 2, 3]"], ["domain.box.pole_mass is [1, 2, 3]", "[low, high]"]),
    (["domain.box.pole_mass=3"], ["domain.box.pole_mass is 3", "[low, high]"]),
    (["domain.box.pole_mass=[-1, 2]"], ["domain.box.pole_mass is [-1, 2]", "positive"]),
    (["domain.box.pole_mas=[1, 2]"], ["domain.box.pole_mas", "nearest is domain.box.pole_mass"]),
    (["domain.box=3"], ["domain.box is 3", "mapping"]),
    (["domain.steps=1"], ["domain.steps is 1", "greater than or equal to 2"]),
    (["descriptor.kind=ful"], ["descriptor.kind is 'ful'", "nearest is full"]),
    (["descriptor.kind=partial"], ["descriptor.hidden is []", "at least one"]),
    (["descriptor.kind=partial", "descriptor.hidden=[pole_mas]"], ["'pole_mas'", "nearest is pole_mass"]),
    (
        ["descriptor.kind=partial", "descriptor.hidden=[pole_mass, pole_length]"],
        ["descriptor.hidden is ['pole_mass', 'pole_length']", "to be shown"],
    ),
    (["descriptor.kind=partial", "descriptor.hidden=[pole_mass, pole_mass]"], ["descriptor.hidden", "once"]),
    (
        ["descriptor.kind=partial", "descriptor.hidden=pole_mass"],
        ["descriptor.hidden is 'pole_mass'", "list"],
    ),
    (["descriptor.hidden=[pole_mass]"], ["descriptor.hidden is ['pole_mass']", "empty", "'full'"]),
    (["descriptor.superfluous.e=[1, 2]"], ["descriptor.superfluous is {'e': [1, 2]}", "empty", "'full'"]),
    (
        ["descriptor.kind=noisy", "descriptor.superfluous={}"],
        ["descriptor.superfluous is {}", "at least one"],
    ),
    (
        ["descriptor.kind=noisy", "descriptor.superfluous={1: [1, 2]}"],
        ["descriptor.superfluous", "is 1", "text"],
    ),
    (
        ["descriptor.kind=noisy", "descriptor.superfluous={pole_mass: [1, 2]}"],
        ["descriptor.superfluous.pole_mass", "like a task parameter"],
    ),
    (["descriptor.kind=noisy", "descriptor.neutral=9"], ["descriptor.neutral is 9", "[0.5, 5.0]"]),
    (["selection.choices=[[1, 2], [3]]"], ["selection.choices is [[1, 2], [3]]", "equally long"]),
    (["selection.choices=[]"], ["selection.choices is []", "at least one row"]),
    (["selection.choices=[[1, a]]"], ["selection.choices[0][1] is 'a'", "number"]),
    (["evaluation.shots=[100]"], ["evaluation.shots is [100]", "99 transitions"]),
    (["evaluation.grid=1"], ["evaluation.grid is 1", "greater than or equal to 2"]),
    (["seed"], ["'seed'", "dotted.key=value"]),
    (["=3"], ["'=3'", "dotted.key=value"]),
    (["model..inducing=3"], ["'model..inducing=3'", "dotted.key=value"]),
    (["domain.box=[1,"], ["'domain.box=[1,'", "not valid YAML"]),
    (["name=!!python/object:os.system x"], ["not valid YAML"]),
    (["seed=\udcff"], ["not valid YAML"]),
    (["seed=" + "[" * 1500], ["nested too deeply"]),
    (["seed=-1", "model.inducing=0", "foo=1"], ["seed is -1", "2 more errors"]),
]


@pytest.mark.parametrize(("overrides", "fragments"), BAD_OVERRIDES)
def test_a_bad_override_is_one_sentence(overrides, fragments):
    with pytest.raises(UserError) as caught:
        load(None, overrides)
    _is_sentence_with(str(caught.value), fragments)


BAD_FILES = [  # contents → what the sentence must contain beside the file's name
    (b"", ["empty"]),
    (b"# nothing but a comment\n", ["empty"]),
    (b"- 1\n- 2\n", ["mapping", "list"]),
    (b"cartpole", ["mapping", "str"]),
    (b"seed: [1\n", ["not valid YAML", "line 2"]),
    (b"seed: 1\nmodel: {}\nseed: 2\n", ["'seed' appears twice", "line 3"]),
    (b"model: {inducing: 1, 'inducing': 2}\n", ["'inducing' appears twice"]),
    (b"seed: 1\n---\nseed: 2\n", ["not valid YAML"]),
    (b"name: \xff\xfe\n", ["UTF-8", "byte 6"]),
    (b"name: \x00\n", ["not valid YAML"]),
    (b"1: 2\n", ["1", "text"]),
    (b"? [a]\n: 2\n", ["not valid YAML"]),
    (b"model:\n", ["model is null", "section"]),
    (b"seed: &a [*a]\n", ["seed", "whole number"]),
    (b"model: " + b"{a: " * 2000, ["nested too deeply"]),
    (b"model: {inducng: 300}\n", ["model.inducng (here 300)", "nearest is model.inducing"]),
    (b"method: unii\nseed: x\n", ["method is 'unii'", "nearest is uni", "1 more error"]),
    (b"#" * 1_000_001, ["bytes", "too much"]),
]


@pytest.mark.parametrize(("contents", "fragments"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_file_is_one_sentence(tmp_path, contents, fragments):
    path = tmp_path / "mine.yaml"
    path.write_bytes(contents)
    for quick in (False, True):
        with pytest.raises(UserError) as caught:
            load(str(path), quick=quick)
        _is_sentence_with(str(caught.value), [str(path), *fragments])


def test_files_that_are_not_there(tmp_path):
    for config, fragments in [
        ("cartpol", ["'cartpol'", "neither a file nor", "nearest is cartpole"]),
        ("zzqq", ["'zzqq'", "pendubot"]),
        (tmp_path / "none.yaml", ["none.yaml", "neither"]),
        (tmp_path, [str(tmp_path), "not a file"]),
        ("/dev/zero", ["/dev/zero", "not a file"]),
        ("x\0y", ["neither"]),
        ("n" * 5000, ["neither"]),
    ]:
        with pytest.raises(UserError) as caught:
            load(config)
        _is_sentence_with(str(caught.value), fragments)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        Experiment.from_yaml(tmp_path / "none.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text("seed: 1")
    path.chmod(0)
    with pytest.raises(UserError, match=r"secret.yaml cannot be read: Permission denied"):
        load(path)


def test_the_sentence_names_who_wrote_the_key(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("seed: -1\n")
    for overrides, writer in [
        ([], "mine.yaml"),
        (["rounds=1"], "mine.yaml"),
        (["seed=-2"], "override 'seed=-2'"),
    ]:
        with pytest.raises(UserError, match=writer):
            load(path, overrides)


def test_every_key_is_documented():
    models = [
        Experiment,
        *(f.annotation for f in Experiment.model_fields.values() if hasattr(f.annotation, "model_fields")),
    ]
    for model in models:
        for name, field in model.model_fields.items():
            assert field.description or field.annotation.__doc__.strip(), f"{model.__name__}.{name}"


def test_the_command_prints_yaml_or_one_sentence_within_two_seconds():
    command = [sys.executable, "-m", "distpaml.config"]
    printed = subprocess.run(
        [*command, "pendubot", "seed=3"], capture_output=True, text=True, check=True
    ).stdout
    assert Experiment.from_yaml(printed) == load("pendubot", ["seed=3"])

    started = time.monotonic()
    failed = subprocess.run([*command, "cartpole", "model.inducng=5"], capture_output=True, text=True)
    assert time.monotonic() - started < 2
    assert (failed.returncode, failed.stdout, len(failed.stderr.splitlines())) == (2, "", 1)
    assert "model.inducing" in failed.stderr


def test_config_needs_neither_torch_nor_ray_nor_scipy():
    script = "import sys, distpaml.config, distpaml.data, distpaml.descriptors, distpaml.designs;"
    script += "print([m for m in ('torch', 'ray', 'scipy') if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert run.stdout.strip() == "[]", run.stderr


def _is_sentence_with(text: str, fragments: list[str]) -> None:
    assert text.endswith(".") and "\n" not in text and len(text) < 400
    for fragment in fragments:
        assert fragment in text
