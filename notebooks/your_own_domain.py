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
# # A domain of your own
#
# One class in one file: a box of task parameters, names of states, a start and a batched simulation. Here a mass on a
# spring, of which mass and stiffness differ from task to task.

# %%
# %matplotlib inline
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
SMALLER = (
    ["rounds=1", "domain.trajectory_length=20", "model.inducing=30", "fit.evaluations=15", "evaluation.grid=2"]
    if SMOKE
    else []
)

# %% [markdown]
# The class lies in a module, so that every process of a sweep can import it.

# %%
Path("notebook_spring.py").write_text('''
import numpy as np
from distpaml.domains import Domain


class Spring(Domain):
    """A mass on a spring, pushed by a force."""

    name = "spring"
    box = {"mass": (1.0, 2.0), "stiffness": (0.5, 3.0)}
    states = ("x", "x_dot")
    dt, trajectory_length, control_limit, alternations = 0.1, 100, 2.0, 5

    def start(self, rng):
        return 0.1 * rng.standard_normal(2)

    def simulate(self, tasks, starts, controls, threads=1):
        tasks, starts, controls = self.checked(tasks, starts, controls)
        states = [starts]
        for force in controls[:, :, 0].T:
            x, speed = states[-1].T
            speed = speed + self.dt * (force - tasks[:, 1] * x) / tasks[:, 0]
            states.append(np.stack([x + self.dt * speed, speed], axis=1))
        return np.stack(states, axis=1)
''')

# %% [markdown]
# Does it keep the contract: shapes, determinism, independence of batch and order, an effect of every parameter?

# %%
from distpaml.domains import check_domain, get_domain

check_domain(get_domain("notebook_spring:Spring")())

# %% [markdown]
# From then on it is a name like any other.

# %%
from distpaml.config import load
from distpaml.runtime.run_experiment import run_to_end

config = load(None, ["domain.name=notebook_spring:Spring", "method=paml-pool", "rounds=4", *SMALLER], quick=True)
folder = Path("runs/spring")
records = run_to_end(config, folder)
for record in records:
    print(f"{record.tasks} tasks: rmse {record.rmse:.4f}, nll {record.nll:.2f}")

# %% [markdown]
# What the model predicts for a spring that it has never seen, from its first transitions alone.

# %%
from distpaml.data.tasks import Tasks, TaskSet
from distpaml.model.storage import load_model
from distpaml.runtime.local import LocalSimulator

model = load_model(folder / f"round-{records[-1].round:02d}" / "model.safetensors")
task_set = TaskSet(config)
new = Tasks(np.array([[1.4, 2.2]]), np.array([[1.4, 2.2]]), task_set.test().starts[:1])
data = LocalSimulator(config).simulate(new).result()
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for axis, shots in zip(axes, (2, 10), strict=True):
    mean, variance = model.predict(data.inputs, model.infer(data.first(shots)))
    spread = 2.0 * np.sqrt(variance[0, :, 1])
    axis.plot(data.targets[0, :, 1], "k.", ms=3, label="true")
    axis.plot(mean[0, :, 1], "--", label="predicted ± 2 sd")
    axis.fill_between(range(len(spread)), mean[0, :, 1] - spread, mean[0, :, 1] + spread, alpha=0.25)
    axis.set(title=f"{shots} transitions seen", xlabel="step")
axes[0].set_ylabel("change of x_dot")
axes[0].legend()
