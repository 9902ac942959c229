"""Do shards pay? One evaluation of the bound with its gradient, and a short fit, in one process and in shard actors.

An evaluation is timed with latents that count as points, as they do in nearly all those of a fit, and with uncertain
latents (`-uncertain`), which take twice the work for the same messages.

For 100, 300 and 1000 tasks: one process with one thread (the other side of the ratios), one process with two threads,
one shard actor and two of them, with one thread each. That two actors have the same bits as two shards in one process
is checked. Beside the seconds of an evaluation stand the bytes that go to the actors and come back, and the seconds
that messages and waiting take: those in which the trainer waits less half of what one process computes.

From these follow, as computed and not as measured, the seconds on 8 and on 64 machines: the actors' part divided by
their number, the trainer's part and the messages as they are, with one message to each machine at a time.
"""

import logging
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import ray
import torch
from torch import Tensor

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.model.fit import fit_collapsed, place
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.meta_model import training_set
from distpaml.model.placement import descriptor_embedding
from distpaml.model.shards import BoundInputs, Cotangent, Gradient, LocalShards, PartialStatistics, ShardPool
from distpaml.runtime.actors import ShardActor
from distpaml.runtime.environment import own_environment
from distpaml.runtime.shards import RayShards

TASKS = (100, 300, 1000)
INDUCING = 300
MACHINES = (8, 64)
REPEATS = 3


class Timed:
    """A pool that counts the seconds its callers wait for it, and the bytes of its messages."""

    def __init__(self, pool: ShardPool) -> None:
        self.pool, self.sizes = pool, pool.sizes
        self.seconds, self.bytes = 0.0, 0

    def forward(self, inputs: Sequence[BoundInputs]) -> list[PartialStatistics]:
        return self._counted(lambda: self.pool.forward(inputs), inputs)

    def backward(self, inputs: Sequence[BoundInputs], cotangent: Cotangent) -> list[Gradient]:
        return self._counted(lambda: self.pool.backward(inputs, cotangent), [*inputs, *([cotangent] * len(inputs))])

    def _counted(self, call: Callable[[], list], sent: Sequence[tuple]) -> list:
        begin = perf_counter()
        received = call()
        self.seconds += perf_counter() - begin
        self.bytes += sum(part.nbytes for message in (*sent, *received) for part in message if isinstance(part, Tensor))
        return received


@dataclass
class Side:
    """One evaluation: all of it, the part in which the trainer waits for its shards, and the bytes of the messages."""

    seconds: float
    waiting: float
    bytes: int
    bound: float
    gradient: Tensor


def run(options: Namespace, tasks: Sequence[int] = TASKS, inducing: int = INDUCING) -> Iterator[Result]:
    with (
        own_environment(),
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR),
    ):
        hosts = [ray.remote(ShardActor).options(num_cpus=0).remote(1) for _ in range(2)]
        for count in tasks:
            yield from _compared(count, inducing, hosts)


def _compared(count: int, inducing: int, hosts: Sequence) -> Iterator[Result]:
    problem = Problem.make("cartpole", count, overrides=[f"model.inducing={inducing}", "evaluation.grid=2"])
    model, fit = problem.experiment.model, problem.experiment.fit.model_copy(update={"evaluations": 5, "settling": 2})
    data = training_set(problem.training, model, 1, 0)[0]
    gp = LatentGP(
        data.x.shape[-1],
        data.y.shape[-1],
        descriptor_embedding(data.descriptors, model.latent, torch.Generator().manual_seed(0)),
        data.descriptors,
    )
    place(gp, data, model)

    def pooled(make: Callable, shards: int) -> TrainingSet:
        return replace(data, pool=Timed(make(data.x, data.y, data.counts, shards)))

    on_ray = partial(RayShards, hosts=hosts)
    kinds = {
        "one process": (pooled(LocalShards, 1), 1),
        "one process, 2 threads": (pooled(LocalShards, 1), 2),
        "1 actor": (pooled(on_ray, 1), 1),
        "2 actors": (pooled(on_ray, 2), 1),
    }
    for what, uncertain in (("", False), ("-uncertain", True)):
        sides = {name: _evaluation(gp, *kind, uncertain) for name, kind in kinds.items()}
        split = _evaluation(gp, pooled(LocalShards, 2), 1, uncertain)
        two, one = sides["2 actors"], sides["one process"]
        if two.bound != split.bound or not torch.equal(two.gradient, split.gradient):
            raise AssertionError("Two actors and two shards in one process differ.")
        _show(f"{count} tasks{what.replace('-', ', ')}", sides)
        yield Result(f"shards{what}-{count}", one.seconds / two.seconds, two.seconds, one.seconds, "s", "one process")
    torch.set_num_threads(1)
    whole = {}
    for name in ("one process", "2 actors"):
        begin = perf_counter()
        fit_collapsed(kinds[name][0], None, model, fit, seed=0)
        whole[name] = perf_counter() - begin
    ours, other = whole["2 actors"], whole["one process"]
    yield Result(f"shards-fit-{count}", other / ours, ours, other, "s", "a fit in one process")


def _show(what: str, sides: dict[str, Side]) -> None:
    two, one = sides["2 actors"], sides["one process"]
    messages = max(two.waiting - one.waiting / 2.0, 0.0)
    trainer = two.seconds - two.waiting
    for name, side in sides.items():
        moved = f", {side.bytes / 1e6:.1f} MB moved" if "actor" in name else ""
        print(f"{what}, {name}: {side.seconds:.3f} s, {one.seconds / side.seconds:.2f} times as fast{moved}")
    print(f"{what}: the trainer's part {trainer:.3f} s, messages and waiting {messages:.3f} s", flush=True)
    for machines in MACHINES:
        computed = trainer + one.waiting / machines + messages * machines / 2.0
        print(f"{what} on {machines} machines, computed: {computed:.3f} s", flush=True)


def _evaluation(gp: LatentGP, data: TrainingSet, threads: int, uncertain: bool) -> Side:
    """The fastest of some evaluations, after a first one that nobody times."""
    torch.set_num_threads(threads)
    pool, best = data.pool, None
    assert isinstance(pool, Timed)
    for repeat in range(REPEATS + 1):
        pool.seconds, pool.bytes = 0.0, 0
        gp.zero_grad()
        begin = perf_counter()
        bound = gp.terms(data, uncertain).total
        bound.backward()
        seconds = perf_counter() - begin
        gradient = torch.cat([p.grad.reshape(-1) for p in gp.parameters() if p.grad is not None])
        if repeat and (best is None or seconds < best.seconds):
            best = Side(seconds, pool.seconds, pool.bytes, bound.item(), gradient)
    assert best is not None
    return best
