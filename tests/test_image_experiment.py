"""Experiment (iv) as a whole: images to choose from, the loop, its records, figures, kill and resume."""

import io
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from safetensors.numpy import load_file
from tiny import run_loop, tiny

from distpaml.config import ExperimentConfig
from distpaml.data.tasks import TaskSet
from distpaml.errors import UserError
from distpaml.records import read_arrays, read_records
from distpaml.report.image_figures import figures
from distpaml.run import main
from distpaml.runtime.local import LocalTrainer, local_parts
from distpaml.runtime.run_experiment import run_to_end
from distpaml.select.candidates import image_pool
from distpaml.select.methods import get_method
from distpaml.select.utilities import UTILITIES

SIZE = (
    "descriptor.images=12",
    "descriptor.height=16",
    "descriptor.width=8",
    "fit.image_adam_steps=20",
    "rounds=3",
)


def small(*overrides: str) -> ExperimentConfig:
    return tiny(*SIZE, *overrides, experiment="cartpole_images")


CONFIG = small()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("images") / "run"
    run_to_end(CONFIG, path)
    return path


def test_the_images_are_spread_evenly_and_all_methods_begin_with_the_same():
    task_set = TaskSet(CONFIG)
    np.testing.assert_allclose(task_set.choices[:, 0], np.linspace(0.5, 4.5, 12))
    begins = [get_method(TaskSet(small(f"method={m}"))).initial().descriptors.tolist() for m in ("paml", "uni")]
    assert begins[0] == begins[1] and begins[0][0] in task_set.choices.tolist()
    seeds = {tuple(TaskSet(small(f"seed={seed}")).initial().descriptors[0]) for seed in range(20)}
    assert len(seeds) > 5


@pytest.mark.parametrize("method", ["paml", "uni"])
def test_a_chosen_image_is_never_offered_again(method):
    """Until there is none left: every image is chosen once."""
    config = small(
        f"method={method}",
        "rounds=11",
        "fit.image_adam_steps=1",
        "domain.trajectory_length=10",
    )
    offered = []

    class Watched:
        def __init__(self, scorer):
            self.scorer = scorer

        def best(self, candidates, known):
            offered.append(candidates.descriptors[:, 0].tolist())
            return self.scorer.best(candidates, known)

    from distpaml.loop import active_loop

    simulator, trainer, scorer = local_parts(config)
    rounds = list(active_loop(get_method(TaskSet(config)), simulator, trainer, Watched(scorer)))
    chosen = [round.record.added[0].descriptor[0] for round in rounds]
    assert sorted(chosen) == TaskSet(config).choices[:, 0].tolist()
    for i, left in enumerate(offered):
        assert sorted(left + chosen[: i + 1]) == TaskSet(config).choices[:, 0].tolist()
    assert len(offered) == (11 if method == "paml" else 0)


def test_candidates_are_ranked_at_the_means_of_their_encodings():
    rounds = run_loop(small("rounds=1"))
    model, chosen = rounds[0].model, rounds[1].record.added[0]
    task_set = TaskSet(CONFIG)
    candidates = image_pool(model, task_set.unused(task_set.choices, rounds[0].data.descriptors))
    assert len(candidates) == 11 and candidates.total == 12 and not candidates.variance.any()
    row = candidates.descriptors[:, 0].tolist().index(chosen.descriptor[0])
    assert candidates.mean[row].tolist() == list(chosen.latent)
    encoded = model.image_vae.encoded().mean.detach().numpy()
    np.testing.assert_array_equal(
        candidates.mean[row], encoded[model.image_vae.labels[:, 0] == chosen.descriptor[0]][0]
    )


def test_the_model_sees_images_and_not_their_labels():
    """Other labels for the same images: the same model."""
    task_set, (simulator, _, _) = TaskSet(CONFIG), local_parts(CONFIG)
    data = simulator.simulate(task_set.initial()).result()
    expected = LocalTrainer(CONFIG).fit(data, 0, None, None)
    image_set = task_set.image_set(data.descriptors)

    class Relabelled(LocalTrainer):
        def __init__(self, config):
            super().__init__(config)
            self.task_set.image_set = lambda labels: type(image_set)(image_set.images, 100.0 - image_set.labels)

    other = type(data)(data.inputs, data.targets, data.counts, 100.0 - data.descriptors)
    found = Relabelled(CONFIG).fit(other, 0, None, None)
    assert found.terms == expected.terms
    assert torch.equal(found.embeddings.mean, expected.embeddings.mean)


def test_the_oracle_learns_from_the_images_of_the_test_tasks():
    (round,) = run_loop(small("method=oracle", "evaluation.grid=5"))
    assert round.record.tasks == 5
    assert len(round.model.image_vae) == 12 + 3  # both ends of the box are among the choices


