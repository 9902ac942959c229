"""One system of a learned family as a gymnasium environment.

    h ~ q(h) once per episode,        x_{t+1} = x_t + delta_t,        delta_t ~ N(mean, variance)(x_t, u_t, h)

as in `distpaml.model.rollouts`, one step at a time.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

from distpaml.ask_tell.forecasts import values_of
from distpaml.data import model_inputs
from distpaml.model.rollouts import known_latent
from distpaml.trained.model import TrainedModel
from distpaml.types import Array


class LearnedSystem(gymnasium.Env[Array, Any]):
    """Observations are the states in raw units, in the order of `model.states`; actions are the controls.

    `reset(options={"start": …})` begins at a given state, by name or in order.
    """

    def __init__(
        self,
        model: TrainedModel,
        task: Any,
        reward: Callable[[Array, Array, Array], float] | None = None,
        terminated: Callable[[Array], bool] | None = None,
        sampled: bool = True,
    ) -> None:
        self.model, self.task, self.sampled = model, task, sampled
        self._reward, self._terminated = reward, terminated
        self.latents = model.latents(task)
        self.steps = model.config.domain.trajectory_length - 1
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(model.states),), np.float64)
        low, high = np.array(list(model.limits.values())).T
        self.action_space: spaces.Space[Any]
        if model.domain.discrete_controls and len(low) == 1:
            self.action_space = spaces.Discrete(int(high[0] - low[0]) + 1, start=int(low[0]))
        else:
            self.action_space = spaces.Box(low, high, dtype=np.float64)
        self._low, self._high = low, high

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        given = (options or {}).get("start")
        if given is None:
            self.state = self.model.start(self.task, int(self.np_random.integers(2**31)))
        else:
            self.state = values_of(given, self.model.states, "start")
        spread = self.latents.variance[0].sqrt().numpy() if self.sampled else 0.0
        self.h = self.latents.mean[0].numpy() + spread * self.np_random.standard_normal(self.latents.mean.shape[1])
        self.step_number = 0
        return self.state.copy(), {"h": self.h}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        given = values_of(np.asarray(action).reshape(-1), self.model.controls, "action")
        control = np.clip(given, self._low, self._high)
        mean, deviation = self._delta(control)
        noise = self.np_random.standard_normal(len(mean)) if self.sampled else 0.0
        before, self.state = self.state, self.state + mean + deviation * noise
        self.step_number += 1
        reward = 0.0 if self._reward is None else float(self._reward(before, control, self.state))
        over = False if self._terminated is None else bool(self._terminated(self.state))
        return self.state.copy(), reward, over, self.step_number >= self.steps, {"deviation": deviation}

    def _delta(self, control: Array) -> tuple[Array, Array]:
        """Mean and standard deviation [D] of the change of the state, in raw units."""
        model, like = self.model.meta_model, self.latents.mean
        inputs = model.inputs.apply(model_inputs(self.state[None], control[None], self.model.angle_places))
        h = torch.as_tensor(self.h[None]).to(like)
        with torch.no_grad():
            mean, variance = known_latent(model.posterior, torch.as_tensor(inputs).to(like), h)
        return model.targets.undo(mean[0].numpy()), variance[0].sqrt().numpy() * model.targets.scale

    def __str__(self) -> str:
        return (
            f"<LearnedSystem of {self.model.config.name}: task {self.task}, {self.steps} steps of {self.model.dt:g} s>"
        )

    __repr__ = __str__
