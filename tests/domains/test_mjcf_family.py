"""Families from MJCF files: the same bits as a class by hand, mechanics without MuJoCo, and inertias that follow."""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
from equations_of_motion import Chain, capsule_inertia
from families import ARM, load_family

from distpaml.config import load
from distpaml.data.tasks import TaskSet
from distpaml.domains import CartPole, check_domain
from distpaml.domains.model_edits import Parameter, model_edits
from distpaml.domains.model_files import read_model
from distpaml.domains.signals import default_signals
from distpaml.runtime.local import LocalSimulator

CART = {
    "mjcf": "dm_control:cartpole",
    "parameters": {
        "pole_mass": {"range": [0.5, 5.0], "sets": {"geom.pole_1.mass": "pole_mass"}},
        "pole_length": {"range": [0.5, 2.0], "sets": {"geom.pole_1.fromto": [0, 0, 0, 0, 0, "pole_length"]}},
    },
    "start": {"hinge_1": "pi"},
    "dt": 0.125,
    "substeps": 1,
    "integrator": "RK4",
    "signal": {"noise": 1.0, "limits": {"slide": [-25, 25]}},
    "control_limit": 25,
    "alternations": 10,
}
"""The paper's cart-pole, said in data."""


def paper_cart() -> str:
    """The suite's cart as `CartPole` changes it for the paper's text: newtons, and no constraints."""
    xml = read_model("dm_control:cartpole").xml
    assert 'gear="10"' in xml and 'ctrllimited="true"' in xml
    xml = xml.replace('gear="10"', 'gear="1"').replace('ctrllimited="true"', 'ctrllimited="false"')
    flags = '<flag contact="disable" energy="enable" />'
    assert flags in xml
    return xml.replace(flags, '<flag constraint="disable" contact="disable" energy="enable" />')


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_papers_cart_pole_from_data_has_the_same_bits(variant, tmp_path):
    mjcf = {"mjcf": "cart.xml"} if variant == "paper" else {}
    family = load_family(tmp_path, CART | mjcf, "seed=5", "evaluation.grid=6", cart=paper_cart())
    by_hand = load("cartpole", ["seed=5", "evaluation.grid=6", f"domain.variant={variant}"])
    tasks, same = TaskSet(family).test(), TaskSet(by_hand).test()
    np.testing.assert_array_equal(tasks.starts, same.starts)
    mine, theirs = (LocalSimulator(config).simulate(tasks).result() for config in (family, by_hand))
    np.testing.assert_array_equal(mine.inputs, theirs.inputs)
    np.testing.assert_array_equal(mine.targets, theirs.targets)
    assert family.domain.box == by_hand.domain.box
    assert family.domain.make().describe(tasks.parameters[0]) == CartPole().describe(tasks.parameters[0])


@dataclass(frozen=True)
class Arm(Chain):
    """Two links, the second with a ball of mass p and radius r at its end, both joints driven."""

    payload: float = 0.0
    radius: float = 0.05

    @property
    def whole(self) -> np.ndarray:
        """Masses of the links, payload included."""
        return np.add(self.masses, [0.0, self.payload])

    @property
    def centres(self) -> np.ndarray:
        """Of mass, from the joints."""
        lengths = np.array(self.lengths)
        return (np.array(self.masses) * lengths / 2 + np.array([0.0, self.payload]) * lengths) / self.whole

    @property
    def arms(self) -> np.ndarray:
        return np.array([[self.centres[0], 0.0], [self.lengths[0], self.centres[1]]])

    @property
    def moments(self) -> np.ndarray:
        return self.whole @ self.arms

    @property
    def inertias(self) -> np.ndarray:
        links = zip(self.masses, self.lengths, self.radii, self.centres, strict=True)
        own = np.array([capsule_inertia(m, long, r) + m * (long / 2 - c) ** 2 for m, long, r, c in links])
        own[1] += self.payload * (2 / 5 * self.radius**2 + (self.lengths[1] - self.centres[1]) ** 2)
        return self.arms.T @ np.diag(self.whole) @ self.arms + np.diag(own)


def arm_of(task: np.ndarray) -> Arm:
    upper, payload, friction = task
    damping = (0.3 * friction, 0.3 * friction)
    return Arm((1.0, 1.0), (upper, 0.4), (0.03, 0.03), damping, driven=slice(None), payload=payload)


@pytest.fixture
def arm(tmp_path):
    return load_family(tmp_path, ARM).domain.make()


def test_the_two_link_arm_obeys_lagranges_equations(arm):
    rng = np.random.default_rng(0)
    low, high = np.array(list(arm.box.values())).T
    tasks = rng.uniform(low, high, (12, 3))
    starts = np.stack([arm.start(rng) for _ in tasks])
    controls = np.stack([default_signals(arm, np.random.default_rng(i))[:40] for i in range(12)])
    states = arm.simulate(tasks, starts, controls)
    for task, start, signal, trajectory in zip(tasks, starts, controls, states, strict=True):
        upright = np.array([np.pi, 0.0, 0.0, 0.0])  # the equations count angles from there
        fine = np.repeat(signal, arm.substeps, axis=0)
        expected = arm_of(task).runge_kutta(start + upright, fine, arm.dt / arm.substeps)[:: arm.substeps] - upright
        np.testing.assert_allclose(trajectory, expected, rtol=0, atol=1e-7)


