"""What a trial needs from a cluster, checked before anything starts.

A trial is a group of bundles that Ray reserves together, so no actor waits forever for room that other trials hold.
Every process has as many CPUs as threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from distpaml.config import ExperimentConfig
from distpaml.errors import UserError

Bundle = dict[str, float]


def bundles(config: ExperimentConfig) -> list[Bundle]:
    """What a trial reserves: its own process first, then its actors."""
    actor = {"CPU": float(config.runtime.threads)}
    trainer = actor | ({"GPU": config.runtime.gpus} if config.runtime.gpus else {})
    if config.runtime.kind == "local":
        return [trainer]
    return [{}, trainer, *(dict(actor) for _ in range(config.runtime.workers + shard_hosts(config)))]


def shard_hosts(config: ExperimentConfig) -> int:
    """Actors that hold the shards of a fit; a single shard stays with the trainer."""
    return config.fit.shards if config.fit.shards > 1 else 0


def actor_options(config: ExperimentConfig, gpus: float = 0.0) -> dict[str, Any]:
    """Options of an actor that restarts if its process or node is lost; calls are retried up to three times."""
    return {"num_cpus": config.runtime.threads, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": 3}


def fits(needs: Sequence[Bundle], nodes: Sequence[Mapping[str, float]]) -> bool:
    """Whether all bundles fit on these nodes at once, by first fit, largest first."""
    free = [dict(node) for node in nodes]
    for bundle in sorted(needs, key=lambda bundle: (bundle.get("GPU", 0.0), bundle.get("CPU", 0.0)), reverse=True):
        roomy = (node for node in free if all(node.get(kind, 0.0) >= amount for kind, amount in bundle.items()))
        node = next(roomy, None)
        if node is None:
            return False
        for kind, amount in bundle.items():
            node[kind] -= amount
    return True


def refusal(config: ExperimentConfig, nodes: Sequence[Mapping[str, float]]) -> str | None:
    """Why a trial can never run on these nodes, in one sentence; None if it can."""
    needs = bundles(config)
    if fits(needs, nodes):
        return None
    largest = max((bundle.get("CPU", 0.0) for bundle in needs), default=0.0)
    there = "; ".join(total([node]) for node in nodes) or "nothing"
    return (
        f"A trial needs {total(needs)} at once, up to {largest:g} CPU for one process, but the "
        f"{'machine has' if len(nodes) == 1 else f'{len(nodes)} machines have'} {there}; lower runtime.threads, "
        "runtime.workers, runtime.gpus or fit.shards."
    )


def check_fits(config: ExperimentConfig, nodes: Sequence[Mapping[str, float]]) -> None:
    """Raise if a trial would wait forever."""
    if sentence := refusal(config, nodes):
        raise UserError(sentence)


def total(bundles: Sequence[Mapping[str, float]]) -> str:
    """All bundles together, in words."""
    totals = {kind: sum(bundle.get(kind, 0.0) for bundle in bundles) for kind in ("CPU", "GPU")}
    return " and ".join(f"{total:g} {kind}" for kind, total in totals.items() if total or kind == "CPU")
