"""What is kept of single runs for the paper's figures."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from tiny import tiny

from distpaml.errors import UserError
from distpaml.records import read_arrays
from distpaml.report import paper_figures
from distpaml.report.collect import collect
from distpaml.report.showcase import main, read_showcase
from distpaml.runtime.run_experiment import run_to_end


@pytest.fixture(scope="module")
def example(sweep_made, tmp_path_factory):
    out = tmp_path_factory.mktemp("showcase")
    assert main([str(sweep_made / "trials" / "cartpole-paml-seed1"), "--out", str(out)]) == 0
    return read_showcase(out / "cartpole-distpaml-paml.npz")


@pytest.mark.parametrize(("name", "round"), [("before", 0), ("after", 2)])
def test_predictions_have_the_errors_that_the_run_recorded(example, sweep_made, name, round):
    """The first model is fitted again; all four test tasks are shown, so the divisor is that of the shown outputs."""
    error = (example["truth"] - example[name]) / example["truth"].reshape(-1, 4).std(axis=0)
    recorded = read_arrays(sweep_made / "trials" / "cartpole-paml-seed1", round)["test_rmse"]
    assert np.sqrt((error**2).mean(axis=(1, 2))) == pytest.approx(recorded, rel=1e-4)


def test_embeddings_and_choices_are_those_of_the_run(example, sweep_made):
    (run,) = collect([sweep_made / "trials" / "cartpole-paml-seed1"]).runs
    for record in run.records:
        mean = read_arrays(run.path, record.round)["embedding_mean"]
        kept = example["mean"][record.round]
        assert kept[: len(mean)] == pytest.approx(mean, rel=1e-6) and np.isnan(kept[len(mean) :]).all()
    assert example["round"].tolist() == [0, 0, 0, 1, 2]
    chosen = [added.task for record in run.records for added in record.added]
    assert example["tasks"] == pytest.approx(np.array(chosen), rel=1e-6)


def test_the_decoded_plane_reverts_to_zero_far_from_the_data(example):
    """The first trap of the paper: the far corner decodes below the box, near the mean of the decoder's GP."""
    far = example["decoded"][0, 0]
    assert (np.abs(far) < 0.5 * example["low"]).any() and example["decoded"].shape == (60, 60, 2)


def test_every_figure_can_be_drawn(example):
    for make in (paper_figures.latent_choices, paper_figures.decoder_map, paper_figures.before_and_after):
        assert isinstance(make(example), Figure)


@pytest.mark.gl
def test_images_are_kept_with_the_round_that_chose_them(tmp_path):
    size = ("rounds=1", "descriptor.images=6", "descriptor.height=16", "descriptor.width=8")
    run_to_end(tiny(*size, "method=paml", experiment="cartpole_images"), tmp_path / "run")
    assert main([str(tmp_path / "run"), "--out", str(tmp_path)]) == 0
    kept = read_showcase(tmp_path / "cartpole_images-distpaml-paml.npz")
    first = read_arrays(tmp_path / "run", 0)
    assert np.abs(kept["images"] / 255.0 - first["images"]).max() <= 0.51 / 255.0
    for number, descriptor in zip(kept["round"], kept["descriptors"], strict=True):
        (row,) = np.flatnonzero(np.isclose(first["image_labels"][:, 0], descriptor[0]))
        assert kept["image_round"][row] == number
    assert (kept["image_round"] >= 0).sum() == 2 and isinstance(paper_figures.pixels(kept), Figure)


def test_bad_input_is_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} has no finished run of a method that chooses.\n"
    (tmp_path / "x.npz").write_text("nonsense")
    with pytest.raises(UserError, match=r"x\.npz cannot be read"):
        read_showcase(tmp_path / "x.npz")
