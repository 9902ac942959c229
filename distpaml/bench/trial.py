"""A whole trial on one thread: every round of an experiment, beside the cost of the authors' code on one core.

The other side is not run, it would take hours. It is extrapolated from measurements of the authors' code on one core
(cart-pole, 300 inducing points, float64): a training step takes 57, 134 and 219 ms at 3, 10 and 18 tasks, and one
evaluation of 100 test tasks 290 s. In between, steps are interpolated; a round has the paper's steps (`fit.adam_steps`)
and evaluations go with the number of test tasks. For systems other than the cart-pole it is a rougher guess.
Experiment (iv) was never released: `bench.images` times the steps of its schedule here, and evaluations are left out.

    trial            the sum of all stages
    trial-fit        training alone
    trial-evaluate   evaluation alone
"""

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from distpaml.bench import Result
from distpaml.bench.images import paper_fit_seconds, race
from distpaml.config import ExperimentConfig, load, shipped
from distpaml.rounds import Record
from distpaml.runtime.run_experiment import run_to_end

STEP_TASKS, STEP_SECONDS = (3, 10, 18), (0.057, 0.134, 0.219)
EVALUATION_SECONDS, EVALUATION_TASKS = 290.0, 100


def run(options: Namespace, overrides: Sequence[str] = ()) -> list[Result]:
    overrides = ["runtime.threads=1", *(getattr(options, "set", None) or ()), *overrides]
    config = load(_full_name(options.experiment or "cartpole"), overrides)
    with TemporaryDirectory() as folder:
        records = run_to_end(config, Path(folder) / "run", finished=_show)
    ours = Counter[str]()
    for record in records:
        ours.update(record.seconds)
    print("seconds by stage: " + ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in ours.items()), flush=True)
    if config.descriptor.kind == "image":
        steps = getattr(options, "steps", None) or config.fit.adam_steps
        race(config, steps)
        theirs = paper_fit_seconds(config, [record.tasks for record in records])
        against = f"the paper's {config.fit.adam_steps} steps a round, extrapolated from timed steps"
        return [Result("trial-fit", theirs / ours["fit"], ours["fit"], theirs, "s", against)]
    other = authors_seconds(config, [record.tasks for record in records])
    what = "the authors' code on one core, extrapolated from measured steps and evaluations"
    sides = {
        "trial": (ours.total(), sum(other.values())),
        "trial-fit": (ours["fit"], other["fit"]),
        "trial-evaluate": (ours["evaluate"], other["evaluate"]),
    }
    return [Result(name, theirs / mine, mine, theirs, "s", what) for name, (mine, theirs) in sides.items()]


def authors_seconds(config: ExperimentConfig, tasks: Sequence[int]) -> dict[str, float]:
    """What training and evaluation would cost the authors' code, for models of so many tasks, one after the other."""
    steps = np.interp(tasks, STEP_TASKS, STEP_SECONDS) * config.fit.adam_steps
    tests = config.evaluation.grid ** len(config.domain.box)
    return {"fit": float(steps.sum()), "evaluate": len(tasks) * EVALUATION_SECONDS * tests / EVALUATION_TASKS}


def _full_name(experiment: str) -> str:
    """`images` is short for the one shipped experiment whose name ends so."""
    ending = [name for name in shipped() if name.endswith(f"_{experiment}")]
    return ending[0] if experiment not in shipped() and len(ending) == 1 else experiment


def _show(record: Record) -> None:
    print(
        f"round {record.round}: {record.tasks} tasks, rmse {record.rmse:.4f}, nll {record.nll:.4f}, "
        f"{sum(record.seconds.values()):.1f} s",
        flush=True,
    )
