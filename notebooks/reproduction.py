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
# one is named. The runs are those of `tune_configs/paper.yaml` and `tune_configs/released.yaml`; those that are missing
# are named.
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
from distpaml.catalogue import DEFAULT, HEADLINES, MEASURES
from distpaml.report import paper_tables
from distpaml.report.collect import collect
from distpaml.report.figures import SETTINGS, chosen, curves, overview
from distpaml.report.paper_figures import before_and_after, decoder_map, divisors, latent_choices, pixels
from distpaml.report.payload import payload
from distpaml.report.showcase import read_showcase
from distpaml.report.statistics import COVERAGE
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
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([row[key] for key in rows[0]] for row in rows)]
    say("\n".join(f"| {' | '.join(line)} |" for line in lines))


def show(name, figure):
    figure.savefig(FIGURES / f"{name}.png", dpi=150)
    if not SCRIPT:
        from IPython.display import display

        print(name)
        display(figure)


# %% [markdown]
# ## The runs
#
# Preset `distpaml` is our model, preset `paper` the paper's: 300 inducing points that move freely, one noise for all
# tasks. `released` is the paper's model on experiment (i) as the authors' released code has it, see below.

# %%
planned = pd.DataFrame(
    [
        {"experiment": config.name, "preset": config.model.preset, "method": config.method, "seed": config.seed}
        for trial in grid_trials(load_sweep("paper"))
        for config in trial.runs.values()
    ]
)


def preset_of(run):
    return run.config.get("model", {}).get("preset", "distpaml")


def finished(paths):
    """The runs that have all their rounds; says how many have not, and leaves them out."""
    everything = collect([path for path in paths if path.exists()])
    complete = [run for run in everything.runs if run.complete]
    if len(complete) < len(everything.runs):
        missing = len(everything.runs) - len(complete)
        say(f"Left out: {missing} of {len(everything.runs)} runs, which are not finished.")
    return replace(everything, runs=complete)


found = finished([RESULTS / f"{name}.parquet" for name in planned["experiment"].unique()])
entries = {}  # by experiment and preset
for (experiment, preset), part in planned.groupby(["experiment", "preset"], sort=False):
    runs = [run for run in found.runs if run.experiment == experiment and preset_of(run) == preset]
    if not runs:
        say(f"{experiment}, preset {preset}: no runs yet.")
        continue
    entries[experiment, preset] = payload(replace(found, runs=runs))["experiments"][0]
    there = pd.Series([run.method for run in runs], dtype=object).value_counts()
    seeds = part["method"].value_counts(sort=False)
    counts = (f"{method} {there.get(method, 0)} of {seeds[method]} seeds" for method in seeds.index)
    others = (f"{method} {count} seeds" for method, count in there.items() if method not in seeds)
    say(f"{experiment}, preset {preset}: {', '.join([*counts, *others])}.")
PRESETS = [*planned["preset"].unique(), "released"]
published = finished([RESULTS / "released.parquet"])
if published.runs:
    entry = entries["cartpole", "released"] = payload(published)["experiments"][0]
    say("Released: " + ", ".join(f"{group['label']} {group['finished']} seeds" for group in entry["groups"]) + ".")
else:
    say("The released reading: no runs yet.")
runs = [*found.runs, *published.runs]
commits = sorted({record.versions.get("commit", "unknown") for run in runs for record in run.records})
if commits:
    say(f"Commit of the code: {', '.join(commits)}.")
for problem in [*found.problems, *published.problems]:
    say(f"{Path(problem.path).name}: {problem.said}")

# %% [markdown]
# ## Learning curves
#
# Mean over seeds ± 1 standard error. First all experiments with descriptors of numbers by the fair measure, our model
# and the paper's; then each of all six, left the fair measure, right the paper's. The axes of the RMSE are logarithmic,
# those of an NLL that exceeds 5 are compressed beyond ±1. Where methods differ in their number of seeds, the legend or
# the title says so.

# %%
for preset, name in (("distpaml", "overview"), ("paper", "overview-paper")):
    mine = [entry for (_, other), entry in entries.items() if other == preset]
    if of_numbers := [entry for entry in mine if entry["facts"]["descriptor"] != "image"]:
        show(name, overview(of_numbers, HEADLINES[:2]))
