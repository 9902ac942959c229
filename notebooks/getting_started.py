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
# # Getting started
#
# A family of systems, here cart-poles of every mass and length, and a budget of experiments. After each experiment
# distpaml fits one model of the whole family and picks the system that will teach it most.
#
# `DISTPAML_SMOKE=1` shrinks this notebook to some seconds; otherwise it takes about a minute.

# %%
# %matplotlib inline
import os
from pathlib import Path

import pandas as pd

from distpaml.config import load
from distpaml.report import write_report
from distpaml.runtime.run_experiment import run_to_end

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
SMALLER = (
    ["rounds=2", "domain.trajectory_length=20", "model.inducing=30", "fit.evaluations=15", "evaluation.grid=2"]
    if SMOKE
    else []
)

# %% [markdown]
# An experiment is one frozen object. It comes from a file or a shipped name, and any key can be overridden; what is
# wrong is one sentence that names the nearest right key.

# %%
config = load("cartpole", ["method=paml-pool", "seed=1", *SMALLER], quick=True)
print(config.to_yaml())

# %% [markdown]
# A run leaves a directory. Stopped at any moment and started again, it goes on from the last finished round.

# %%
folder = Path("runs/getting-started")
records = run_to_end(config, folder)
table = pd.DataFrame([record.model_dump(include={"round", "tasks", "rmse", "nll"}) for record in records])
table["chosen"] = [", ".join(f"{x:.2f}" for x in record.added[-1].task) if record.round else "" for record in records]
table.set_index("round")

# %% [markdown]
# `rmse` is in standard deviations of the test outputs, `nll` in nats per observed number.

# %%
axes = table.plot(x="tasks", y=["rmse", "nll"], subplots=True, layout=(1, 2), figsize=(8, 3), marker="o")

# %% [markdown]
# The same as a page with all figures, which opens in any browser: `python -m distpaml.report runs/getting-started`.

# %%
write_report([folder], folder / "report")
