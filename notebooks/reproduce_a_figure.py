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
# Learning curves of experiment (i) on the cart-pole: the methods on the same seeds, the oracle as the line to reach.
#
# `SWEEP` is the folder of any sweep or of any runs. The full figure is `python -m distpaml.sweep cartpole --out
# sweeps/cartpole`, ten seeds of five methods; set `SWEEP` to it. Where there is no such folder, a small version is run.

# %%
# %matplotlib inline
import os
from pathlib import Path

import pandas as pd

import distpaml
from distpaml.config import load
from distpaml.report.collect import collect
from distpaml.report.figures import chosen, curves, differences
from distpaml.report.payload import payload
from distpaml.runtime.run_experiment import run_to_end

SWEEP = Path(os.environ.get("DISTPAML_SWEEP", "runs/figure"))
SMOKE = os.environ.get("DISTPAML_SMOKE") == "1"
METHODS = ["paml-pool", "paml", "uni", "lhs", "oracle"]
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
if not SWEEP.exists():
    for seed in SEEDS:
        for method in METHODS:
            run_to_end(load("cartpole", [f"method={method}", f"seed={seed}", *SIZE]), SWEEP / f"{method}-{seed}")
last = distpaml.results(SWEEP).groupby(["experiment", "method", "seed"]).tail(1)
last.groupby(["experiment", "method"])[["rmse", "nll"]].agg(["mean", "sem"])

# %%
report = payload(collect([SWEEP]))
first = report["experiments"][0]

# %% [markdown]
# Errors divided by the standard deviation of the test outputs: the same for all methods of a seed.

# %%
curves(first, ("rmse", "nll"))

# %% [markdown]
# Errors divided by that of the training outputs, as in the authors' code. A method that picks violent tasks looks
# better here than it is.

# %%
curves(first, ("rmse_paper", "nll_paper"))

# %% [markdown]
# Paired differences over the horizon with bootstrap intervals, and what was chosen.

# %%
differences(first)

# %%
chosen(first)

# %% [markdown]
# The paper's claims, each with its verdict. With three seeds they say little: see
# `distpaml.report.statistics.COVERAGE` for how often such intervals hold the truth.

# %%
pd.DataFrame(first["claims"])[["claim", "method", "measure", "verdict", "number"]]
