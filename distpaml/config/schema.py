"""Every key of an experiment, its type, its default and what it means. Defaults are experiment (i) CP.

A key is one line and the docstring under it; nothing else has to change when one is added or removed.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationInfo, WrapValidator, field_validator, model_validator
from pydantic_core import PydanticCustomError

from distpaml.catalogue import DEFAULT, METHODS
from distpaml.command_line import counted
from distpaml.config.families import anchored
from distpaml.config.section import Interval, List, Moderate, Positive, Section, one_of
from distpaml.config.tasks import DescriptorConfig, DomainConfig
from distpaml.config.validation_errors import checked, choice_error
from distpaml.config.yaml_text import dump, line_of, parse, read

PositiveOrAuto = Annotated[
    int | Literal["auto"],
    WrapValidator(
        lambda value, _: value if value == "auto" else TypeAdapter(Moderate).validate_python(value, strict=True)
    ),
]

PAPER = {"inducing": 300, "inducing_inputs": "free", "noise": "shared"}
"""What `model.preset: paper` sets."""
MOST_STATES = 50_000_000
"""In all trajectories of the test tasks, or of the tasks to learn from; gigabytes."""


class ModelConfig(Section):
    """The latent sparse GP."""

    preset: Literal["distpaml", "paper"] = "distpaml"
    """`paper`: 300 inducing points that move freely, one noise for all tasks; keys that are given win over it."""
    latent: Annotated[int, Field(ge=1, le=100)] = 2
    """Q, the dimensions of a task's latent variable."""
    inducing: PositiveOrAuto = "auto"
    """L, the inducing points, never more than transitions; `auto`: until they explain the data, up to a cap."""
    inducing_cap: Moderate = 600
    """Most inducing points if `inducing` is auto."""
    inducing_inputs: Literal["data", "free"] = "data"
    """`data`: inducing points stay on transitions, with their tasks' latents; `free`: they are optimised too."""
    noise: Literal["task", "shared"] = "task"
    """`task`: every task has a noise level of its own, learned, and inferred for new tasks; `shared`: one for all."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the GP; what float32 costs is printed by `python -m distpaml.bench gpu`."""
    decoder_samples: Moderate = 4
    """Fixed samples of the latents in the decoder's term of the bound; they come in antithetic pairs."""
    network: Annotated[str, Field(min_length=1)] = "mlp"
    """Encoder and decoder of images: `mlp` (the paper's), `conv`, or your own as `module:Class`."""

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, keys: Any) -> Any:
        return PAPER | keys if isinstance(keys, dict) and keys.get("preset") == "paper" else keys


class FitConfig(Section):
    """How the model is fitted after each new task."""

    kind: Literal["collapsed", "svgp", "svgp-ngd"] = "collapsed"
    """`collapsed`: exact expectations and L-BFGS; `svgp`: the paper's Adam; `svgp-ngd`: natural gradients."""
    settling: Positive = 12
    """Evaluations of the collapsed bound for every start that competes: the last model, a fit from scratch, …"""
    evaluations: Positive = 30
    """Most evaluations for the start that won."""
    restarts: Moderate = 3
    """Fits from scratch that compete in the first round; later there is one, beside the last model."""
    tolerance: Annotated[float, Field(gt=0)] = 2e-4
    """The collapsed fit ends when the bound gains less than this, in nats per observed number."""
    adam_steps: Positive = 5000
    """Steps of a stochastic fit."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-2
    """Adam's step size in a stochastic fit."""
    batch_tasks: Positive = 16
    """Tasks in a mini-batch of a stochastic fit; all of them while there are fewer."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model computes; `auto`: on the GPU that the process was given, else on the CPU."""

    @field_validator("device", mode="before")
    @classmethod
    def _not_gpu(cls, device: Any) -> Any:
        if device == "gpu":
            raise ValueError("should be auto, cpu or cuda; a GPU is cuda")
        return device

    shards: Moderate = 1
    """Parts that the tasks of a collapsed fit are split into."""
    image_adam_steps: Positive = 300
    """Adam's steps on the images alone, before the joint fit; the network starts anew in every round."""
    image_learning_rate: Annotated[float, Field(gt=0)] = 5e-3
    """Adam's step size in these."""


