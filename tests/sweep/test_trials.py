import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest

from distpaml.catalogue import METHODS
from distpaml.config import shipped
from distpaml.config.yaml_text import read
from distpaml.errors import UserError
from distpaml.select.utilities import UTILITIES
from distpaml.sweep.load import load_sweep, shipped_sweeps, to_yaml
from distpaml.sweep.trials import grid_trials, sample_trial, search_corners


def sweep(tmp_path, text, *overrides):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load_sweep(file, overrides)


def names(parts):
    return [trial.name for trial in grid_trials(parts)]


def test_a_grid_is_every_combination_under_a_name_of_its_own(tmp_path):
    parts = sweep(tmp_path, "methods: [uni, lhs]\nseeds: 2\ngrid: {model.inducing: [10, 20]}\noverrides: {rounds: 1}")
    trials = grid_trials(parts)
    assert len(trials) == len({trial.name for trial in trials}) == 8
    assert trials[0].name == "cartpole-uni-model.inducing=10-seed0"
    config = trials[-1].runs["cartpole-lhs-model.inducing=20-seed1"]
    assert (config.method, config.model.inducing, config.seed, config.rounds) == ("lhs", 20, 1, 1)


def test_an_experiment_is_read_once_for_all_its_trials(tmp_path, monkeypatch):
    reads = []
    monkeypatch.setattr(import_module("distpaml.config.load"), "read", lambda path: reads.append(path) or read(path))
    assert len(names(sweep(tmp_path, "experiments: [cartpole, pendubot]\nmethods: [uni, lhs]\nseeds: 3"))) == 12
    assert [path.stem for path in reads] == ["cartpole", "pendubot"]


def test_nested_keys_are_dotted_keys(tmp_path):
    nested = sweep(tmp_path, "overrides: {model: {inducing: 7}}\ngrid: {fit: {restarts: [1, 2]}}")
    assert nested == sweep(tmp_path, "overrides: {model.inducing: 7}\ngrid: {fit.restarts: [1, 2]}")
    assert {config.model.inducing for trial in grid_trials(nested) for config in trial.runs.values()} == {7}


def test_an_override_is_a_key_of_the_sweep_or_of_every_experiment(tmp_path):
    (part,) = sweep(tmp_path, "seeds: 2", "seeds=[4, 7]", "rounds=3", "grid.model.inducing=[5]", "retries=0")
    assert part.seeds == (4, 7) and part.overrides == {"rounds": 3} and part.grid == {"model.inducing": (5,)}
    assert part.retries == 0


def test_more_seeds_only_add_trials(tmp_path):
    before, after = (names(sweep(tmp_path, "methods: [uni, lhs]", f"seeds={n}")) for n in (2, 5))
    assert set(before) < set(after) and len(after) == 10


@pytest.mark.parametrize("name", shipped_sweeps())
def test_every_shipped_sweep_makes_valid_experiments(name):
    parts = load_sweep(name)
    if parts[0].search:
        assert len(search_corners(parts[0])) == 3
        return
    trials = grid_trials(parts)
    assert trials and load_sweep(name, ["seeds=1"]) != parts
    if name not in ("quickstart", "paper", "presets", "released", "league"):
        assert parts[0].experiments == (name,) and len(parts[0].seeds) == 10
        (config, *_) = trials[0].runs.values()
        assert config.rounds == 15 and config.model.inducing == "auto"


def test_the_league_has_every_utility_and_the_baselines_once():
    configs = [config for trial in grid_trials(load_sweep("league")) for config in trial.runs.values()]
    assert len(configs) == 3 * 4 * (len(UTILITIES) + 2)
    chosen = [config.selection.utility for config in configs if config.method == "paml-pool"]
    assert set(chosen) == UTILITIES.keys() and len(chosen) == 3 * 4 * len(UTILITIES)
    assert {config.method for config in configs} == {"paml-pool", "uni", "lhs"}
    assert {(config.seed, config.rounds) for config in configs} == {(seed, 10) for seed in (20, 21, 22, 23)}


def test_the_paper_is_all_six_experiments(tmp_path):
    assert {name for part in load_sweep("paper") for name in part.experiments} == set(shipped())
    trials = grid_trials(load_sweep("paper"))
    presets = Counter(config.model.preset for trial in trials for config in trial.runs.values())
    assert presets == {"distpaml": 5 * 4 * 10 + 3 * 10, "paper": 5 * 4 * 10}
    assert len(grid_trials(load_sweep("paper", ["seeds=2", "rounds=1"]))) == 2 * (2 * 5 * 4 + 3)


def test_the_quickstart_compares_every_method():
    (part,) = load_sweep("quickstart")
    assert set(part.methods) == set(METHODS) and len(part.seeds) == 2


