"""The descriptors that can be asked for, as a person reads them and as numbers for the model.

They are a finite set, in an order that spreads evenly: a user's list or all combinations of finite dimensions, shuffled
by the seed, or else the first points of a scrambled Sobol sequence. A constraint leaves out what it refuses. So every
descriptor that is ever asked for keeps every rule, and each has a number, its row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from distpaml import seeds
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.dimensions import Box, Dimension, Images, Integers, Value
from distpaml.ask_tell.images import with_codes
from distpaml.ask_tell.tables import columns_of, read_table
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.plugins import load_object
from distpaml.types import Array

Described = dict[str, Value]
"""A descriptor by name."""

TRIED = 64
"""A constraint is tried on so many times `selection.pool_size` descriptors, at most."""
LONGEST = 10_000
"""Rows of a user's list."""


def settled(declaration: Declaration, kept: Declaration | None = None) -> Declaration:
    """The declaration without references to files: lists are written out, and images have the codes they had."""
    known = {} if kept is None else kept.dimensions
    descriptors = {
        name: _coded(dimension, known.get(name)) if isinstance(dimension, Images) else dimension
        for name, dimension in declaration.dimensions.items()
    }
    choices = declaration.choices
    if isinstance(choices, str):
        table = read_table(choices)
        for name in descriptors:
            if name not in table:
                raise UserError(f"{choices} has no column {name}, but every descriptor needs one.")
        columns = columns_of(table, descriptors, choices)
        choices = tuple(zip(*(column.tolist() for column in columns.values()), strict=True))
    return declaration.model_copy(update={"descriptors": descriptors, "choices": choices})


def _coded(dimension: Images, known: Dimension | None) -> Images:
    same = isinstance(known, Images) and known.model_copy(update={"codes": dimension.codes}) == dimension
    return known if same else with_codes(dimension)  # type: ignore[return-value]