class SelectionConfig(Section):
    """How the next task is chosen."""

    candidates: Literal["latent-grid", "descriptor-pool"] | None = None
    """`latent-grid` (the paper's), `descriptor-pool` (real tasks only), or null: what the method says."""
    per_dimension: Annotated[int, Field(ge=2, le=10_000)] = 100
    """Points per latent dimension of the grid."""
    slack: Annotated[float, Field(ge=0)] = 10.0
    """How far the latent grid reaches beyond the embeddings."""
    pool_size: Annotated[int, Field(ge=1, le=1_000_000)] = 2000
    """Descriptors in a `descriptor-pool`, unless `choices` or images are the pool."""
    utility: Annotated[str, Field(min_length=1)] | None = None
    """What is maximised: the name of a utility, your own as `module:function`, or null: what the method says."""
    batch: Moderate = 1
    """Tasks chosen at once."""
    choices: List[List[float]] | None = None
    """Your own set of descriptors to choose from, a row of numbers each, in the order of the descriptor."""
    target: dict[str, Interval] | List[List[float]] = Field(default_factory=dict)
    """Tasks that count, to which utilities that average over tasks keep: intervals of descriptors by name, or rows of
    descriptors, such as a sample of the tasks to come."""

    @field_validator("choices", "target")
    @classmethod
    def _table(cls, rows: Any) -> Any:
        if isinstance(rows, tuple) and (len({len(row) for row in rows}) != 1 or not rows[0]):
            raise ValueError("should be a list of at least one row of numbers, all equally long")
        return rows


class EvaluationConfig(Section):
    """How the model is evaluated after every round."""

    grid: Annotated[int, Field(ge=2, le=10_000)] = 10
    """Test tasks per task parameter: a full grid over the box, ends included."""
    inference_steps: Positive = 100
    """Steps of latent inference for the test tasks."""
    shots: List[Annotated[int, Field(ge=0)]] = ()
    """Numbers of observed transitions for few-shot curves; 0 is the prior."""


