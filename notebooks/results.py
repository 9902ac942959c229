# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Results as data, runs as objects
#
# Two methods on the same seed, their rounds as one data frame, and the model of one of them: predictions by name and in
# raw units, latents of new systems, and the learned system as a gymnasium environment.

# %%
# %matplotlib inline
import os
from pathlib import Path

import numpy as np

import distpaml
from distpaml.config import load
from distpaml.runtime.run_experiment import run_to_end

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
SIZE = ["rounds=1", "domain.trajectory_length=20", "model.inducing=30", "evaluation.grid=2"] if SMOKE else []
folder = Path("runs/results")
for method in ("paml-pool", "lhs"):
    run_to_end(load("cartpole", [f"method={method}", "seed=1", *SIZE], quick=True), folder / method)

# %% [markdown]
# A row per run and round. `distpaml.results` takes a sweep, a run, or a folder of them.

# %%
table = distpaml.results(folder)
table[["method", "seed", "round", "tasks", "rmse", "nll", "coverage", "seconds.fit"]]

# %%
axes = table.pivot_table(index="added", columns="method", values="rmse").plot(
    marker="o", xlabel="added tasks", ylabel="RMSE, standard deviations", figsize=(6, 3)
)

# %% [markdown]
# A row per chosen task.

# %%
chosen = distpaml.results(folder, choices=True).query("round > 0")
chosen[["method", "round", "pole_mass", "pole_length", "utility"]]

# %% [markdown]
# A run as an object.

# %%
run = distpaml.load_run(folder / "paml-pool")
run

# %%
run.model.embeddings

# %% [markdown]
# Where does a constant push lead? Row 0 is the start; `_sd` is one standard deviation of the sampled rollouts.

# %%
forecast = run.model.predict({"pole_mass": 1.0, "pole_length": 1.0}, controls=[5.0] * 12)
frame = forecast.to_frame()
axes = frame.plot(y="theta", yerr="theta_sd", ylabel="theta, rad", figsize=(6, 3))

# %% [markdown]
# The latent of a system that nobody described, from a trajectory alone.

# %%
run.model.infer(frame.assign(control=5.0))

# %% [markdown]
# The same system for a planner: the best of 64 constant pushes.

# %%
env = run.as_env({"pole_mass": 1.0, "pole_length": 1.0}, reward=lambda x, u, after: float(np.cos(after[1])))


def value(push: float) -> float:
    env.reset(seed=0)
    return sum(env.step([push])[1] for _ in range(10))


best = max(np.linspace(env.action_space.low[0], env.action_space.high[0], 64), key=value)
f"push with {best:.1f} N: {value(best):.2f}"