class Space:
    """The descriptors of a settled declaration."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.dimensions = declaration.dimensions

    def check(self, descriptor: Mapping[str, Any], anywhere: bool = False) -> Described:
        """A descriptor that exists, by name and in order; `anywhere`: also outside of the declared ranges.

        The constraint is not asked.
        """
        if not isinstance(descriptor, Mapping):
            raise UserError(
                f"A descriptor should be given by name, {', '.join(self.dimensions)}, not as {descriptor!r}."
            )
        for name in descriptor:
            if name not in self.dimensions:
                raise UserError(f"{name} is not part of a descriptor; its parts are {', '.join(self.dimensions)}.")
        checked = {}
        for name, dimension in self.dimensions.items():
            if name not in descriptor:
                raise UserError(f"The descriptor has no {name}; its parts are {', '.join(self.dimensions)}.")
            try:
                checked[name] = (dimension.read if anywhere else dimension.check)(descriptor[name])
            except ValueError as error:
                raise UserError(f"The descriptor has {name} = {descriptor[name]!r}, which {error}.") from error
        return checked

    def outside(self, descriptor: Described) -> tuple[str, ...]:
        """What of a descriptor lies outside of the declared ranges, in sentences."""
        said = ((name, self.dimensions[name].outside(value)) for name, value in descriptor.items())
        return tuple(
            f"{name} = {descriptor[name]} is outside of what can be asked for (it {words}); the model learns from it "
            "all the same."
            for name, words in said
            if words
        )

    def encode(self, descriptors: Sequence[Described]) -> Array:
        """Numbers [N, E] in [-1, 1]."""
        rows = [
            [x for name, dimension in self.dimensions.items() for x in dimension.encode(row[name])]
            for row in descriptors
        ]
        return np.array(rows, dtype=float).reshape(len(rows), -1)

    @cached_property
    def candidates(self) -> list[Described]:
        """All that can be asked for."""
        allowed = self._constraint()
        listed = self._listed()
        if listed is not None:
            order = seeds.rng(self.declaration.seed, "order").permutation(len(listed))
            kept = [listed[i] for i in order if allowed(listed[i])]
        else:
            kept = self._drawn(allowed)
        if not kept:
            raise UserError(f"The constraint {self.declaration.constraint} leaves nothing that could be asked for.")
        return kept

    def targeted(self) -> list[int]:
        """Rows of the candidates that lie in `selection.target`: the tasks that count."""
        target = self.declaration.selection.target
        for name in target:
            if not isinstance(self.dimensions.get(name), Box | Integers):
                numeric = [
                    known for known, dimension in self.dimensions.items() if isinstance(dimension, Box | Integers)
                ]
                raise UserError(
                    f"selection.target has {name!r}, which is no numeric descriptor{nearest(name, numeric)}."
                )
        inside = [
            all(low <= float(row[name]) <= high for name, (low, high) in target.items()) for row in self.candidates
        ]
        if not any(inside):
            raise UserError(
                f"selection.target leaves none of the {len(inside)} descriptors that can be asked for; widen it."
            )
        return [row for row, counts in enumerate(inside) if counts]

    def costs(self) -> Array:
        """What trying each of the candidates costs [K]."""
        if self.declaration.cost is None:
            return np.ones(len(self.candidates))
        function = load_object(self.declaration.cost, "cost")
        costs = [_called(function, descriptor, "cost", self.declaration.cost) for descriptor in self.candidates]
        for cost, descriptor in zip(costs, self.candidates, strict=True):
            if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 < cost < np.inf:
                raise UserError(
                    f"The cost {self.declaration.cost} should give a positive number, but gives {cost!r} for "
                    f"{worded(descriptor)}."
                )
        return np.array(costs, dtype=float)

    def _constraint(self) -> Callable[[Described], bool]:
        reference = self.declaration.constraint
        if reference is None:
            return lambda descriptor: True
        function = load_object(reference, "constraint")
        return lambda descriptor: bool(_called(function, descriptor, "constraint", reference))

    def _listed(self) -> list[Described] | None:
        """All that there is, if it can be listed."""
        if self.declaration.choices is not None:
            return self._choices(self.declaration.choices)  # type: ignore[arg-type]
        values = [dimension.finite for dimension in self.dimensions.values()]
        size = self.declaration.selection.pool_size
        if any(value is None for value in values) or prod(len(value or ()) for value in values) > size:
            return None
        return [dict(zip(self.dimensions, row, strict=True)) for row in product(*values)]  # type: ignore[arg-type]

    def _choices(self, rows: Sequence[Sequence[Any]]) -> list[Described]:
        if not 1 <= len(rows) <= LONGEST:
            raise UserError(f"choices has {len(rows)} rows, but should have from 1 to {LONGEST}.")
        found: dict[tuple[Value, ...], Described] = {}
        for number, row in enumerate(rows, start=1):
            if len(row) != len(self.dimensions):
                raise UserError(
                    f"Row {number} of choices has {len(row)} values, but a descriptor has {len(self.dimensions)}: "
                    f"{', '.join(self.dimensions)}."
                )
            try:
                descriptor = self.check(dict(zip(self.dimensions, row, strict=True)))
            except UserError as error:
                raise UserError(f"Row {number} of choices cannot be used: {error}") from error
            found[tuple(descriptor.values())] = descriptor
        return list(found.values())

    def _drawn(self, allowed: Callable[[Described], bool]) -> list[Described]:
        """The first `pool_size` points of a Sobol sequence that are different and allowed."""
        from scipy.stats.qmc import Sobol

        size = self.declaration.selection.pool_size
        sequence = Sobol(len(self.dimensions), rng=seeds.rng(self.declaration.seed, "candidates"))
        kept: dict[tuple[Value, ...], Described] = {}
        block, tried = 1 << max(size - 1, 1).bit_length(), 0
        while len(kept) < size and tried < TRIED * size:
            for point in sequence.random(block):
                values = [d.at(float(u)) for d, u in zip(self.dimensions.values(), point, strict=True)]
                descriptor = dict(zip(self.dimensions, values, strict=True))
                if len(kept) < size and tuple(values) not in kept and allowed(descriptor):
                    kept[tuple(values)] = descriptor
            tried += block
        return list(kept.values())


def worded(descriptor: Mapping[str, Value], units: Mapping[str, str] | None = None) -> str:
    """A descriptor for people: "payload = 1.25 kg, wheel = rubber"."""
    parts = []
    for name, value in descriptor.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        unit = (units or {}).get(name)
        parts.append(f"{name} = {shown}{f' {unit}' if unit else ''}")
    return ", ".join(parts)


def _called(function: Any, descriptor: Described, key: str, reference: str) -> Any:
    try:
        return function(**descriptor)
    except (Exception, SystemExit) as error:  # whatever a user's function raises
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"The {key} {reference} failed for {worded(descriptor)} ({detail}).") from error
