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
# # Reproduce a figure of the paper
#
# Learning curves of experiment (i) on the cart-pole: PAML, uniform choice and Latin hypercube on the same seeds, with
# the oracle as the line to reach. Full size is 10 seeds, about a minute and a half for each run of 15 rounds on one
# core: use `python -m distpaml.sweep` for that, and this notebook for its figures. As it stands it is a small version.

# %%
# %matplotlib inline
import os
from pathlib import Path

import pandas as pd

from distpaml.config import load
from distpaml.report.collect import collect
from distpaml.report.figures import chosen, curves, differences
from distpaml.report.payload import payload
from distpaml.runtime.run_experiment import run_to_end

SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
METHODS = ["paml", "uni", "lhs", "oracle"]
SEEDS = range(3)
SIZE = ["rounds=5", "model.inducing=150", "fit.evaluations=60", "evaluation.grid=5"]
if SMOKE:
    SIZE = [
        "rounds=1",
        "domain.trajectory_length=20",
        "model.inducing=20",
        "fit.evaluations=6",
        "fit.restarts=1",
        "evaluation.grid=2",
    ]

# %% [markdown]
# Methods of a seed share the initial tasks, the controls and the test data, so they differ in their choices only.

# %%
folder = Path("runs/figure")
for seed in SEEDS:
    for method in METHODS:
        run_to_end(load("cartpole", [f"method={method}", f"seed={seed}", *SIZE]), folder / f"{method}-{seed}")
report = payload(collect([folder]))
(cartpole,) = report["experiments"]

# %% [markdown]
# Errors divided by the standard deviation of the test outputs: the same for all methods of a seed.

# %%
curves(cartpole, ("rmse", "nll"))

# %% [markdown]
# Errors divided by that of the training outputs, as in the authors' code. A method that picks violent tasks looks
# better here than it is.

# %%
curves(cartpole, ("rmse_paper", "nll_paper"))

# %% [markdown]
# Paired differences over the horizon with bootstrap intervals, and what was chosen.

# %%
differences(cartpole)

# %%
chosen(cartpole)

# %% [markdown]
# The paper's claims, each with its verdict. With three seeds they say little: see
# `distpaml.report.statistics.COVERAGE` for how often such intervals hold the truth.

# %%
pd.DataFrame(cartpole["claims"])[["claim", "method", "measure", "verdict", "number"]]
