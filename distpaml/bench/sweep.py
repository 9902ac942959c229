"""What Ray and Tune cost: a sweep on two cores against the same trials in two plain processes.

Both sides are timed as commands, from the start of Python to its end, and do the same: the trials of the quickstart
sweep, without W&B and without the report. The plain side takes trials from one list, whichever process is free.
"""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from distpaml.bench import Result
from distpaml.sweep.load import load_sweep
from distpaml.sweep.trials import grid_trials

ON_RAY = """
import sys
from distpaml.sweep.driver import Sweep, opened, run_sweep
from distpaml.sweep.storage import Storage
from distpaml.sweep.load import load_sweep
sweep = Sweep(load_sweep("quickstart", ["wandb=off", *sys.argv[2:]]), Storage.of(sys.argv[1]))
with opened(sweep) as journal:
    run_sweep(sweep, journal, again=False, verbose=False, say=lambda line: None)
"""
PLAIN = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from distpaml.bench.sweep import trials
def run(trial):
    from distpaml.runtime.run_experiment import run_to_end
    for name, config in trial.runs.items():
        run_to_end(config, Path(sys.argv[1]) / name)
if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        list(pool.map(run, trials(sys.argv[2:])))
"""


def trials(overrides: Iterable[str] = ()) -> list:
    """Those of the quickstart."""
    return grid_trials(load_sweep("quickstart", ["wandb=off", *overrides]))


def run(options: Namespace, overrides: Iterable[str] = ()) -> Iterable[Result]:
    with TemporaryDirectory() as folder:
        other = _seconds(PLAIN, Path(folder) / "plain", overrides)
        ours = _seconds(ON_RAY, Path(folder) / "ray", overrides)
    count = len(trials(overrides))
    print(f"{count} trials: Ray and Tune cost {100 * (ours / other - 1):.1f} % of two plain processes", flush=True)
    yield Result("sweep", other / ours, ours, other, "s", f"two plain processes for the same {count} trials")


def _seconds(program: str, folder: Path, overrides: Iterable[str]) -> float:
    begin = perf_counter()
    subprocess.run([sys.executable, "-c", program, str(folder), *overrides], check=True)
    return perf_counter() - begin