class RuntimeConfig(Section):
    """Where it runs; nothing here changes a result by more than rounding."""

    kind: Literal["local", "ray"] = "local"
    """`local`: all in one process; `ray`: a trainer and workers in processes of their own, on any machine."""
    threads: Moderate = 1
    """Threads, and so CPUs, of the one process or of every actor."""
    workers: Moderate = 1
    """Actors that simulate, score candidates and evaluate test tasks, if `kind` is ray."""
    gpus: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The part of a GPU that is reserved for the trainer; a fit runs on one."""


def _check_size(tasks: int, domain: DomainConfig, key: str, makes: str) -> None:
    if tasks * domain.trajectory_length > MOST_STATES:
        said = f"{makes} {tasks} tasks of {domain.trajectory_length} states, more than {MOST_STATES} states in all"
        raise PydanticCustomError("below", "{said}", {"below": key, "said": f"should be smaller: {said}"})


class ExperimentConfig(Section):
    """One experiment: a method on a domain, with a seed."""

    method: Annotated[str, one_of(METHODS)] = DEFAULT.name
    """`paml-plus`: information about all tasks; `paml-pool`, `paml`: the paper's utility; `uni`, `lhs`: baselines;
    `oracle`: trained on the test tasks."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Root of every random stream; methods of one seed share initial tasks, controls and test data."""
    initial: Moderate = 3
    """Tasks known before the first choice."""
    rounds: Annotated[int, Field(ge=0, le=10_000)] = 15
    """Rounds of choosing, simulating and learning; a round adds `selection.batch` tasks."""
    out: str | None = None
    """Directory of the run's records."""
    domain: DomainConfig = Field(default_factory=DomainConfig)
    name: Annotated[str, Field(min_length=1)] = Field(default_factory=lambda data: data["domain"].make().name)
    """A label for reports; the domain's name unless given."""
    descriptor: DescriptorConfig = Field(default_factory=DescriptorConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    fit: FitConfig = Field(default_factory=FitConfig)
    selection: SelectionConfig = Field(default_factory=SelectionConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = Field(default_factory=RuntimeConfig)

    @field_validator("descriptor")
    @classmethod
    def _describes_the_domain(cls, descriptor: DescriptorConfig, info: ValidationInfo) -> DescriptorConfig:
        if "domain" not in info.data:
            return descriptor
        parameters = info.data["domain"].box
        for name in descriptor.hidden:
            if name not in parameters:
                raise choice_error(parameters, below="hidden", value=name)
        if len(descriptor.hidden) == len(parameters):
            raise PydanticCustomError("below", "should leave at least one parameter to be shown", {"below": "hidden"})
        for name in descriptor.superfluous:
            if name in parameters:
                raise PydanticCustomError(
                    "below", "should not be named like a task parameter", {"below": f"superfluous.{name}"}
                )
        return descriptor

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not name.isprintable() or name.startswith(".") or set(name) & set("/\\"):
            raise ValueError("should have no control characters, no / and no \\, and not begin with a dot")
        return name

    @field_validator("selection")
    @classmethod
    def _tasks_to_learn_from(cls, selection: SelectionConfig, info: ValidationInfo) -> SelectionConfig:
        if {"initial", "rounds", "domain"} <= info.data.keys():
            tasks = info.data["initial"] + info.data["rounds"] * selection.batch
            _check_size(tasks, info.data["domain"], "batch", "initial + rounds × batch are")
        return selection

    @field_validator("evaluation")
    @classmethod
    def _test_tasks(cls, evaluation: EvaluationConfig, info: ValidationInfo) -> EvaluationConfig:
        if "domain" in info.data:
            parameters = len(info.data["domain"].box)
            makes = f"a grid over {counted(parameters, 'parameter')} makes"
            _check_size(evaluation.grid**parameters, info.data["domain"], "grid", makes)
        return evaluation

    @field_validator("evaluation")
    @classmethod
    def _shots_within_trajectory(cls, evaluation: EvaluationConfig, info: ValidationInfo) -> EvaluationConfig:
        transitions = info.data["domain"].trajectory_length - 1 if "domain" in info.data else None
        if transitions is not None and max(evaluation.shots, default=0) >= transitions:
            message = "should leave one of the {transitions} transitions of a trajectory to predict"
            raise PydanticCustomError("below", message, {"below": "shots", "transitions": transitions})
        return evaluation

    @field_validator("runtime")
    @classmethod
    def _reserves_what_it_uses(cls, runtime: RuntimeConfig, info: ValidationInfo) -> RuntimeConfig:
        fit, on_ray = info.data.get("fit", FitConfig()), runtime.kind == "ray"
        if runtime.gpus and fit.device == "cpu":
            should = "should be 0 if fit.device is 'cpu', since nothing would use the GPU"
        elif runtime.gpus and on_ray and fit.shards > 1:
            should = "should be 0 if fit.shards is above 1, since shards are in actors without a GPU"
        elif on_ray and not runtime.gpus and fit.device == "cuda":
            should = "should be above 0 if fit.device is 'cuda', since actors see only what they reserve"
        else:
            return runtime
        raise PydanticCustomError("below", "{should}", {"below": "gpus", "value": runtime.gpus, "should": should})

    @property
    def utility(self) -> str:
        """What the method maximises."""
        return self.selection.utility or METHODS[self.method].utility

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """The experiment in a YAML text (`str`) or in a file (`Path`)."""
        if isinstance(source, Path):
            return checked(cls, anchored(read(source), source.parent), lambda key: f"{source}{line_of(key, source)}")
        return checked(cls, parse(source, "the YAML text"), lambda key: "the YAML text")

    def to_yaml(self) -> str:
        """Every key with its value; `from_yaml` gives the same experiment back."""
        return dump({"name": self.name, **self.model_dump(mode="json")})