def test_ones_own_lengths_to_choose_from():
    task_set = TaskSet(small("selection.choices=[[1], [2], [3], [4.25]]"))
    assert task_set.choices[:, 0].tolist() == [1, 2, 3, 4.25]
    assert task_set.image_set(task_set.choices).images.shape == (4, 16, 8)


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["method=lhs"], "method is 'lhs', but descriptors are images: a Latin hypercube needs parameters"),
        (["selection.candidates=latent-grid"], "selection.candidates is 'latent-grid', but descriptors are images"),
        (["rounds=12"], "descriptor.images has 12 different descriptors, but initial=1 and rounds=12"),
        (["domain.name=cartpole", "domain.box={}"], "the domain cartpole has no camera"),
        pytest.param(["model.network=mpl"], "model.network is 'mpl'", marks=pytest.mark.gl),
        pytest.param(["fit.kind=svgp-ngd"], "fit.kind is 'svgp-ngd'", marks=pytest.mark.gl),
        (["descriptor.hidden=[pole_length]"], "should be empty, since descriptor.kind is 'image'"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_before_anything_is_written(tmp_path, capsys, overrides, sentence):
    arguments = ["--config", "cartpole_images", *SIZE, *overrides, "--out", str(tmp_path / "run")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and sentence in error
    assert not (tmp_path / "run").exists()


def test_images_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "my_photographs.py").write_text(
        "import numpy as np\nfrom distpaml.descriptors import ImageDescriptor\n\n\n"
        "class Photographs(ImageDescriptor):\n"
        "    def images(self, labels):\n        return np.tile(labels[:, :, None] / 5, (1, 16, 8))\n\n\n"
        "class TooBright(ImageDescriptor):\n    def images(self, labels):\n"
        "        return 300 * np.ones((len(labels), 16, 8))\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    task_set = TaskSet(small("descriptor.kind=my_photographs:Photographs"))
    np.testing.assert_allclose(task_set.image_set(task_set.choices).images[3], task_set.choices[3, 0] / 5)
    with pytest.raises(UserError, match="values from 0 to 1"):
        TaskSet(small("descriptor.kind=my_photographs:TooBright")).image_set(task_set.choices)


def test_records_hold_what_the_figures_need(run):
    records = read_records(run)
    assert [record.tasks for record in records] == [1, 2, 3, 4]
    assert records[1].candidates.valid == 11 and records[1].candidates.total == 12
    first, last = read_arrays(run, 0), read_arrays(run, 3)
    assert first["images"].shape == (12, 16, 8) and "images" not in last
    assert last["image_mean"].shape == last["image_variance"].shape == (12, 2)
    assert last["prior_samples"].shape == (8, 16, 8)
    rows = [last["image_labels"].tolist().index(list(record.added[0].descriptor)) for record in records]
    np.testing.assert_array_equal(last["embedding_mean"], last["image_mean"][rows])


def test_figures_come_from_the_directory_alone(run, tmp_path):
    drawn = figures(run)
    assert len(drawn) == 3 and all(isinstance(figure, Figure) for figure in drawn.values())
    images, samples, latents = drawn.values()
    assert [a.get_title() for a in images.axes].count("") == len(images.axes) - 4  # the initial one and three chosen
    assert len(samples.axes) == 8 * 4
    assert sorted(text.get_text() for text in latents.axes[0].texts) == ["0", "1", "2", "3"]
    for figure in drawn.values():
        figure.savefig(buffer := io.BytesIO(), format="png")
        assert buffer.tell() > 1000
    plain = tmp_path / "plain"
    run_to_end(tiny("rounds=0", "method=uni"), plain)
    assert figures(plain) == {}


def same_run(path: Path, undisturbed: Path) -> None:
    assert [r.result() for r in read_records(path)] == [r.result() for r in read_records(undisturbed)]
    for round in range(CONFIG.rounds + 1):
        mine, theirs = read_arrays(path, round), read_arrays(undisturbed, round)
        assert mine.keys() == theirs.keys()
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)
    mine, theirs = (load_file(folder / "round-03/model.safetensors") for folder in (path, undisturbed))
    assert mine.keys() == theirs.keys() and all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


def _run_and_die(config: str, path: Path, round: int, stage: str) -> None:
    def watch(now: int, what: str) -> None:
        if (now, what) == (round, stage):
            os.kill(os.getpid(), signal.SIGKILL)

    run_to_end(ExperimentConfig.from_yaml(config), path, watch)


def test_killed_twice_it_ends_like_an_undisturbed_run(run, tmp_path):
    context = multiprocessing.get_context("spawn")
    for round, stage in ((1, "fit"), (3, "evaluate")):
        process = context.Process(target=_run_and_die, args=(CONFIG.to_yaml(), tmp_path / "run", round, stage))
        process.start()
        process.join(300)
        assert process.exitcode == -signal.SIGKILL
        assert len(read_records(tmp_path / "run")) == round
    run_to_end(CONFIG, tmp_path / "run")
    same_run(tmp_path / "run", run)


@pytest.mark.parametrize("name", sorted(UTILITIES.keys() - {"descriptor_maximin"}))
def test_every_utility_ranks_images(name):
    first, method = run_loop(small("rounds=0"))[0], get_method(TaskSet(small(f"selection.utility={name}")))
    selection = method.choose(first.model, first.data, local_parts(small(f"selection.utility={name}"))[2].best)
    assert selection.descriptors[0] in TaskSet(CONFIG).choices and selection.variances is None
    assert sorted(method.references[:, 0]) == TaskSet(CONFIG).choices[:, 0].tolist()


def test_distances_between_labels_of_images_are_refused():
    with pytest.raises(UserError, match="descriptors are images, whose distances say little; take latent_maximin"):
        get_method(TaskSet(small("selection.utility=descriptor_maximin")))
