"""The families in distpaml/examples, and the commands that one tries on one's own."""

import re
import time

import numpy as np
import pytest
from families import ARM, ARM_XML, write_family

from distpaml.config import load
from distpaml.config.load import worked_examples
from distpaml.data.tasks import TaskSet
from distpaml.domains import Pendubot, SimulationError, check_domain
from distpaml.domains.box import bounds, uniform
from distpaml.domains.check import main as check
from distpaml.domains.inspect import main as inspect
from distpaml.domains.signals import default_signals
from distpaml.errors import UserError
from distpaml.records import RunDirectory
from distpaml.runtime.local import LocalSimulator

NAMES = ["dm_acrobot", "dm_reacher", "gym_pendulum", "two_link_arm"]


def test_there_are_four():
    assert sorted(worked_examples()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_contract_and_can_be_drawn(name):
    config = load(name, ["evaluation.grid=2"])
    assert config.name == name
    domain = config.domain.make()
    assert check_domain(domain) == []
    tasks = TaskSet(config).test()
    assert np.isfinite(LocalSimulator(config).simulate(tasks).result().targets).all()
    points = domain.look(tasks.starts[:3], tasks.parameters[0])
    assert points.shape[0] == 3 and points.shape[2] == 2 and np.isfinite(points).all()


def test_check_takes_a_yaml_file(tmp_path, capsys):
    path = str(write_family(tmp_path, ARM))
    assert check([path]) == 0
    assert capsys.readouterr().out == f"{path} keeps the contract of a domain\n"
    assert check(["two_link_arm"]) == 0
    assert check([str(write_family(tmp_path, ARM | {"states": ["elbw"]}))]) == 2
    assert "nearest is elbow" in capsys.readouterr().err


def test_inspect_lists_what_can_be_varied_and_its_yaml_is_a_family(tmp_path, capsys):
    (tmp_path / "arm.xml").write_text(ARM_XML)
    assert inspect([str(tmp_path / "arm.xml")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"geom\.payload\.mass +0\.5\n", out)
    assert re.search(r"geom\.upper\.fromto +\[0, 0, 0, 0, 0, -0\.5\]\n", out)
    assert re.search(r"joint\.elbow\.damping +0\.3\n", out)
    (tmp_path / "arm.yaml").write_text(out)
    assert load(tmp_path / "arm.yaml").domain.make().controls == ("shoulder_motor", "elbow_motor")


def test_names_in_a_model_do_not_steer_the_terminal(tmp_path, monkeypatch, capsys):
    joint = '<joint name="j\x9b31m\u202e" damping="1"/>'
    text = f'<mujoco><worldbody><body>{joint}<geom size="1" mass="1"/></body></worldbody></mujoco>'
    (tmp_path / "odd.xml").write_text(text)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert inspect([str(tmp_path / "odd.xml")]) == 0
    shown = capsys.readouterr().out
    assert r"joint.j\x9b31m\u202e.damping" in shown and "\x9b" not in shown and "\u202e" not in shown


def test_inspect_lists_everything_on_request(capsys):
    assert inspect(["dm_control:acrobot", "--all"]) == 0
    assert "left to the compiler" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["arm.xml", "two_link_arm", "gymnasium:Hopper-v5"])
def test_inspect_tries_the_corners(tmp_path, monkeypatch, capsys, model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.xml").write_text(ARM_XML)
    assert inspect([model, "--try", "--out", "strip.png"]) == 0
    assert (tmp_path / "strip.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith("Film strip: strip.png\n")


@pytest.mark.parametrize("name", ["dog", "fish", "manipulator", "walker", "ball_in_cup", "humanoid_CMU", "stacker"])
def test_what_inspect_prints_of_any_model_is_a_family_or_a_sentence(tmp_path, name, capsys):
    code = inspect([f"dm_control:{name}"])
    printed = capsys.readouterr()
    if code == 0:
        (tmp_path / "any.yaml").write_text(printed.out)
        assert load(tmp_path / "any.yaml").domain.make().states
    else:
        assert printed.err.startswith("error: ") and printed.err.count("\n") == 1


def test_inspect_says_what_is_wrong(capsys):
    assert inspect(["nowhere.xml"]) == 2
    assert capsys.readouterr().err.startswith("error: nowhere.xml cannot be used: the file nowhere.xml cannot be read")


def test_a_run_goes_on_with_the_same_model_only(tmp_path):
    config = load(write_family(tmp_path, ARM))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(config.to_yaml())
    with RunDirectory(tmp_path / "run", config):
        pass
    (tmp_path / "two_link_arm.xml").write_text(ARM_XML.replace('mass="1"', 'mass="1.1"'))
    changed = load(tmp_path / "family.yaml")
    with pytest.raises(UserError, match=r"holds another experiment: domain\.mjcf\.sha256 is '[0-9a-f]{64}' there"):
        RunDirectory(tmp_path / "run", changed).__enter__()


def test_a_model_that_was_changed_in_a_config_is_refused(tmp_path):
    config = load(write_family(tmp_path, ARM))
    text = config.to_yaml()
    assert type(config).from_yaml(text) == config
    with pytest.raises(UserError, match="should have the sha256 of its xml"):
        type(config).from_yaml(text.replace('size="0.03"', 'size="0.04"'))


@pytest.mark.parametrize("address", ["geom.payload.size[0]", "geom.payload.size.0"])
def test_components_may_be_written_with_brackets(tmp_path, address):
    parameters = {"size": {"range": [0.1, 0.2], "sets": {address: "size"}}}
    family = load(write_family(tmp_path, ARM | {"parameters": parameters})).domain.make()
    assert family.model(np.array([0.15])).geom("payload").size[0] == 0.15


def test_brackets_in_braces_are_explained(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text("domain:\n  parameters: {a: {sets: {geom.upper.fromto[5]: a}}}\n")
    with pytest.raises(UserError, match="line 2; in braces, a key with brackets has to be quoted"):
        load(path)


@pytest.mark.slow
def test_a_hundred_arms_cost_no_more_than_a_hundred_pendubots():
    """Built and rolled out, in turns, in CPU time, since others use the machine too; the fastest of each counts."""
    arm, pendubot = load("two_link_arm").domain.make(), Pendubot()
    batches = {}
    for domain in (arm, pendubot):
        rng = np.random.default_rng(0)
        low, high = bounds(domain.box)
        starts = np.stack([domain.start(rng) for _ in range(100)])
        controls = np.repeat(default_signals(domain, rng)[None], 100, axis=0)
        batches[domain] = uniform(low, high, 100, rng), starts, controls
    seconds = {domain: [] for domain in batches}
    for _ in range(20):
        for domain, batch in batches.items():
            begun = time.process_time()
            domain.simulate(*batch)
            seconds[domain].append(time.process_time() - begun)
    fastest = [1e3 * min(seconds[domain]) for domain in (arm, pendubot)]
    ratio = fastest[0] / fastest[1]
    print(f"\n100 tasks: two-link arm {fastest[0]:.0f} ms, pendubot {fastest[1]:.0f} ms, ratio {ratio:.2f}")
    assert ratio < 1.3


def test_a_corner_that_does_not_compile_is_a_sentence(tmp_path):
    """Neither end of an interval is wrong by itself, but their combination is."""
    parameters = {
        "a": {"range": [0.1, 1.0], "sets": {"geom.payload.mass": "a + b - 0.5"}},
        "b": {"range": [0.1, 1.0], "scales": ["geom.upper.mass"]},
    }
    family = load(write_family(tmp_path, ARM | {"parameters": parameters})).domain.make()
    with pytest.raises(SimulationError, match=r"with a=0\.1, b=0\.1 cannot be compiled: .*negative"):
        family.simulate(np.array([[0.1, 0.1]]), np.zeros((1, 4)), np.zeros((1, 5, 2)))