def test_inertias_follow_what_is_changed(arm):
    """A compiled model whose numbers are changed keeps its old inertias; a family's does not."""
    task = np.array([0.8, 2.0, 1.0])
    model = arm.model(task, visual=False)
    expected = arm_of(task)
    matrix = np.zeros((2, 2))
    data = mujoco.MjData(model)
    data.qpos[:] = 0.3, -0.7
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, matrix)
    absolute = np.array([[1.0, 0.0], [1.0, 1.0]])  # of joint angles
    phi = np.pi + np.array([0.3, -0.4])
    np.testing.assert_allclose(matrix, absolute.T @ expected.mass_matrix(phi) @ absolute, rtol=1e-10)
    by_hand = arm.model(np.array([0.8, 0.1, 1.0]), visual=False)
    by_hand.body_mass[2] += 1.9
    assert not np.allclose(by_hand.body_inertia[2], model.body_inertia[2])


def test_the_arm_keeps_the_contract_with_two_controls(arm):
    assert arm.controls == ("shoulder_motor", "elbow_motor")
    assert arm.limits == {"shoulder_motor": (-6.0, 6.0), "elbow_motor": (-2.0, 2.0)}
    assert (arm.states, arm.angles) == (("shoulder", "elbow", "shoulder_dot", "elbow_dot"), ("shoulder", "elbow"))
    assert check_domain(arm) == []


def test_an_actuator_that_is_not_named_rests_and_a_joint_that_is_not_named_is_unseen(tmp_path):
    both = load_family(tmp_path, ARM).domain.make()
    part = load_family(tmp_path, ARM | {"controls": ["shoulder_motor"], "states": ["elbow"]}).domain.make()
    assert (part.controls, part.states) == (("shoulder_motor",), ("elbow", "elbow_dot"))
    tasks, controls = np.array([[0.5, 1.0, 1.0]]), np.full((1, 30, 1), 2.0)
    seen = part.simulate(tasks, np.zeros((1, 2)), controls)
    whole = both.simulate(tasks, np.zeros((1, 4)), np.concatenate([controls, 0 * controls], axis=-1))
    np.testing.assert_array_equal(seen, whole[..., [1, 3]])


def test_every_control_of_the_arm_is_an_input_of_the_model(tmp_path):
    config = load_family(tmp_path, ARM, "evaluation.grid=2")
    data = LocalSimulator(config).simulate(TaskSet(config).test()).result()
    assert data.inputs.shape == (8, 99, 4 + 2 + 2)  # cos and sin of two angles, two speeds, two controls
    controls = data.inputs[0, :, -2:]
    assert np.abs(np.corrcoef(controls.T)[0, 1]) < 0.9
    assert np.abs(controls).max(axis=0) == pytest.approx([6.0, 2.0])


BALL = """<mujoco><worldbody><body><joint type="ball" name="neck"/><geom size=".1"/>
<body pos="1 0 0"><joint name="jaw"/><geom name="tooth" size=".1" mass="1" pos="1 0 0"/></body></body></worldbody>
<actuator><motor joint="jaw" name="bite" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_a_ball_joint_moves_along_unseen(tmp_path):
    domain = {
        "mjcf": "head.xml",
        "parameters": {"mass": {"range": [0.5, 2], "sets": {"geom.tooth.mass": "mass"}}},
        "states": ["jaw"],
    }
    family = load_family(tmp_path, domain, head=BALL).domain.make()
    assert family.states == ("jaw", "jaw_dot")
    assert family.nominal.nq == 5
    assert check_domain(family) == []


MUSCLE = """<mujoco><worldbody><body><joint name="knee"/>
<geom name="shin" type="capsule" fromto="0 0 0 0 0 -1" size=".1" mass="1"/></body>
</worldbody>
<actuator><general joint="knee" name="pull" ctrlrange="-1 1" dyntype="filter" dynprm=".2"/></actuator></mujoco>"""


def test_activations_are_states(tmp_path):
    domain = {"mjcf": "leg.xml", "parameters": {"mass": {"range": [0.5, 2], "sets": {"geom.shin.mass": "mass"}}}}
    family = load_family(tmp_path, domain, leg=MUSCLE).domain.make()
    assert family.states == ("knee", "knee_dot", "pull_act")
    assert check_domain(family) == []


def test_a_keyframe_is_a_start(tmp_path):
    xml = MUSCLE.replace("</mujoco>", '<keyframe><key name="bent" qpos="0.7"/></keyframe></mujoco>')
    domain = {
        "mjcf": "leg.xml",
        "parameters": {"mass": {"range": [0.5, 2], "sets": {"geom.shin.mass": "mass"}}},
        "start": "bent",
        "start_noise": 0,
    }
    start = load_family(tmp_path, domain, leg=xml).domain.make().start(np.random.default_rng(0))
    np.testing.assert_array_equal(start, [0.7, 0.0, 0.0])


def test_what_moves_in_a_figure_are_the_ends_of_the_links(arm):
    task, angles = np.array([0.6, 1.0, 1.0]), np.array([0.4, 0.3, 0.0, 0.0])
    points = arm.look(angles, task)
    elbow = np.array([0.0, 1.5]) - 0.6 * np.array([np.sin(0.4), np.cos(0.4)])
    hand = elbow - 0.4 * np.array([np.sin(0.7), np.cos(0.7)])
    for joint in (np.array([0.0, 1.5]), elbow, hand):
        assert np.abs(points - joint).sum(axis=-1).min() < 1e-12
    assert np.linalg.norm(points - points[0], axis=-1).max() <= 1.0 + 1e-12


def test_an_address_may_be_set_and_then_scaled():
    spec, address = read_model("dm_control:cartpole").spec(), "joint.slider.damping"
    for edit in model_edits(spec, {"m": Parameter((1.0, 2.0), {address: "3 * m"}, [address])}):
        edit(spec, {"m": 2.0})
    assert spec.joint("slider").damping[0] == 12.0
