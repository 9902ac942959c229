"""The loop's three interfaces in this process."""

import numpy as np

from distpaml import seeds
from distpaml.config import ExperimentConfig
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import Tasks, TaskSet
from distpaml.domains import SimulationError, control_signals
from distpaml.errors import UserError
from distpaml.evaluate import Evaluation, evaluate
from distpaml.futures import Future, Ready
from distpaml.model.device import device_here, require_gpu
from distpaml.model.image_model import check_settings, fit_image_model
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.model.shards import LocalShards, MakePool
from distpaml.select.scoring import UtilityScorer
from distpaml.types import Array


class LocalSimulator:
    """Batched simulation; all tasks of a seed share one control signal."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.domain = config.domain.make()
        self.angles = [self.domain.states.index(angle) for angle in self.domain.angles]
        self.threads = config.runtime.threads
        signal = config.domain.control_limit, config.domain.alternations, config.domain.trajectory_length
        if config.domain.alternations > config.domain.trajectory_length:
            raise UserError(
                f"domain.alternations={config.domain.alternations} do not fit into a trajectory of "
                f"domain.trajectory_length={config.domain.trajectory_length}."
            )
        rng = seeds.rng(config.seed, "controls")
        self.signal = control_signals(self.domain, config.domain.signal.signal(), *signal, rng)  # [T, U]

    def simulate(self, tasks: Tasks) -> Ready[Dataset]:
        controls = np.repeat(self.signal[None], len(tasks), axis=0)
        states = self.domain.simulate(tasks.parameters, tasks.starts, controls, self.threads)
        finite = np.isfinite(states).all(axis=(1, 2))
        if not finite.all():
            raise SimulationError(f"{self.domain.describe(tasks.parameters[finite.argmin()])} gave non-finite states.")
        return Ready(Dataset.from_trajectories(states, controls, self.angles, tasks.descriptors))


class LocalTrainer:
    """Fits and evaluates as the config says; `pool` decides where the shards of a fit live."""

    def __init__(self, config: ExperimentConfig, pool: MakePool = LocalShards) -> None:
        self.config, self.pool, self.task_set = config, pool, TaskSet(config)
        if (
            self.task_set.choices is not None
            and (image_set := self.task_set.image_set(self.task_set.choices)) is not None
        ):
            check_settings(image_set, config.model, config.fit)

    def fit(self, data: Dataset, round: int, last: MetaModel | None, latents: Array | None) -> MetaModel:
        if self.config.runtime.gpus:
            require_gpu(f"runtime.gpus is {self.config.runtime.gpus:g}", "runtime.gpus=0")
        seed = int(seeds.rng(self.config.seed, "fit", round).integers(2**31))
        if (image_set := self.task_set.image_set(data.descriptors)) is not None:
            return fit_image_model(data, image_set, self.config.model, self.config.fit, seed, last)
        return fit_model(data, self.config.model, self.config.fit, seed, last, latents, self.pool)

    def evaluate(self, model: MetaModel, data: Dataset, test: Future[Dataset]) -> Ready[Evaluation]:
        tasks = test.result()
        return Ready(self.evaluate_tasks(model, Divisors.of(data, tasks), tasks))

    def evaluate_tasks(self, model: MetaModel, divisors: Divisors, test: Dataset) -> Evaluation:
        """Score test tasks, perhaps only some of those behind the divisors."""
        here, settings = model.to(device_here(self.config.fit.device)), self.config.evaluation
        return evaluate(here, divisors, test, settings.inference_steps, settings.shots)


def local_parts(config: ExperimentConfig) -> tuple[LocalSimulator, LocalTrainer, UtilityScorer]:
    """Simulator, trainer and scorer in this process."""
    scorer = UtilityScorer(config.utility, device_here(config.fit.device))
    return LocalSimulator(config), LocalTrainer(config), scorer
