"""The contract of a domain, tried on an instance of it: what fails, in sentences."""

from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import isfinite

import numpy as np

from distpaml.domains.base import Domain
from distpaml.domains.signals import default_signals
from distpaml.failures import described
from distpaml.types import Array

CORNERS = 64
"""At most so many corners of the box are tried."""


def check_domain(domain: Domain) -> list[str]:
    """Sentences that say where `domain` breaks its contract; none if it keeps it."""
    try:
        return list(_attribute_faults(domain)) or list(_start_faults(domain)) or list(_simulation_faults(domain))
    except (Exception, SystemExit) as error:
        return [f"{_origin(error)} raised {described(error)}"]


def _attribute_faults(domain: Domain) -> Iterator[str]:
    names = ("name", "box", "states", "angles", "dt", "trajectory_length", "control_limit", "alternations", "variants")
    missing = [name for name in names if not hasattr(domain, name)]
    if missing:
        yield f"attributes are missing: {', '.join(missing)}."
        return
    if not isinstance(domain.name, str) or not domain.name:
        yield f"name must be a word, not {domain.name!r}."
    yield from _box_faults(domain.box)
    for field in ("states", "angles", "variants"):
        values = getattr(domain, field)
        if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
            yield f"{field} must be a tuple of names, not {values!r}."
        elif len(set(values)) < len(values):
            yield f"{field} must be distinct names, not {values!r}."
        elif not values and field != "angles":
            yield f"{field} must have at least one name."
    if not set(domain.angles) <= set(domain.states):
        yield f"angles must be among the states {domain.states!r}, not {domain.angles!r}."
    for field in ("dt", "control_limit"):
        if not _is_number(getattr(domain, field)) or getattr(domain, field) <= 0:
            yield f"{field} must be a positive number, not {getattr(domain, field)!r}."
    if not isinstance(domain.trajectory_length, int) or domain.trajectory_length < 2:
        yield f"trajectory_length must be a whole number from 2, not {domain.trajectory_length!r}."
    elif not isinstance(domain.alternations, int) or not 1 <= domain.alternations <= domain.trajectory_length:
        yield f"alternations must be a whole number from 1 to trajectory_length, not {domain.alternations!r}."


def _box_faults(box: object) -> Iterator[str]:
    if not isinstance(box, Mapping) or not box:
        yield f"box must map the name of each task parameter to its interval, not {box!r}."
        return
    for name, interval in box.items():
        if not isinstance(name, str):
            yield f"box: a parameter's name must be a word, not {name!r}."
        pair = isinstance(interval, tuple) and len(interval) == 2 and all(map(_is_number, interval))
        if not pair or not interval[0] < interval[1]:
            yield f"box: {name} must have an interval of finite numbers (low, high), not {interval!r}."


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _start_faults(domain: Domain) -> Iterator[str]:
    start, again = (domain.start(np.random.default_rng(7)) for _ in range(2))
    if not isinstance(start, np.ndarray) or start.shape != (len(domain.states),) or start.dtype != np.float64:
        yield f"start must return {len(domain.states)} float64 numbers, not {_summary(start)}."
        return
    if not np.isfinite(start).all():
        yield f"start is not finite: {start}."
    if not np.array_equal(start, again):
        yield "start must depend on its rng alone: the same rng gave two different starts."
    if np.shares_memory(start, again):
        yield "start must return a new array each time: two starts share memory."


def _simulation_faults(domain: Domain) -> Iterator[str]:
    tasks = _corners_and_centre(domain)
    n, steps = len(tasks), domain.trajectory_length
    starts = np.stack([domain.start(np.random.default_rng(i)) for i in range(n)])
    controls = np.stack([_controls(domain, seed) for seed in range(n)])
    inputs = (tasks, starts, controls)
    before = [values.copy() for values in inputs]
    states = domain.simulate(*inputs)

    shape = (n, steps, len(domain.states))
    if not isinstance(states, np.ndarray) or states.shape != shape or states.dtype != np.float64:
        yield f"simulate must return states of shape {list(shape)} and float64, not {_summary(states)}."
        return
    if not all(np.array_equal(now, then) for now, then in zip(inputs, before, strict=True)):
        yield "simulate must not change its arguments."
        return
    for task, trajectory in zip(tasks, states, strict=True):
        if not np.isfinite(trajectory).all():
            yield (
                f"simulate must raise SimulationError rather than return what is not finite, as it does for "
                f"{domain.describe(task)}."
            )
            return
    if not np.array_equal(states[:, 0], starts):
        yield "the first state of a trajectory must be its start."
    yield from list(_purity_faults(domain, inputs, states)) or _response_faults(domain)


def _purity_faults(domain: Domain, inputs: tuple[Array, Array, Array], states: Array) -> Iterator[str]:
    """The same task, start and controls give the same trajectory, whatever else happens."""
    kept = states.copy()
    again = domain.simulate(*inputs)
    if any(np.shares_memory(states, other) for other in (again, *inputs)):
        yield "simulate must return new memory: its result overlaps with an argument or an earlier result."
        return
    if not np.array_equal(again, kept):
        yield "simulate is not deterministic: the same call gave two results."
        return
    tasks, starts, controls = inputs
    single = [slice(i, i + 1) for i in range(len(tasks))]
    alone = [domain.simulate(tasks[i], starts[i], controls[i]) for i in single]
    if not np.array_equal(np.concatenate(alone), kept):
        yield "a trajectory depends on the batch: alone it comes out differently."
    if not np.array_equal(domain.simulate(tasks[::-1], starts[::-1], controls[::-1])[::-1], kept):
        yield "a trajectory depends on the order of the batch."
    if not np.array_equal(domain.simulate(*inputs, threads=2), kept):
        yield "a trajectory depends on the number of threads."
    half = controls.shape[1] // 2
    if not np.array_equal(domain.simulate(tasks, starts, controls[:, :half]), kept[:, : half + 1]):
        yield "fewer controls must give the beginning of the same trajectory."


def _response_faults(domain: Domain) -> Iterator[str]:
    """Every parameter and the control make a difference."""
    centre = _corners_and_centre(domain)[-1]
    start, controls = domain.start(np.random.default_rng(0)), _controls(domain, 0)

    def trajectory(task: Array, controls: Array) -> Array:
        return domain.simulate(task[None], start[None], controls[None])

    for i, (name, interval) in enumerate(domain.box.items()):
        low, high = (np.where(np.arange(len(centre)) == i, end, centre) for end in interval)
        if np.array_equal(trajectory(low, controls), trajectory(high, controls)):
            yield f"{name} makes no difference to the trajectory."
    for i, name in enumerate(domain.controls):
        without = np.where(np.arange(len(domain.controls)) == i, 0.0, controls)
        if np.array_equal(trajectory(centre, controls), trajectory(centre, without)):
            which = "" if len(domain.controls) == 1 else f" {name}"
            yield f"the control{which} makes no difference to the trajectory."


def _corners_and_centre(domain: Domain) -> Array:
    intervals = list(domain.box.values())
    centre = [(low + high) / 2 for low, high in intervals]
    return np.array([*islice(product(*intervals), CORNERS), centre], np.float64)


def _controls(domain: Domain, seed: int) -> Array:
    return default_signals(domain, np.random.default_rng(seed))


def _summary(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)} and {value.dtype}"
    return f"{type(value).__name__} {value!r}"


def _origin(error: BaseException) -> str:
    """`start` or `simulate`: the method of the domain that an exception passed through."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name in ("start", "simulate"):
            return trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return "calling the domain"
