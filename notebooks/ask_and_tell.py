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
# # Ask and tell
#
# A robot, a lab or any other program tries the tasks. Declare what can be set and what is measured; then ask, try,
# tell. Every call is safe on disk when it returns, so a notebook that is closed goes on with the next call.

# %%
# %matplotlib inline
import os
from pathlib import Path

import distpaml
from distpaml.examples.robot import record  # stands for your robot: it writes a csv file

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
arm = {
    "descriptors": {"payload": [0.5, 2.0], "length": [0.3, 0.8]},
    "states": ["angle", "speed"],
    "controls": ["torque"],
    "angles": ["angle"],
    "units": {"payload": "kg", "length": "m", "angle": "deg", "speed": "deg/s", "torque": "Nm"},
    "dt": 0.05,
}
Path("runs").mkdir(exist_ok=True)
experiment = distpaml.Experiment(arm, "runs/arm")
experiment

# %% [markdown]
# The first tasks are spread evenly; after three observations the model chooses.

# %%
for _ in range(4 if SMOKE else 8):
    (task,) = experiment.ask()
    record("runs/run.csv", **task.descriptor, joint="plain")
    print(task.id, task.descriptor, experiment.tell(task.id, "runs/run.csv").transitions, "transitions")
experiment

# %% [markdown]
# What the model makes of the tasks, and where a torque would lead for an arm that was never tried.

# %%
experiment.embeddings

# %%
forecast = experiment.predict({"payload": 1.0, "length": 0.5}, controls=[2.0] * 20, start={"angle": 180, "speed": 0})
axes = forecast.to_frame().plot(y="angle", yerr="angle_sd", ylabel="angle, deg", figsize=(6, 3))

# %% [markdown]
# How well a task is predicted that the model has not seen, against the number of tasks; and what would be asked next.
# `distpaml report runs/arm` draws both on a page.

# %%
learning = experiment.learning()
print(learning)
learning.to_frame()

# %%
experiment.preview()

# %% [markdown]
# The latent of an arm from one recording, and a forecast with it.

# %%
latent = experiment.infer("runs/run.csv")
experiment.predict(latent, controls=[2.0] * 20, start=[180.0, 0.0])
