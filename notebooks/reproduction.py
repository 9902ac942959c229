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
# # The paper, reproduced
#
# Every figure of the paper and its four claims, from the files in `notebooks/results`. As a script,
# `python notebooks/reproduction.py FOLDER` writes the figures and `summary.md` to a folder, `runs/reproduction` unless
# one is named. The runs are those of `tune_configs/paper.yaml`; those that are missing are named.
#
# Every error is shown under two measures. The *fair* one divides by the standard deviation of the test outputs, the
# same for all methods of a seed; the *paper's* by that of the training outputs, which depends on what was chosen.

# %%
# %matplotlib inline
import os
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pandas as pd

import distpaml
from distpaml.catalogue import HEADLINES, MEASURES, baselines
from distpaml.report.collect import collect
from distpaml.report.figures import SETTINGS, chosen, curves, overview
from distpaml.report.paper_figures import before_and_after, decoder_map, divisors, latent_choices, pixels
from distpaml.report.payload import payload
from distpaml.report.showcase import read_showcase
from distpaml.sweep.load import load_sweep
from distpaml.sweep.trials import grid_trials

SCRIPT = "__file__" in globals()
FIGURES = Path(sys.argv[1] if SCRIPT and sys.argv[1:] else "runs/reproduction")
RESULTS = Path(os.environ.get("DISTPAML_RESULTS", Path(distpaml.__file__).parents[1] / "notebooks" / "results"))
FIGURES.mkdir(parents=True, exist_ok=True)
summary = []
matplotlib.rcParams.update(SETTINGS)


def say(text):
    print(text, end="\n\n")
    summary.append(text)


