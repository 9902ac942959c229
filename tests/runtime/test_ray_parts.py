"""The loop on Ray gives what it gives in one process, to the bit, whoever is killed meanwhile."""

import pytest
import ray
from actors import Killer, eventually, processes
from tiny import rounds_of, tiny

from distpaml.data.tasks import TaskSet
from distpaml.domains import SimulationError
from distpaml.loop import active_loop
from distpaml.runtime.environment import own_environment
from distpaml.runtime.parts import ray_parts
from distpaml.select.methods import get_method


@pytest.fixture(scope="module", autouse=True)
def cpus():
    """Room for all actors, whatever this machine has; they take turns."""
    with own_environment():
        ray.init("local", num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield
        ray.shutdown()


def on_ray(*overrides: str) -> list[dict]:
    config = tiny(*overrides, "runtime.kind=ray")
    with ray_parts(config) as three:
        return [round.record.result() for round in active_loop(get_method(TaskSet(config)), *three)]


def in_process(*overrides: str) -> list[dict]:
    return [round.record.result() for round in rounds_of(*overrides)]


@pytest.mark.parametrize(
    ("overrides", "runtime"),
    [
        (("method=paml", "selection.per_dimension=70"), ("runtime.workers=3",)),
        (
            ("method=paml-pool", "evaluation.grid=6", "evaluation.shots=[0, 5]", "selection.batch=2"),
            ("runtime.workers=2",),
        ),
        (("method=lhs", "fit.shards=2"), ()),
        (("method=oracle", "evaluation.grid=4"), ("runtime.workers=2",)),
    ],
)
def test_the_same_records_as_in_one_process(overrides, runtime):
    assert on_ray(*overrides, *runtime) == in_process(*overrides)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ray::TrainerActor.fit", "ray::WorkerActor", "ray::ShardActor.forward"])
def test_the_same_records_though_an_actor_is_killed(victim):
    overrides = ("method=paml-pool", "rounds=3", "fit.shards=2", "fit.evaluations=40")
    killer = Killer(victim)
    killer.start()
    assert on_ray(*overrides, "runtime.workers=2") == in_process(*overrides)
    assert killer.killed


def test_actors_end_with_the_run():
    on_ray("rounds=0")
    eventually(lambda: not processes("ray::TrainerActor") and not processes("ray::WorkerActor"), 30)


def test_an_error_in_an_actor_is_the_error_of_one_process():
    with pytest.raises(SimulationError, match="pole_mass"):
        on_ray("domain.control_limit=1e6")