for (experiment, preset), entry in entries.items():
    show(f"curves-{experiment}-{preset}", curves(entry, HEADLINES))

# %% [markdown]
# The same in numbers, over the seeds that are finished: the mean over the rounds, the error after the last one, and
# the paired difference of the mean over the rounds to UNI and to LHS, with its 95 % interval and the p-value of the
# sign test over seeds. Below zero is better. A difference is over the seeds that both have finished, and names their
# number if it is not that of the row.

# %%
if entries:
    say(
        "Intervals of few seeds are too short: a 95 % one holds the true mean of five normal differences in "
        f"{COVERAGE[5]:.0%} of cases, of ten in {COVERAGE[10]:.0%}. A sign test over five seeds cannot come below "
        f"p = {2 / 2**5:.3f}, over ten not below {2 / 2**10:.3f}. Nothing is corrected for the number of comparisons."
    )
for measure in HEADLINES if entries else ():
    say(f"### {MEASURES[measure].label} ({MEASURES[measure].unit})")
    table(paper_tables.compared(entries, measure))

# %% [markdown]
# Seeds 0 to 4 alone, on which the default method was judged once, after it had been chosen on others.

# %%
few = [run for run in found.runs if run.seed < 5 and preset_of(run) == "distpaml"]
judged = {
    (entry["name"], "distpaml"): entry
    for entry in payload(replace(found, runs=few))["experiments"]
    if any(group["method"] == DEFAULT.name for group in entry["groups"])
}
for measure in HEADLINES[:2] if judged else ():
    say(f"### {MEASURES[measure].label}, seeds 0 to 4 alone")
    table(paper_tables.compared(judged, measure))

# %% [markdown]
# All experiments together, by the fair measure: the interquartile mean of the paired differences (RMSE relative to the
# baseline's, NLL in nats), the probability that a method is better on a random seed of a random experiment, both with
# 95 % intervals by a stratified bootstrap, and the p-value of the sign test over all pairs. An experiment with more
# seeds weighs more in the mean and in the sign test, not in the probability.


# %%
for preset in planned["preset"].unique():
    runs = [run for run in found.runs if preset_of(run) == preset]
    if rows := [row for row in payload(replace(found, runs=runs))["together"] if row["measure"] in HEADLINES[:2]]:
        say(f"### All experiments together, preset {preset}")
        table(paper_tables.together(rows))

# %% [markdown]
# After so many rounds, means over those of seeds 0 to 4 that are there:

# %%
AFTER = [0, 1, 3, 5, 8, 12, 15]
files = sorted({run.path.parent for run in found.runs})
rounds = distpaml.results(files) if files else pd.DataFrame()
for measure in ("rmse", "nll", "coverage") if len(rounds) else ():
    say(f"### {MEASURES[measure].label} by round, seeds 0 to 4")
    table(paper_tables.by_round(rounds[rounds["seed"] < 5], measure, AFTER, ["experiment", "preset", "method"]))

# %% [markdown]
# What the runs took: the seconds of all their rounds, one core each, on machines that had other work as well. So the
# medians are what to plan with; they are taken by method, because an oracle is fitted once and others sixteen times.

# %%
released = (
    distpaml.results(RESULTS / "released.parquet").assign(preset="released") if published.runs else pd.DataFrame()
)
if entries:
    say("### Cost")
    table(paper_tables.cost(pd.concat([part for part in (rounds, released) if len(part)])))

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
# Every claim is tested by rules that are the same for all methods, measures and presets (`distpaml/report/claims.py`;
# each stands above its table below). A claim is *supported* if all of its tests are, *in part* if some are. The paper's
# own method and model are `paml` with preset `paper`, in experiment (iv) `paml` with ours.

# %%
tests = paper_tables.tests(entries)
if tests:
    say("### The claims, with the number of tests that support them")
    table(paper_tables.verdicts(tests))
    say(
        f"{len(tests)} tests in all, not corrected for their number; those of one experiment share their seeds, and "
        "its measures are much alike. Intervals of five seeds are too short, see above."
    )
for about in paper_tables.CLAIMS.values():
    if all(test["about"] != about for test in tests):
        say(f"Claim {about}: no runs of a method that chooses yet.")

