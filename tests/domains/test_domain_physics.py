"""Every domain against mechanics derived without MuJoCo (`equations_of_motion`)."""

from dataclasses import replace

import numpy as np
import pytest
from equations_of_motion import GRAVITY, Chain, capsule_inertia, chain_of
from scipy.integrate import solve_ivp
from scipy.linalg import eigh

from distpaml.domains import DOMAINS, CartPole, Domain
from distpaml.domains.signals import default_signals

ALL = [(cls, variant) for cls in DOMAINS.values() for variant in cls.variants]
each_domain = pytest.mark.parametrize("cls", DOMAINS.values(), ids=DOMAINS)
each_variant = pytest.mark.parametrize("cls, variant", ALL, ids=[f"{c.name}-{r}" for c, r in ALL])


def some_tasks(domain: Domain) -> np.ndarray:
    low, high = np.array(list(domain.box.values())).T
    return low + (high - low) * np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.3, 0.6]])[:, : len(low)]


def simulate_one(domain: Domain, task: np.ndarray, start: np.ndarray, controls: np.ndarray) -> np.ndarray:
    return domain.simulate(task[None], start[None], np.reshape(controls, (1, -1, 1)))[0]


def with_step(cls: type[Domain], step: float) -> Domain:
    return type(cls.__name__, (cls,), {"dt": step})()


def undamped(cls: type[Domain], step: float) -> Domain:
    def spec(self, task):
        spec = cls.spec(self, task)
        for joint in spec.joints:
            joint.damping = np.zeros_like(joint.damping)
        return spec

    return type(cls.__name__, (cls,), {"dt": step, "spec": spec})()


def signal(domain: Domain, seed: int = 0) -> np.ndarray:
    return default_signals(domain, np.random.default_rng(seed))[:, 0]


@each_variant
def test_trajectory_obeys_lagranges_equations(cls, variant):
    domain = cls(variant)
    gear = 1.0 if variant == "paper" else (2.0 if cls.name == "pendubot" else 10.0)
    plant_limit = domain.control_limit if variant == "paper" else 1.0
    controls = signal(domain)[:20]
    for i, task in enumerate(some_tasks(domain)):
        start = domain.start(np.random.default_rng(i))
        states = simulate_one(domain, task, start, controls)
        force = gear * np.clip(controls, -plant_limit, plant_limit)
        k = domain.substeps
        expected = chain_of(domain, task).runge_kutta(start, np.repeat(force, k), domain.dt / k)[::k]
        on_rail = np.ones(len(states), bool)
        if variant == "code" and "x" in domain.states:
            on_rail = np.maximum.accumulate(np.abs(states[:, 0])) < 1.2
        assert on_rail.sum() >= 5
        np.testing.assert_allclose(states[on_rail], expected[on_rail], rtol=1e-8, atol=1e-8)


@each_domain
def test_small_steps_approach_the_exact_motion_in_fourth_order(cls):
    task, push, seconds = some_tasks(cls())[-1], cls.control_limit / 5, 0.8
    start = cls().start(np.random.default_rng(3))
    exact = solve_ivp(
        lambda t, s: chain_of(cls(), task).derivative(s, push),
        (0, seconds),
        start,
        "DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[:, -1]
    errors = [
        np.abs(simulate_one(with_step(cls, seconds / n), task, start, np.full(n, push))[-1] - exact).max()
        for n in (32, 64)
    ]
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.35)


@each_domain
def test_energy_of_the_free_system_is_kept_to_fourth_order(cls):
    task, seconds = some_tasks(cls())[-1], 2.0
    angles = np.isin(cls.states, cls.angles)
    start = np.where(angles, 1.0, 0.0)

    def drift(n: int) -> float:
        domain = undamped(cls, seconds / n)
        chain = replace(chain_of(cls(), task), damping=(0.0,) * (len(start) // 2))
        states = simulate_one(domain, task, start, np.zeros(n))
        energies = np.array([chain.energy(state) for state in states])
        kinetic = energies[0] - min(chain.energy(np.where(angles, state, 0)) for state in states)
        assert kinetic > 1.0  # there is motion to lose energy in
        return np.abs(energies - energies[0]).max()

    coarse, fine = drift(250), drift(500)
    assert fine < 1e-5
    assert coarse / fine > 12


@each_domain
def test_small_oscillations_have_the_linear_modes(cls):
    """About hanging, K = diag(0, g μ) and M as it is: every mode follows cos ωt for a period."""
    for task in some_tasks(cls()):
        for omega, mode in hanging_modes(chain_of(cls(), task)):
            steps = 200
            domain = undamped(cls, 2 * np.pi / omega / steps)
            rest = np.zeros(len(cls.states))
            rest[cls.states.index(cls.angles[0])] = np.pi
            amplitude = 1e-4 * np.concatenate([mode, 0 * mode])
            states = simulate_one(domain, task, rest + amplitude, np.zeros(steps))
            expected = np.cos(omega * domain.dt * np.arange(steps + 1))
            moved = (states - rest)[:, : len(mode)]
            np.testing.assert_allclose(moved, 1e-4 * np.outer(expected, mode), atol=2e-10)


def hanging_modes(chain: Chain) -> list[tuple[float, np.ndarray]]:
    """(ω, shape in joint coordinates q with largest entry 1), without the cart's free drift."""
    links = len(chain.masses)
    carts = 0 if chain.cart is None else 1
    stiffness = np.diag([0.0] * carts + list(GRAVITY * chain.moments))
    squares, shapes = eigh(stiffness, chain.mass_matrix(np.full(links, np.pi)))
    modes = []
    for square, shape in list(zip(squares, shapes.T, strict=True))[carts:]:
        q = np.concatenate([shape[:carts], np.diff(shape[carts:], prepend=0.0)])
        modes.append((float(np.sqrt(square)), q / np.abs(q).max()))
    return modes


def test_cartpole_period_is_the_two_body_formula():
    """T = 2π √((I + m l² M / (M + m)) / (m g l)): the free cart shortens the period."""
    mass, length = 2.0, 1.5
    effective = capsule_inertia(mass, length, 0.045) + mass * (length / 2) ** 2 * 1.0 / (1.0 + mass)
    period = 2 * np.pi * np.sqrt(effective / (mass * GRAVITY * length / 2))
    domain = undamped(CartPole, period / 400)
    start = np.array([0.0, np.pi + 1e-4, 0.0, 0.0])
    theta = simulate_one(domain, np.array([mass, length]), start, np.zeros(400))[:, 1] - np.pi
    crossings = np.flatnonzero(np.diff(np.sign(theta)))
    times = (crossings + theta[crossings] / (theta[crossings] - theta[crossings + 1])) * domain.dt
    assert len(times) == 2
    assert 2 * (times[1] - times[0]) == pytest.approx(period, rel=1e-6)


def test_only_the_rail_of_the_code_has_stops():
    task, push = np.array([1.0, 1.0]), np.full(60, 25.0)
    reach = {
        variant: np.abs(simulate_one(CartPole(variant), task, np.array([0, np.pi, 0, 0]), push)[:, 0]).max()
        for variant in CartPole.variants
    }
    assert reach["code"] < 3 < 50 < reach["paper"]
