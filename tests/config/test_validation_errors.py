"""Everything that a config refuses, each with the sentence that says so."""

import pytest

from distpaml.config import ExperimentConfig, load
from distpaml.errors import UserError

BAD_OVERRIDES = [  # overrides → what the sentence must contain
    (["model.inducng=5"], ["model.inducng", "5", "not a key", "nearest is model.inducing"]),
    (["inducing=5"], ["inducing (here 5)", "nearest is model.inducing"]),
    (["kind=5"], ["nearest is descriptor.kind, fit.kind or runtime.kind"]),
    (["model.zzqqzz=5"], ["model.zzqqzz", "valid are model.preset, model.latent, model.inducing"]),
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
    ("seed=1", ["should be a list, such as ['seed=1']"]),
    (["initial=0"], ["initial is 0", "greater than or equal to 1"]),
    (["method=pamll"], ["method is 'pamll'", "paml-pool", "nearest is paml"]),
    (["method=[paml]"], ["method is ['paml']", "should be text"]),
    (["fit.tolerance=.nan"], ["fit.tolerance is nan", "finite"]),
    (["selection.slack=.inf"], ["selection.slack is inf", "finite"]),
    (["fit.learning_rate=1e999"], ["fit.learning_rate is inf", "finite"]),
    (["fit.learning_rate='1e-2'"], ["fit.learning_rate is '1e-2'", "number"]),
    (["fit.learning_rate=false"], ["fit.learning_rate is false", "number"]),
    (["name=3"], ["name is 3", "text"]),
    (["name=''"], ["name is ''", "not be empty"]),
    (["domain.name=pendubt"], ["domain.name is 'pendubt' but there is no", "pendubot"]),
    (
        ["domain.name=no_such_module:Arm"],
        ["domain.name is 'no_such_module:Arm' but the module no_such_module cannot be imported"],
    ),
    (["domain.variant=papr"], ["domain.variant is 'papr'", "paper or code", "nearest is paper"]),
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
    (["domain.trajectory_length=1"], ["domain.trajectory_length is 1", "greater than or equal to 2"]),
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
    (["runtime.gpus=2"], ["runtime.gpus is 2", "less than or equal to 1"]),
    (["runtime.gpus=1", "fit.device=cpu"], ["runtime.gpus is 1.0 but should be 0 if fit.device is 'cpu'"]),
    (
        ["runtime.gpus=0.5", "runtime.kind=ray", "fit.shards=2"],
        ["runtime.gpus is 0.5 but should be 0 if fit.shards is above 1", "actors without a GPU"],
    ),
    (["runtime.kind=ray", "fit.device=cuda"], ["runtime.gpus is 0.0 but should be above 0 if fit.device is 'cuda'"]),
    (["evaluation.shots=[100]"], ["evaluation.shots is [100]", "99 transitions"]),
    (["evaluation.grid=1"], ["evaluation.grid is 1", "greater than or equal to 2"]),
    (["initial=100000"], ["initial is 100000", "less than or equal to 10000"]),
    (["rounds=1000000000"], ["rounds is 1000000000", "less than or equal to 10000"]),
    (["selection.pool_size=10000000"], ["selection.pool_size", "less than or equal to 1000000"]),
    (["domain.trajectory_length=1000000"], ["domain.trajectory_length", "less than or equal to 10000"]),
    (["evaluation.grid=100000"], ["evaluation.grid is 100000", "less than or equal to 10000"]),
    (
        ["evaluation.grid=1000"],
        ["evaluation.grid is 1000", "a grid over 2 parameters makes 1000000 tasks of 100 states", "50000000"],
    ),
    (
        ["rounds=1000", "selection.batch=1000"],
        ["selection.batch is 1000", "initial + rounds × batch are 1000003 tasks of 100 states"],
    ),
    (["model.inducing=1000000"], ["model.inducing is 1000000", "less than or equal to 10000"]),
    (["model.latent=1000"], ["model.latent is 1000", "less than or equal to 100"]),
    (["descriptor.images=1000000000"], ["descriptor.images", "less than or equal to 10000"]),
    (["runtime.threads=1000000000"], ["runtime.threads", "less than or equal to 10000"]),
    (['name="a\\e[31mb"'], ["name is 'a\\x1b[31mb'", "no control characters"]),
    (["name=../../elsewhere"], ["name is '../../elsewhere'", "no /"]),
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
    (b"cartpole", ["mapping", "is text"]),
    (b"seed: [1\n", ["not valid YAML", "line 2"]),
    (b"seed: 1\nmodel: {}\nseed: 2\n", ["'seed' appears twice", "line 3"]),
    (b"model: {inducing: 1, 'inducing': 2}\n", ["'inducing' appears twice"]),
    (b"seed: 1\n---\nseed: 2\n", ["not valid YAML"]),
    (b"name: \xff\xfe\n", ["UTF-8", "byte 6"]),
    (b"name: \x00\n", ["not valid YAML"]),
    (b"1: 2\n", ["1", "text"]),
    (b"? [a]\n: 2\n", ["not valid YAML"]),
    (b"model:\n", ["model is null", "section"]),
    (b"seed: &a [*a]\n", ["'a' contains itself", "line 1"]),
    (b"model: " + b"{a: " * 2000, ["nested too deeply"]),
    (b"model: {inducng: 300}\n", ["model.inducng (here 300)", "nearest is model.inducing"]),
    (b"method: unii\nseed: x\n", ["method is 'unii'", "nearest is uni", "1 more error"]),
    (b"#" * 10_000_001, ["cannot be read: it has more than 10 MB"]),
]


