"""Lagrange's equations of a chain of capsules on a cart or a fixed pivot, derived without MuJoCo.

Link i has mass m_i, length L_i, its centre at l_i = L_i / 2 and the absolute angle φ_i from upright. It lies
at p_i = x + Σ_j a_ij sin φ_j, z_i = Σ_j a_ij cos φ_j with a_ij = L_j (j < i), l_i (j = i), 0 (j > i). With
μ_j = Σ_i m_i a_ij and A_jk = Σ_i m_i a_ij a_ik + δ_jk I_j the equations are

    (M + Σ m_i) ẍ + Σ_j μ_j (cos φ_j φ̈_j − sin φ_j φ̇_j²)                                = F
    μ_j cos φ_j ẍ + Σ_k A_jk (cos(φ_j − φ_k) φ̈_k + sin(φ_j − φ_k) φ̇_k²) − g μ_j sin φ_j = τ_j − τ_{j+1}

where τ_j is the torque at joint j; joint angles are θ_1 = φ_1, θ_2 = φ_2 − φ_1.
"""

from dataclasses import dataclass

import numpy as np

from distpaml.domains import CartDoublePole, CartPole, Domain, Pendubot

GRAVITY = 9.81


def capsule_inertia(mass: float, length: float, radius: float) -> float:
    """About an axis through the centre, across a cylinder of `length` with a half ball at either end."""
    cylinder = mass * length / (length + 4 * radius / 3)
    balls = mass - cylinder
    return cylinder * (length**2 / 12 + radius**2 / 4) + balls * (
        2 * radius**2 / 5 + length**2 / 4 + 3 * length * radius / 8
    )


@dataclass(frozen=True)
class Chain:
    """Coordinates q = (x, θ_1, …) on a cart, (θ_1, …) on a pivot; the state is (q, q̇)."""

    masses: tuple[float, ...]
    lengths: tuple[float, ...]
    radii: tuple[float, ...]
    damping: tuple[float, ...]
    """Per coordinate of q."""
    driven: int
    """Coordinate of q that the control pushes."""
    cart: float | None = None
    """Its mass, if there is one."""

    @property
    def arms(self) -> np.ndarray:
        """a [n, n]."""
        lengths = np.array(self.lengths)
        return np.tril(np.tile(lengths, (len(lengths), 1)), -1) + np.diag(lengths / 2)

    @property
    def moments(self) -> np.ndarray:
        """μ [n]."""
        return np.array(self.masses) @ self.arms

    @property
    def inertias(self) -> np.ndarray:
        """A [n, n]."""
        own = [capsule_inertia(*link) for link in zip(self.masses, self.lengths, self.radii, strict=True)]
        return self.arms.T @ np.diag(self.masses) @ self.arms + np.diag(own)

    def mass_matrix(self, phi: np.ndarray) -> np.ndarray:
        """Of (x, φ), or of φ without a cart."""
        links = self.inertias * np.cos(phi[:, None] - phi)
        if self.cart is None:
            return links
        coupling = self.moments * np.cos(phi)
        return np.block([[np.array([[self.cart + sum(self.masses)]]), coupling[None]], [coupling[:, None], links]])

    def split(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q → (x or nothing, φ); the same map serves velocities."""
        first = 0 if self.cart is None else 1
        return q[:first], np.cumsum(q[first:])

    def acceleration(self, state: np.ndarray, control: float) -> np.ndarray:
        q, speed = np.split(state, 2)
        (_, phi), (x_dot, phi_dot) = self.split(q), self.split(speed)
        force = -np.array(self.damping) * speed
        force[self.driven] += control
        cart_force, torque = force[: len(x_dot)], force[len(x_dot) :]
        link_force = (
            torque
            - np.append(torque[1:], 0.0)
            - (self.inertias * np.sin(phi[:, None] - phi)) @ phi_dot**2
            + GRAVITY * self.moments * np.sin(phi)
        )
        cart_force = cart_force + self.moments @ (np.sin(phi) * phi_dot**2)
        solved = np.linalg.solve(self.mass_matrix(phi), np.concatenate([cart_force, link_force]))
        return np.concatenate([solved[: len(x_dot)], np.diff(solved[len(x_dot) :], prepend=0.0)])

    def derivative(self, state: np.ndarray, control: float) -> np.ndarray:
        return np.concatenate([state[len(state) // 2 :], self.acceleration(state, control)])

    def energy(self, state: np.ndarray) -> float:
        q, speed = np.split(state, 2)
        _, phi = self.split(q)
        velocity = np.concatenate(self.split(speed))
        return 0.5 * velocity @ self.mass_matrix(phi) @ velocity + GRAVITY * self.moments @ np.cos(phi)

    def runge_kutta(self, start: np.ndarray, controls: np.ndarray, dt: float) -> np.ndarray:
        """States [T, S], the control held over each step."""
        states = [start]
        for control in controls:
            s = states[-1]
            k1 = self.derivative(s, control)
            k2 = self.derivative(s + dt / 2 * k1, control)
            k3 = self.derivative(s + dt / 2 * k2, control)
            k4 = self.derivative(s + dt * k3, control)
            states.append(s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        return np.array(states)


def chain_of(domain: Domain, task: np.ndarray) -> Chain:
    """The suite's numbers, written out a second time."""
    first, second = map(float, task if len(task) == 2 else (1.0, *task))
    if isinstance(domain, CartPole):
        return Chain((first,), (second,), (0.045,), (5e-4, 2e-6), driven=0, cart=1.0)
    if isinstance(domain, CartDoublePole):
        return Chain((0.1, 0.1), (first, second), (0.045, 0.045), (5e-4, 2e-6, 2e-6), driven=0, cart=1.0)
    assert isinstance(domain, Pendubot)
    driven = 0 if domain.variant == "paper" else 1
    return Chain((1.0, 1.0), (first, second), (0.05, 0.049), (0.05, 0.05), driven=driven)
