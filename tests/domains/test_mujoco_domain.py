"""What goes wrong in a simulation must come out as a sentence, and leave nothing in the user's folder."""

import subprocess
import sys

import mujoco
import numpy as np
import pytest

from distpaml.domains import DOMAINS, CartDoublePole, CartPole, SimulationError
from distpaml.domains.mujoco import MujocoDomain, rollout

TASKS = np.array([[1.0, 1.0], [0.5, 2.0]])
STARTS = np.array([[0.0, np.pi, 0.0, 0.0]] * 2)
CONTROLS = np.ones((2, 30, 1))


def spinning(row: int, speed: float = 1e5) -> np.ndarray:
    """Starts of which one turns far too fast for steps of 0.125 s."""
    starts = STARTS.copy()
    starts[row, 3] = speed
    return starts


@pytest.mark.parametrize("threads", [1, 2])
def test_divergence_names_the_task_and_the_step(threads):
    with pytest.raises(SimulationError, match=r"cartpole with pole_mass=0.5, pole_length=2 diverged at step 1 of"):
        CartPole().simulate(TASKS, spinning(1), CONTROLS, threads)


@pytest.mark.parametrize("cls", [CartPole, CartDoublePole])
@pytest.mark.parametrize("step", [1, 17, 30])
def test_divergence_is_found_at_the_step_where_it_happens(cls, step):
    """A shove of 1e13 N in one step makes the speed exceed MuJoCo's bound in that step."""
    controls = CONTROLS.copy()
    controls[0, step - 1] = 1e13
    starts = np.stack([cls().start(np.random.default_rng(i)) for i in range(2)])
    with pytest.raises(SimulationError, match=rf"=1, [a-z_]+=1 diverged at step {step} of 30"):
        cls().simulate(TASKS, starts, controls)


def test_divergence_is_found_without_mujocos_reset():
    """A model may ask MuJoCo not to reset bad states; time then goes on, and only the state tells."""

    class Unreset(CartPole):
        def spec(self, task):
            spec = super().spec(task)
            spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
            return spec

    with pytest.raises(SimulationError, match="diverged at step 1 of 1"):
        Unreset().simulate(TASKS, spinning(1), CONTROLS[:, :1])


def test_a_warning_in_the_last_step_is_not_missed():
    """6e10 N in the last step leave the state below MuJoCo's bound: its warning is all there is to see."""
    controls = CONTROLS.copy()
    controls[0, -1] = 6e10
    models = [CartPole().model(task, visual=False) for task in TASKS]
    states, failures = rollout(models, STARTS, controls)
    assert np.abs(states[0, -1]).max() < 1e10
    assert failures == [30, 0]


def test_a_diverging_neighbour_does_not_touch_a_good_trajectory():
    models = [CartPole().model(task, visual=False) for task in TASKS]
    states, failures = rollout(models, spinning(0), CONTROLS)
    assert failures[0] > 0
    assert failures[1] == 0
    np.testing.assert_array_equal(states[1], CartPole().simulate(TASKS, STARTS, CONTROLS)[1])


def test_divergence_leaves_no_file_and_no_line(tmp_path):
    program = (
        "import numpy as np\n"
        "from distpaml.domains import CartPole, SimulationError\n"
        "try:\n"
        "    CartPole().simulate(np.ones((2, 2)), np.full((2, 4), 1e6), np.zeros((2, 9, 1)), THREADS)\n"
        "except SimulationError:\n"
        "    print('diverged')\n"
    )
    for threads in ("1", "2"):
        command = [sys.executable, "-c", program.replace("THREADS", threads)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("diverged\n", "")
    assert list(tmp_path.iterdir()) == []


def test_the_users_warning_handler_comes_back():
    def mine(message: str) -> None:
        raise AssertionError(message)

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(mine)
    try:
        with pytest.raises(SimulationError):
            CartPole().simulate(TASKS, spinning(0), CONTROLS)
        assert mujoco.get_mju_user_warning() is mine
    finally:
        mujoco.set_mju_user_warning(before)


@pytest.mark.parametrize(
    "tasks, starts, controls, sentence",
    [
        (TASKS[0], STARTS, CONTROLS, r"tasks must have shape \[N, 2\], one row \(pole_mass, pole_length\)"),
        (TASKS, STARTS[:1], CONTROLS, r"starts must have shape \[2, 4\].* not \[1, 4\]"),
        (TASKS, STARTS, CONTROLS[..., 0], r"controls must have shape \[2, T - 1, 1\].* not \[2, 30\]"),
        (TASKS, STARTS, CONTROLS[:1], r"controls must have shape \[2, T - 1, 1\].* not \[1, 30, 1\]"),
        (TASKS * [1, 0], STARTS, CONTROLS, "pole_length must be positive and finite, but is 0 in task 0"),
        (TASKS * [[1, 1], [-1, 1]], STARTS, CONTROLS, "pole_mass must be .*, but is -0.5 in task 1"),
        (TASKS * [np.nan, 1], STARTS, CONTROLS, "pole_mass must be .*, but is nan in task 0"),
        (TASKS, np.where([[False], [True]], np.inf, STARTS), CONTROLS, "starts must be finite; row 1 is not"),
        (TASKS, STARTS, CONTROLS * np.nan, "controls must be finite; row 0 is not"),
    ],
)
def test_bad_arguments_are_sentences(tasks, starts, controls, sentence):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=sentence):
        CartPole().simulate(tasks, starts, controls)


def test_states_that_are_not_the_models_are_a_sentence():
    class Short(CartPole):
        states = ("x", "theta", "x_dot")

    with pytest.raises(ValueError, match="2 positions and 2 velocities and nothing else, but it names 3 states"):
        Short().simulate(TASKS, STARTS[:, :3], CONTROLS)


def test_no_tasks_give_no_trajectories():
    assert CartPole().simulate(TASKS[:0], STARTS[:0], CONTROLS[:0]).shape == (0, 31, 4)


@pytest.mark.parametrize("cls", DOMAINS.values(), ids=DOMAINS)
def test_model_to_render_is_the_model_to_step(cls: type[MujocoDomain]):
    for variant in cls.variants:
        domain = cls(variant)
        task = np.full(len(cls.box), 4.5)
        visual, plain = domain.model(task), domain.model(task, visual=False)
        assert visual.ntexdata > 0
        assert visual.ncam > 0
        assert plain.ntexdata == plain.ngeom == plain.ncam == 0
        start = domain.start(np.random.default_rng(0))[None]
        controls = np.ones((1, 50, 1))
        np.testing.assert_array_equal(rollout([visual], start, controls)[0], rollout([plain], start, controls)[0])


def test_models_of_two_tasks_are_independent():
    """The parsed suite model is shared; what one task edits must not show in the next."""
    before = CartPole().model(np.array([1.0, 1.0]), visual=False)
    CartPole().model(np.array([5.0, 2.0]), visual=False)
    after = CartPole().model(np.array([1.0, 1.0]), visual=False)
    np.testing.assert_array_equal(before.body_mass, after.body_mass)
    np.testing.assert_array_equal(before.body_mass, [0.0, 1.0, 1.0])