@pytest.mark.parametrize(("contents", "fragments"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_file_is_one_sentence(tmp_path, contents, fragments):
    path = tmp_path / "mine.yaml"
    path.write_bytes(contents)
    for quick in (False, True):
        with pytest.raises(UserError) as caught:
            load(str(path), quick=quick)
        _is_sentence_with(str(caught.value), [str(path), *fragments])


def test_files_that_are_not_there_or_not_configs(tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("mine.yaml", "arm.xml", "run/config.yaml"):
        (tmp_path / name).touch()
    for config, fragments in [
        ("cartpol", ["'cartpol'", "neither a file nor", "nearest is cartpole"]),
        ("zzqq", ["'zzqq'", "pendubot"]),
        (tmp_path / "none.yaml", ["none.yaml", "neither"]),
        (tmp_path, [str(tmp_path), "Is a directory"]),
        ("/dev/zero", ["/dev/zero", "it is not a regular file"]),
        (tmp_path / "mine.yml", ["neither", f"the nearest is {tmp_path / 'mine.yaml'}."]),
        (tmp_path / "arm.xml", ["is a model", "distpaml.domains.inspect"]),
        (tmp_path / "run", [f"`python -m distpaml.run {tmp_path / 'run' / 'config.yaml'} --out {tmp_path / 'run'}`"]),
        ("x\0y", ["neither"]),
        ("n" * 5000, ["neither"]),
    ]:
        with pytest.raises(UserError) as caught:
            load(config)
        _is_sentence_with(str(caught.value), fragments)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        ExperimentConfig.from_yaml(tmp_path / "none.yaml")


def test_a_file_that_the_system_refuses_to_read(tmp_path):
    """A link to itself: unlike a file without permissions, it stops the superuser too."""
    path = tmp_path / "loop.yaml"
    path.symlink_to(path)
    with pytest.raises(UserError, match=r"loop.yaml cannot be read: Too many levels of symbolic links\."):
        ExperimentConfig.from_yaml(path)


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


def _is_sentence_with(text: str, fragments: list[str]) -> None:
    assert text.endswith(".") and "\n" not in text and len(text) < 400
    for fragment in fragments:
        assert fragment in text


def test_a_key_with_dots_in_a_file_is_not_its_own_nearest(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("model.inducing: 5\n")
    with pytest.raises(
        UserError, match=r"line 1, model.inducing \(here 5\) should be nested, as in model: {inducing: …}"
    ):
        load(file)