@pytest.mark.parametrize("name", ["quickstart", "paper", "search_model"])
def test_what_is_written_is_read_back(tmp_path, name):
    parts = load_sweep(name, ["rounds=2"])
    assert sweep(tmp_path, to_yaml(parts)) == parts


def test_a_sample_is_the_same_values_for_every_seed():
    (part,) = load_sweep("search_model")
    values = {"model.inducing": 60, "selection.utility": "surprisal"}
    trial = sample_trial(part, 7, values)
    assert list(trial.runs) == [f"sample007-seed{seed}" for seed in range(3)]
    assert {config.model.inducing for config in trial.runs.values()} == {60}
    assert {config.seed for config in trial.runs.values()} == {0, 1, 2}


SEARCH = "search: {space: {model.inducing: {low: 10, high: 20}}}\n"


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        ("seads: 2", (), "seads.*nearest is seeds"),
        ("seeds: 0", (), "seeds is 0"),
        ("methods: [pamll]", (), "method is 'pamll'.*nearest is paml"),
        ("overrides: {model.inducin: 3}", (), "model.inducin.*nearest is model.inducing"),
        ("overrides: {seed: 3}", (), "seeds"),
        ("grid: {method: [uni]}", (), "methods"),
        ("grid: {model.inducing: 3}", (), "grid.model.inducing is 3 but should be a list"),
        ("experiments: [cartpol]", (), "nearest is cartpole"),
        ("seeds: 2", ("seed=3",), "seeds=\\["),
        ("seeds: 2", ("rounds",), "dotted.key=value"),
        ("include: []", (), "include"),
        ("include: [nothing.yaml]", (), "nothing.yaml cannot be read"),
        (SEARCH, (), "seeds is null but should be at least 2 in a search"),
        (SEARCH + "seeds: 2\nmethods: [uni, lhs]", (), "one method"),
        (SEARCH + "seeds: 2\ngrid: {rounds: [1, 2]}", (), "should replace the grid"),
        ("seeds: 2\nsearch: {space: {model.inducing: {low: 10}}}", (), "low and high"),
        (
            "seeds: 2\nsearch: {space: {model.inducing: {low: 20, high: 10}}}",
            (),
            "low is 20 but should be below high=10",
        ),
        (
            "seeds: 2\nsearch: {space: {model.inducing: {low: 0, high: 10, log: true}}}",
            (),
            "low is 0 but should be positive",
        ),
        ("seeds: 2\nsearch: {space: {model.inducing: {low: 0, high: 10}}}", (), "model.inducing is 0"),
        (SEARCH + "seeds: 2\noverrides: {runtime.kind: ray}", (), "should be local, not ray"),
        ("seeds: 2\nsearch: {space: {nonsense: {choices: [1]}}}", (), "nonsense"),
        ("seeds: 200000", (), "seeds is 200000 but should be at most 10000"),
        ("seeds: 2", ("seeds=1000000000",), "In override 'seeds=1000000000', seeds is 1000000000"),
        ("methods: [uni, lhs]\nseeds: 9999", (), "more than 10000 runs"),
        (f"grid: {{{', '.join(f'model.k{i}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]' for i in range(9))}}}", (), "10000 runs"),
        (f"grid: {{{', '.join(f'k{i}: [0, 1]' for i in range(30_000))}}}", (), "10000 runs"),
        (SEARCH + "seeds: 2", ("search.samples=1000000000",), "10000 runs"),
        (f"seeds: 2\nsearch: {{space: {{seed: {{choices: {list(range(9_999))}}}}}}}", (), "10000 runs"),
        (f"grid: {{name: [{'x' * 300}]}}", (), "has .* characters, but the name of a folder may have 200"),
        ("parts: []", (), "parts is \\[\\] but should be a list of sweeps"),
        ("parts: [1]", (), "parts is \\[1\\] but should be a list of sweeps"),
        ("parts: {}", (), "parts is {} but should be"),
        ("parts: [{seads: 2}, {seeds: 3}]", (), "nearest is seeds"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, text, overrides, said):
    with pytest.raises(UserError, match=said) as raised:
        parts = sweep(tmp_path, text, *overrides)
        search_corners(parts[0]) if parts[0].search else grid_trials(parts)
    assert "\n" not in str(raised.value)


def test_parts_without_a_name_are_called_like_their_file_and_share_what_stands_beside_them(tmp_path):
    parts = sweep(tmp_path, "quick: true\nparts: [{seeds: 2}, {methods: [uni]}]")
    assert [(part.name, part.quick, len(part.seeds)) for part in parts] == [("mine", True, 2), ("mine", True, 1)]


def test_a_sweep_with_too_long_a_name_is_not_found():
    with pytest.raises(UserError, match="neither a file nor a shipped sweep"):
        load_sweep("x" * 5000)


def test_a_sweep_is_read_without_ray_and_optuna():
    program = "import sys, distpaml.sweep.__main__\nprint([name for name in ('ray', 'optuna') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
