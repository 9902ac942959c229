"""Candidates per second and memory of the scorer, with surprisal under 20 tasks in two latent dimensions, one thread.

    score-N, score-N-scipy    N candidates, all in one array, against sklearn's GaussianMixture.score_samples (what the
                              authors use) with the same mixture, and against one scipy logsumexp over the full table
    score-N-blocks            against score_samples called block by block, as who knows its memory would
    memory-N, memory-N-scipy  what each adds to the memory of a process of its own; ours makes the grid as it goes

Times are seconds of CPU, the least of some repetitions in which the sides take turns. All sides must find the same
candidate. A side is left out where its tables would need more than 80 % of the memory that is free.
"""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from distpaml.bench import Result
from distpaml.data.designs import grid
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.scoring import BLOCK, UtilityScorer

TASKS, LATENT = 20, 2
SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)
IN_BLOCKS = 10**6
"""Candidates for which the others are also called block by block."""
TABLES = 7
"""Tables of candidates × tasks that the others hold at the same time, at most."""
REACH = 12.0
Side = Callable[[np.ndarray], int]


class Grid:
    """Candidates on a square grid of latents that is never held whole."""

    def __init__(self, size: int) -> None:
        self.per_axis = round(size ** (1 / LATENT))
        self.corners = np.full(LATENT, -REACH), np.full(LATENT, REACH)

    def __len__(self) -> int:
        return self.per_axis**LATENT

    def take(self, rows: slice) -> Candidates:
        h = grid(*self.corners, self.per_axis, range(rows.start, min(rows.stop, len(self))))
        return Candidates.at(h)


def run(options: Namespace) -> Iterator[Result]:
    with threadpool_limits(1):
        for size in SIZES:
            yield from _speed(size)
    for size in SIZES:
        yield from _memory(size)


def _speed(size: int) -> Iterator[Result]:
    name, ours, sides = f"score-{size:.0e}".replace("+0", ""), _ours(), dict(_others())
    if not _fits(size):
        print(f"{name}: the others are left out, their tables need {_need(size) / 2**30:.0f} GiB")
        begin = process_time()
        ours(Grid(size))
        speed = len(Grid(size)) / (process_time() - begin)
        print(f"{name}: {speed:.4g} candidates/s, the making of the grid included", flush=True)
        return
    h = Grid(size).take(slice(0, size)).mean
    sides["ours"] = lambda h: ours(Candidates.at(h))
    if size == IN_BLOCKS:
        whole = sides["score_samples"]
        sides["score_samples in blocks"] = lambda h: max(range(0, len(h), BLOCK), key=lambda i: whole(h[i : i + BLOCK]))
    seconds = _take_turns(sides, h)
    for suffix, other, against in (
        ("", "score_samples", "sklearn's GaussianMixture.score_samples"),
        ("-scipy", "logsumexp", "scipy's logsumexp over the full table"),
        ("-blocks", "score_samples in blocks", f"score_samples on {BLOCK} candidates at a time"),
    ):
        if other in seconds:
            mine, theirs = (len(h) / seconds[side] for side in ("ours", other))
            yield Result(name + suffix, mine / theirs, mine, theirs, "candidates/s", against)


def _take_turns(sides: dict[str, Side], h: np.ndarray) -> dict[str, float]:
    """The least seconds of CPU of each side; they must agree, save for one that only passes over the blocks."""
    seconds, found = dict.fromkeys(sides, np.inf), {}
    for _ in range(max(1, min(20, 5 * 10**6 // len(h)))):
        for name, side in sides.items():
            begin = process_time()
            found[name] = side(h)
            seconds[name] = min(seconds[name], process_time() - begin)
    if len({row for name, row in found.items() if "blocks" not in name}) > 1:
        raise RuntimeError(f"the sides chose different candidates: {found}.")
    return seconds


def selection_context() -> SelectionContext:
    """Tasks whose latents are known as well as those of cart-poles are: variances from 1e-4 to 1e-1."""
    rng, nothing = np.random.default_rng(0), np.zeros(0)
    mean, variance = rng.normal(0, 2, (TASKS, LATENT)), 10.0 ** rng.uniform(-4, -1, (TASKS, LATENT))
    return SelectionContext(mean, variance, nothing, nothing, nothing, nothing, None, None)  # type: ignore[arg-type]


def _ours() -> Callable[[Any], int]:
    scorer, context = UtilityScorer("surprisal"), selection_context()
    return lambda candidates: scorer.best(candidates, context).row


def _others() -> Iterator[tuple[str, Side]]:
    from scipy.special import logsumexp
    from sklearn.mixture import GaussianMixture

    context = selection_context()
    mixture = GaussianMixture(TASKS, covariance_type="diag")
    mixture.weights_ = np.full(TASKS, 1.0 / TASKS)
    mixture.means_, mixture.covariances_ = context.mean, context.variance
    mixture.precisions_cholesky_ = 1.0 / np.sqrt(context.variance)
    yield "score_samples", lambda h: int(mixture.score_samples(h).argmin())

    def full_table(h: np.ndarray) -> int:
        table = -0.5 * np.log(2.0 * np.pi * context.variance).sum(axis=1) - np.log(TASKS)  # [N], then [K, N]
        for q in range(LATENT):
            table = table - (h[:, q, None] - context.mean[:, q]) ** 2 / (2.0 * context.variance[:, q])
        return int(logsumexp(table, axis=1).argmin())

    yield "logsumexp", full_table


def _need(size: int) -> int:
    return TABLES * 8 * TASKS * size


def _fits(size: int) -> bool:
    return _need(size) < 0.8 * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _memory(size: int) -> Iterator[Result]:
    name = f"memory-{size:.0e}".replace("+0", "")
    ours = _peak("ours", size)
    if not _fits(size):
        print(f"{name}: {ours:.4g} MiB; the others are left out", flush=True)
        return
    for suffix, side in (("", "score_samples"), ("-scipy", "logsumexp")):
        other = _peak(side, size)
        yield Result(name + suffix, other / ours, ours, other, "MiB", f"{side} with all candidates at once")


def _peak(side: str, size: int) -> float:
    """MiB that scoring adds to a process of its own."""
    code = f"from distpaml.bench.score import peak; peak({side!r}, {size})"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout)


def peak(side: str, size: int) -> None:
    """Print by how many MiB a side raises the peak memory of this process."""
    ours, others = _ours(), dict(_others())
    before = _most()
    if side == "ours":
        ours(Grid(size))
    else:
        others[side](Grid(size).take(slice(0, size)).mean)
    print((_most() - before) / 1024)


def _most() -> int:
    """The peak of this program in KiB; that of `getrusage` is also of whoever started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])
