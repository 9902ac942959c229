"""Searchers, which Tune asks for the next trial: of a grid, or of a search.

After an interruption a searcher is rebuilt from the sweep's folder: finished trials are left out (a search learns from
them), unfinished ones come first.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from ray.tune.search import Searcher

from distpaml import seeds
from distpaml.sweep.schema import SearchConfig, Space, SweepConfig
from distpaml.sweep.trials import Sample, Trial, sample_trial


class TrialSearcher(Searcher):
    """Hands out trials in order; subclasses decide which."""

    def __init__(self, objective: str, common: Mapping[str, Any]) -> None:
        super().__init__(metric=objective, mode="min")
        self.common = common
        self.running: dict[str, Trial] = {}
        self.upcoming = self.trials()

    def trials(self) -> Iterator[Trial]:
        raise NotImplementedError

    def suggest(self, trial_id: str) -> Any:
        trial = next(self.upcoming, None)
        if trial is None:
            return Searcher.FINISHED
        self.running[trial_id] = trial
        return {**self.common, "trial": trial.name, "runs": dict(trial.runs)}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self.running.pop(trial_id, None)

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles searchers, but we never read that back."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the sweep's folder has it all."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the sweep's folder has it all."""


class GridSearcher(TrialSearcher):
    """The unfinished trials of a grid."""

    def __init__(self, left: Sequence[Trial], common: Mapping[str, Any]) -> None:
        self.left = left
        super().__init__("rmse", common)

    def trials(self) -> Iterator[Trial]:
        yield from self.left


class SpaceSearcher(TrialSearcher):
    """Samples of a space. Sample i depends on the search's seed, on i and, for optuna, on the results so far."""

    def __init__(self, sweep: SweepConfig, known: Mapping[int, Sample], common: Mapping[str, Any]) -> None:
        assert sweep.search is not None
        self.sweep, self.search, self.known = sweep, sweep.search, known
        self.space = {key: _distribution(space) for key, space in self.search.space.items()}
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # its chatter is about trials that the sweep shows itself
        self.study = optuna.create_study()
        self.asked: dict[str, optuna.Trial] = {}
        for sample in known.values():
            if sample.objective is not None:
                self.study.add_trial(self._past(sample, sample.objective))
        super().__init__(self.search.objective, common)

    def trials(self) -> Iterator[Trial]:
        for number in range(self.search.samples):
            sample = self.known.get(number)
            if sample and sample.closed:
                continue
            if sample:
                self.study.enqueue_trial(dict(sample.values))
            self.study.sampler = _sampler(self.search, number)
            asked = self.study.ask(self.space)
            trial = sample_trial(self.sweep, number, asked.params)
            self.asked[trial.name] = asked
            yield trial

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        trial = self.running.pop(trial_id, None)
        if trial is None:
            return
        asked, last = self.asked[trial.name], result or {}
        value = last.get(self.search.objective)
        if error or value is None:
            self.study.tell(asked, state=TrialState.FAIL)
        elif last["round"] < last["rounds"]:
            asked.report(value, last["round"])
            self.study.tell(asked, state=TrialState.PRUNED)
        else:
            self.study.tell(asked, value)

    def _past(self, sample: Sample, value: float) -> optuna.trial.FrozenTrial:
        """An earlier sample, as optuna would have stored it."""
        known: dict[str, Any] = {"params": dict(sample.values), "distributions": self.space}
        if sample.stopped is None:
            return optuna.trial.create_trial(**known, value=value)
        early = {sample.stopped: value}
        return optuna.trial.create_trial(**known, state=TrialState.PRUNED, intermediate_values=early)


def _sampler(search: SearchConfig, number: int) -> optuna.samplers.BaseSampler:
    seed = int(seeds.rng(search.seed, "search", number).integers(2**31))
    kind = optuna.samplers.RandomSampler if search.algorithm == "random" else optuna.samplers.TPESampler
    return kind(seed=seed)


def _distribution(space: Space) -> BaseDistribution:
    if space.choices is not None:
        return CategoricalDistribution(space.choices)
    assert space.low is not None and space.high is not None
    if isinstance(space.low, int) and isinstance(space.high, int):
        return IntDistribution(space.low, space.high, log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)