def table(rows):
    """Rows of named values as markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(row[key]) for key in rows[0]] for row in rows)]
    say("\n".join(f"| {' | '.join(line)} |" for line in lines))


def show(name, figure):
    figure.savefig(FIGURES / f"{name}.png", dpi=150)
    if not SCRIPT:
        from IPython.display import display

        display(figure)


# %% [markdown]
# ## The runs
#
# Preset `distpaml` is our model, preset `paper` the paper's: 300 inducing points that move freely, one noise for all
# tasks.

# %%
planned = pd.DataFrame(
    [
        {"experiment": config.name, "preset": config.model.preset, "method": config.method, "seed": config.seed}
        for trial in grid_trials(load_sweep("paper"))
        for config in trial.runs.values()
    ]
)
files = [path for name in planned["experiment"].unique() if (path := RESULTS / f"{name}.parquet").exists()]
found = collect(files)
entries = {}  # by experiment and preset
for (experiment, preset), part in planned.groupby(["experiment", "preset"], sort=False):
    runs = [
        run
        for run in found.runs
        if run.experiment == experiment and run.config.get("model", {}).get("preset", "distpaml") == preset
    ]
    if not runs:
        say(f"{experiment}, preset {preset}: no runs yet.")
        continue
    entries[experiment, preset] = payload(replace(found, runs=runs))["experiments"][0]
    finished = pd.Series([run.method for run in runs if run.complete], dtype=object).value_counts()
    seeds = part["method"].value_counts(sort=False)
    counts = (f"{method} {finished.get(method, 0)} of {seeds[method]} seeds" for method in seeds.index)
    others = (f"{method} {count} seeds" for method, count in finished.items() if method not in seeds)
    say(f"{experiment}, preset {preset}: {', '.join([*counts, *others])}.")
commits = sorted({record.versions.get("commit", "unknown") for run in found.runs for record in run.records})
if commits:
    say(f"Commit of the code: {', '.join(commits)}.")
for problem in found.problems:
    say(f"{Path(problem.path).name}: {problem.said}")

# %% [markdown]
# ## Learning curves
#
# Mean over seeds ± 1 standard error. First all experiments with descriptors of numbers, our model, by the fair measure;
# then each of them, left the fair measure, right the paper's.

# %%
ours = [entry for (_, preset), entry in entries.items() if preset == "distpaml"]
if of_numbers := [entry for entry in ours if entry["facts"]["descriptor"] != "image"]:
    show("overview", overview(of_numbers, HEADLINES[:2]))
for (experiment, preset), entry in entries.items():
    show(f"curves-{experiment}-{preset}", curves(entry, HEADLINES))

# %% [markdown]
# The same in numbers, over the seeds that are finished: the mean over the rounds, the error after the last one, and
# the paired difference of the mean over the rounds to UNI and to LHS, with its 95 % interval and the p-value of the
# sign test over seeds. Below zero is better.


# %%
def plus_minus(pair):
    return "" if pair[0] is None else f"{pair[0]:.3f}" + ("" if pair[1] is None else f" ± {pair[1]:.3f}")


def with_interval(part):
    if part is None:
        return ""
    if part["low"] is None:
        return f"{part['mean']:+.3f}"
    return f"{part['mean']:+.3f} [{part['low']:+.3f}, {part['high']:+.3f}], p = {part['p']:.3f}"


for measure in HEADLINES if entries else ():
    say(f"### {MEASURES[measure].label} ({MEASURES[measure].unit})")
    table(
        [
            {
                "experiment": experiment,
                "preset": preset,
                "method": entry["groups"][row["group"]]["label"],
                "seeds": row["seeds"],
                "mean over rounds": plus_minus(row["area"]),
                "last round": plus_minus(row["last"]),
                **{f"− {name}": with_interval(row.get(f"area-{name}")) for name in baselines()},
            }
            for (experiment, preset), entry in entries.items()
            for row in entry["table"][measure]
        ]
    )

# %% [markdown]
# All experiments together, by the fair measure: the interquartile mean of the paired differences (RMSE relative to the
# baseline's, NLL in nats), the probability that a method is better on a random seed of a random experiment, both with
# 95 % intervals by a stratified bootstrap, and the p-value of the sign test over all pairs.


# %%
def of_three(values, form):
    """A value and its interval, if there is one."""
    first, *interval = (f"{value:{form}}" for value in values if value is not None)
    return f"{first} [{', '.join(interval)}]" if interval else first


for preset in planned["preset"].unique():
    runs = [run for run in found.runs if run.config.get("model", {}).get("preset", "distpaml") == preset]
    if rows := [row for row in payload(replace(found, runs=runs))["together"] if row["measure"] in HEADLINES[:2]]:
        say(f"### All experiments together, preset {preset}")
        table(
            [
                {
                    "method": row["method"],
                    "against": row["baseline"],
                    "measure": MEASURES[row["measure"]].label,
                    "experiments": f"{row['experiments']:.0f}",
                    "pairs": f"{row['seeds']:.0f}",
                    "difference": of_three(row["middle"], "+.3f"),
                    "probability of improvement": of_three(row["better"], ".2f"),
                    "p": f"{row['p']:.4f}",
                }
                for row in rows
            ]
        )

# %% [markdown]
# After so many rounds, means over seeds 0 to 4, which both presets have:

# %%
AFTER = [0, 1, 3, 5, 8, 12, 15]
rounds = distpaml.results(files) if entries else pd.DataFrame()
for measure in ("rmse", "nll", "coverage") if entries else ():
    say(f"### {MEASURES[measure].label} by round, seeds 0 to 4")
    first = rounds[rounds["round"].isin(AFTER) & (rounds["seed"] < 5)]
    means = first.pivot_table(measure, ["experiment", "preset", "method"], "round")
    table(
        [
            dict(zip(means.index.names, names, strict=True)) | {f"{r}": f"{value:.3f}" for r, value in row.items()}
            for names, row in means.iterrows()
        ]
    )

# %% [markdown]
# What the runs took: the seconds of all their rounds, one core each, on machines that had other work as well. So the
# median is what to plan with.

# %%
if entries:
    say("### Cost")
    runs = rounds.filter(like="seconds.").sum(axis=1).groupby([rounds[key] for key in ("experiment", "preset", "run")])
    seconds = runs.sum().groupby(["experiment", "preset"]).agg(["count", "median", "max", "sum"])
    table(
        [
            {
                "experiment": experiment,
                "preset": preset,
                "runs": f"{row['count']:.0f}",
                "seconds, median": f"{row['median']:.0f}",
                "slowest": f"{row['max']:.0f}",
                "core-hours by the median": f"{row['count'] * row['median'] / 3600:.2f}",
                "hours it took": f"{row['sum'] / 3600:.2f}",
            }
            for (experiment, preset), row in seconds.iterrows()
        ]
    )

# %% [markdown]
# ## The claims
#
# 1. Experiment (i): PAML is below UNI and LHS in NLL and RMSE through the horizon, with a steep first drop and less
#    spread over seeds.
# 2. Experiment (ii), partially observed parameters: one task that PAML adds is worth about five of the baselines', and
#    it chooses short poles again and again.
# 3. Experiment (iii), a superfluous parameter ε: PAML keeps it near 0.5 and explores mass and length.
# 4. Experiment (iv), pixels: PAML reaches the oracle's level faster than UNI.
#
# The rule of each verdict is in `distpaml/report/claims.py`, the same for all methods, measures and presets.

# %%
NUMBERS = {"full": 1, "partial": 2, "noisy": 3, "image": 4}
verdicts = [
    {"about": NUMBERS[entry["facts"]["descriptor"]], "experiment": experiment, "preset": preset, **claim}
    for (experiment, preset), entry in entries.items()
    for claim in entry["claims"]
]
for about in NUMBERS.values():
    mine = [verdict for verdict in verdicts if verdict["about"] == about]
    for preset in planned["preset"].unique():
        for kind, measures in {
            "fair measure": HEADLINES[:2],
            "paper's measure": HEADLINES[2:],
            "choices": [None],
        }.items():
            tests = [v["verdict"] for v in mine if v["preset"] == preset and v["measure"] in measures]
            said = ", ".join(f"{tests.count(verdict)} {verdict}" for verdict in dict.fromkeys(tests))
            if tests:
                say(f"Claim {about}, preset {preset}, {kind}: of {len(tests)} tests {said}.")
    if not mine:
        say(f"Claim {about}: no runs of a method that chooses yet.")

# %% [markdown]
# Every test with its numbers.

# %%
for rule in dict.fromkeys(verdict["rule"] for verdict in verdicts):
    mine = [verdict for verdict in verdicts if verdict["rule"] == rule]
    say(f"### Claim {mine[0]['about']}: {mine[0]['claim']}\n\nSupported if {rule}.")
    table(
        [
            {
                "experiment": verdict["experiment"],
                "preset": verdict["preset"],
                "method": verdict["method"],
                "tested": MEASURES[verdict["measure"]].label if verdict["measure"] else verdict["claim"],
                "verdict": verdict["verdict"],
                "numbers": verdict["number"],
            }
            for verdict in mine
        ]
    )


# %% [markdown]
# ## The released reading
#
# Experiment (i) as the authors' released code has it (`tune_configs/released.yaml`): a force of ±10 N, a rail of ±1.8 m
# with soft stops, and the paper's model. That code printed, for one seed, the RMSE in units of the training outputs,
# summed over 100 test tasks and 4 outputs: 317 after the 3 initial tasks; PAML 103 and 79 after one and two more, UNI
# 240 and 238. The table shows ours in the same units, as means instead of sums.

# %%
AUTHORS = {"paml": (317, 103, 79), "uni": (317, 240, 238)}
if (RESULTS / "released.parquet").exists():
    released = distpaml.results(RESULTS / "released.parquet")
    released = released[released["round"].isin([*AFTER, 2])]
    for measure in ("rmse_paper", "rmse", "nll"):
        say(f"### {MEASURES[measure].label}, the released reading")
        means = released.pivot_table(measure, "method", "round")
        rows = [{"": name} | {f"{r}": f"{value:.3f}" for r, value in row.items()} for name, row in means.iterrows()]
        if measure == "rmse_paper":
            for name, sums in AUTHORS.items():
                shown = dict(zip(("0", "1", "2"), (f"{value / 400:.3f}" for value in sums), strict=True))
                rows.append(dict.fromkeys(rows[0], "") | {"": f"{name}, the authors' code"} | shown)
        table(rows)
else:
    say("The released reading: no runs yet.")

# %% [markdown]
# ## Which utility
#
# Every utility and both baselines on three experiments (`tune_configs/league.yaml`): means over all rounds and seeds.
# The last column is the mean over the experiments of the ratio to LHS (RMSE) or the difference to it (NLL); below one,
# and below zero, is better.

# %%
if (RESULTS / "league.parquet").exists():
    league = distpaml.results(RESULTS / "league.parquet")
    league["utility"] = league.get("selection.utility", league["method"]).where(
        league["method"] == "paml-pool", league["method"]
    )
    seeds, by = (", ".join(map(str, sorted(league[key].unique()))) for key in ("seed", "versions.commit"))
    say(f"The league: seeds {seeds}; commit of the code: {by}.")
    for measure in HEADLINES[:2]:
        say(f"### {MEASURES[measure].label}, the league")
        means = league.pivot_table(measure, "utility", "experiment")
        means["against LHS"] = (means / means.loc["lhs"] if measure == "rmse" else means - means.loc["lhs"]).mean(
            axis=1
        )
        rows = means.sort_values("against LHS").iterrows()
        table([{"": name} | {key: f"{value:.3f}" for key, value in row.items()} for name, row in rows])
else:
    say("The league: no runs yet.")

# %% [markdown]
# ## Single runs
#
# The latent space of experiment (iii) with the order of choices: black dots are the initial tasks, bars two standard
# deviations, colours the column of the descriptor; the last column, ε, has no effect.


# %%
def examples(pattern, what):
    """The runs kept for a figure, by name; says so if there are none."""
    paths = sorted(RESULTS.glob(pattern))
    if not paths:
        command = "python -m distpaml.report.showcase SWEEP --out notebooks/results"
        say(f"{what}: no run is kept for it yet; `{command}` keeps one.")
    return {path.stem: read_showcase(path) for path in paths}


for name, example in examples("cartpole_noisy-*.npz", "Latent space of experiment (iii)").items():
    show(f"latent-{name}", latent_choices(example))

# %% [markdown]
# Pixels as descriptors, experiment (iv): some of the hundred images, and the first that were chosen.

# %%
for name, example in examples("cartpole_images-*.npz", "Images of experiment (iv)").items():
    show(f"pixels-{name}", pixels(example))

# %% [markdown]
# Predictions for four test tasks, before and after the choices: the change of the pole's angular velocity in one step,
# dots are the truth, bands two standard deviations.

# %%
for name, example in examples("cartpole-*.npz", "Predictions before and after").items():
    show(f"predictions-{name}", before_and_after(example))

# %% [markdown]
# ## Trap 1: where the decoder reverts to
#
# The paper ranks points of a latent grid and decodes them to descriptors by a GP with mean zero. Far from the data a GP
# returns to its mean, here to 0, which is below every lower bound of the box. On the way out the decoded descriptor
# passes the bounds, so the last valid points (inside the white line), which are the most surprising ones, decode to the
# lower corner of the box. PAML chooses there again and again; the paper reports it as a finding (short poles,
# ε near 0.5). Methods that rank real tasks instead (`paml-pool`, `paml-plus`) do not have the fault.

# %%
for name, example in examples("*-paml.npz", "What the decoder of paml decodes").items():
    if "decoded" in example:
        show(f"decoder-{name}", decoder_map(example))

# %% [markdown]
# What was chosen, all seeds: diamonds are initial tasks.

# %%
for (experiment, preset), entry in entries.items():
    if (figure := chosen(entry)) is not None:
        show(f"chosen-{experiment}-{preset}", figure)

# %% [markdown]
# ## Trap 2: what errors are divided by
#
# The released code divides errors by the standard deviation of the *training* outputs. Short poles and light masses
# move violently, so a method that chooses them gets a larger divisor and a smaller error, whatever it has learned. The
# figure shows that divisor over the fair one, s_train / s_test: where a method lies above the others, the paper's
# measure flatters it by as much.

# %%
for preset in planned["preset"].unique():
    if mine := [entry for (_, other), entry in entries.items() if other == preset]:
        show(f"divisors-{preset}", divisors(mine))

# %%
(FIGURES / "summary.md").write_text("\n\n".join(summary) + "\n", encoding="utf-8")
f"{len(list(FIGURES.glob('*.png')))} figures and summary.md: {FIGURES}"