# %% [markdown]
# Every test with its numbers. Brackets hold 95 % intervals over seeds.

# %%
for rule in dict.fromkeys(test["rule"] for test in tests):
    mine = [test for test in tests if test["rule"] == rule]
    say(f"### Claim {mine[0]['about']}: {mine[0]['claim']}\n\nSupported if {rule}.")
    table(
        [
            {
                "experiment": test["experiment"],
                "preset": test["preset"],
                "method": test["method"],
                "tested": MEASURES[test["measure"]].label if test["measure"] else test["claim"],
                "verdict": test["verdict"],
                "numbers": test["number"],
            }
            for test in mine
        ]
    )


# %% [markdown]
# ## The released reading
#
# Experiment (i) as the authors' released code has it (`tune_configs/released.yaml`): a force of ±10 N, a rail of ±1.8 m
# with soft stops, and the paper's model; curves, differences and verdicts are those of preset `released` above. That
# code printed, for one seed, the RMSE in units of the training outputs, summed over 100 test tasks and 4 outputs: 317
# after the 3 initial tasks; PAML 103 and 79 after one and two more, UNI 240 and 238. Predicting a constant gives, in
# the same units, 703; 267 and 245; 627 and 646: most of PAML's fall is that of the unit. The first table shows ours
# beside these, as means instead of sums. Ours takes the root after the mean over outputs, which is never smaller than
# the mean of their roots, so compare how curves fall, not where they lie.

# %%
AUTHORS = {
    "paml, the authors' code": (317, 103, 79),
    "uni, the authors' code": (317, 240, 238),
    "a constant on the tasks of paml, the authors' code": (703, 267, 245),
    "a constant on the tasks of uni, the authors' code": (703, 627, 646),
}
if published.runs:
    for measure in ("rmse_paper", "rmse", "nll"):
        say(f"### {MEASURES[measure].label}, the released reading")
        rows = paper_tables.by_round(released, measure, [*AFTER, 2], ["method"])
        if measure == "rmse_paper":
            for name, sums in AUTHORS.items():
                shown = {"method": name, "seeds": "1"} | {f"{n}": f"{value / 400:.3f}" for n, value in enumerate(sums)}
                rows.append(dict.fromkeys(rows[0], "") | shown)
        table(rows)

# %% [markdown]
# ## Which utility
#
# Every utility and both baselines on three experiments (`tune_configs/league.yaml`): means over all rounds and seeds.
# The last column is the mean over the experiments of the ratio to LHS (RMSE) or the difference to it (NLL); below one,
# and below zero, is better. Two seeds have no interval worth showing: near rows may be the other way round.

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
# deviations where they are wider than the dot, colours the column of the descriptor; the last column, ε, has no effect.


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
of_paml = examples("*-paml.npz", "What the decoder of paml decodes")
decoded = {name: example for name, example in of_paml.items() if "decoded" in example}
for name, example in decoded.items():
    show(f"decoder-{name}", decoder_map(example))
if of_paml and not decoded:
    say("What the decoder of paml decodes: the runs that are kept have images as descriptors, which nothing decodes.")

# %% [markdown]
# What was chosen, all seeds: diamonds are initial tasks. In experiment (ii) the mass was drawn, not chosen. Of
# experiment (iii) a second figure shows ε.

# %%
for (experiment, preset), entry in entries.items():
    for shown, name in (((0, 1), "chosen"), ((0, 2), "chosen-third")):
        if (figure := chosen(entry, shown)) is not None:
            show(f"{name}-{experiment}-{preset}", figure)

# %% [markdown]
# ## Trap 2: what errors are divided by
#
# The released code divides errors by the standard deviation of the *training* outputs. Short poles and light masses
# move violently, so a method that chooses them gets a larger divisor and a smaller error, whatever it has learned. The
# figure shows that divisor over the fair one, s_train / s_test: where a method lies above the others, the paper's
# measure flatters it by as much.

# %%
for preset in PRESETS:
    if mine := [entry for (_, other), entry in entries.items() if other == preset]:
        show(f"divisors-{preset}", divisors(mine))

# %%
(FIGURES / "summary.md").write_text("\n\n".join(summary) + "\n", encoding="utf-8")
f"{len(list(FIGURES.glob('*.png')))} figures and summary.md: {FIGURES}"
