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
# # Look inside the latent space
#
# Every task has a latent variable h, of which the model knows q(h) = N(mean, variance). Systems that behave alike lie
# close together, and what is far from all known tasks is worth trying next: that is the utility.

# %%
# %matplotlib inline
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from distpaml.config import load
from distpaml.data.tasks import TaskSet
from distpaml.model.storage import load_model
from distpaml.records import read_arrays
from distpaml.runtime.local import LocalSimulator
from distpaml.runtime.run_experiment import run_to_end
from distpaml.select.candidates import Candidates
from distpaml.select.context import Embedded
from distpaml.select.surprisal import surprisal

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
SMALLER = (
    ["rounds=2", "domain.trajectory_length=20", "model.inducing=30", "fit.evaluations=15", "evaluation.grid=3"]
    if SMOKE
    else []
)

config = load("cartpole", ["method=paml-pool", *SMALLER], quick=True)
folder = Path("runs/latent")
records = run_to_end(config, folder)
last = records[-1].round
model = load_model(folder / f"round-{last:02d}" / "model.safetensors")

# %% [markdown]
# ## Where tasks lie
#
# Tasks that were chosen, with ellipses of two standard deviations, and all test tasks, whose latents were inferred from
# their trajectories. The model was never told that masses and lengths are two numbers: it has found so.

# %%
arrays = read_arrays(folder, last)
test = TaskSet(config).test().parameters
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for axis, column, name in zip(axes, range(2), config.domain.box, strict=True):
    dots = axis.scatter(*arrays["test_mean"].T, c=test[:, column], cmap="viridis", s=14)
    for mean, variance in zip(arrays["embedding_mean"], arrays["embedding_variance"], strict=True):
        axis.add_patch(Ellipse(mean, *(4.0 * np.sqrt(variance)), facecolor="none", edgecolor="k"))
    for number, mean in enumerate(arrays["embedding_mean"]):
        axis.annotate(str(max(0, number - config.initial + 1)), mean, xytext=(4, 4), textcoords="offset points")
    figure.colorbar(dots, label=name)
    axis.set(xlabel="h1", ylabel="h2")

# %% [markdown]
# ## Few observations, much uncertainty
#
# q(h) of one test task from more and more of its transitions: it shrinks onto the place that all of them give.

# %%
data = LocalSimulator(config).simulate(TaskSet(config).test()).result()
one = data.tasks(slice(len(data) // 2, len(data) // 2 + 1))
figure, axis = plt.subplots(figsize=(4.4, 3.6), layout="constrained")
for shots in (1, 3, 10, config.domain.trajectory_length - 1):
    latents = model.infer(one.first(shots))
    mean, variance = latents.mean[0].numpy(), latents.variance[0].numpy()
    (line,) = axis.plot(*mean, "o", label=f"{shots} transitions")
    axis.add_patch(Ellipse(mean, *(4.0 * np.sqrt(variance)), facecolor=line.get_color(), alpha=0.2))
axis.set(xlabel="h1", ylabel="h2")
axis.autoscale_view()
axis.legend()
# %% [markdown]
# ## What is worth trying next
#
# The surprisal of every point of the plane; a dot is a task that is known.

# %%
low, high = arrays["test_mean"].min(0) - 1.0, arrays["test_mean"].max(0) + 1.0
x, y = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
points = np.stack([x.ravel(), y.ravel()], axis=1)
known = Embedded(arrays["embedding_mean"], arrays["embedding_variance"])
utility = surprisal(Candidates.at(points), known).reshape(x.shape)
figure, axis = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
shades = axis.contourf(x, y, np.log1p(utility - utility.min()), 20, cmap="magma")
axis.plot(*arrays["embedding_mean"].T, "wo", mec="k")
figure.colorbar(shades, label="log(1 + surprisal − least)")
axis.set(xlabel="h1", ylabel="h2")
