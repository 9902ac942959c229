import mujoco
import numpy as np
import pytest
from sealing import reseal
from tiny import tiny

from distpaml.config import load
from distpaml.config.load import worked_examples
from distpaml.data.tasks import TaskSet
from distpaml.domains import get_domain
from distpaml.records import read_arrays
from distpaml.report.collect import collect
from distpaml.report.kinematics import LOOKS, look_of
from distpaml.report.packing import packed, rounded, unpacked
from distpaml.report.run_detail import CELLS, run_detail, run_detail_once
from distpaml.select.candidates import Candidates
from distpaml.select.context import Embedded
from distpaml.select.surprisal import surprisal


@pytest.fixture(scope="module")
def run(sweep_made):
    return next(run for run in collect([sweep_made]).runs if run.name == "cartpole-paml-seed1")


@pytest.fixture(scope="module")
def found(run):
    return run_detail(run)


@pytest.mark.parametrize("name", LOOKS)
def test_the_ends_of_drawn_links_are_where_mujoco_has_them(name):
    domain = get_domain(name)("paper")
    rng = np.random.default_rng(0)
    poles = {"cart_double_pole": ["pole_1", "pole_2"], "pendubot": ["upper_arm", "lower_arm"]}.get(name, ["pole_1"])
    for _ in range(5):
        task = np.array([rng.uniform(*interval) for interval in domain.box.values()])
        state = rng.standard_normal(len(domain.states))
        model = domain.model(task)
        data = mujoco.MjData(model)
        data.qpos[:] = state[: model.nq]
        mujoco.mj_forward(model, data)
        joints = LOOKS[name](state, dict(zip(domain.box, task, strict=True)))
        root = data.xanchor[-len(poles)]
        for place, pole in enumerate(poles):
            geom = data.geom(pole)
            half = model.geom(pole).size[1] * geom.xmat.reshape(3, 3)[:, 2]
            ends = np.stack([geom.xpos - half, geom.xpos + half])[:, [0, 2]] - root[[0, 2]]
            drawn = joints[place : place + 2] - joints[0]
            assert min(np.abs(drawn - ends).max(), np.abs(drawn - ends[::-1]).max()) < 1e-9


def test_predictions_shown_have_the_recorded_errors(run, found):
    """With two test tasks per parameter all four are shown, so the divisor is known: the recorded RMSE comes out."""
    shown, arrays = found["predictions"], read_arrays(run.path, run.records[-1].round)
    true, mean = (unpacked(shown[part]).reshape(shown["shape"]) for part in ("true", "mean"))
    scale = true.reshape(-1, shown["shape"][2]).std(axis=0)
    rmse = np.sqrt((((true - mean) / scale) ** 2).mean(axis=(1, 2)))
    assert rmse == pytest.approx(arrays["test_rmse"], rel=2e-3)
    assert shown["tasks"][0] == "pole_mass=0.5, pole_length=0.5" and len(shown["tasks"]) == 4
    assert unpacked(shown["deviation"]).min() > 0


def test_the_latent_space_is_the_recorded_one(run, found):
    latent = found["latent"]
    for number, record in enumerate(run.records):
        arrays = read_arrays(run.path, record.round)
        assert latent["mean"][number] == rounded(arrays["embedding_mean"])
        assert latent["spread"][number] == rounded(np.sqrt(arrays["embedding_variance"]))
    assert latent["chosen"][1] == [rounded(run.records[1].added[0].latent)]
    low, high = np.array(latent["low"]), np.array(latent["high"])
    assert ((low < arrays["embedding_mean"]) & (arrays["embedding_mean"] < high)).all()


def test_the_surface_ranks_cells_by_the_utility(run, found):
    latent, arrays = found["latent"], read_arrays(run.path, 1)
    low, high = np.array(latent["low"]), np.array(latent["high"])
    shade = unpacked(latent["surfaces"][1]["shade"]).reshape(CELLS, CELLS)
    rng = np.random.default_rng(0)
    cells = rng.integers(CELLS, size=(40, 2))  # row (h2), column (h1)
    points = low + (cells[:, ::-1] + 0.5) / CELLS * (high - low)

    known = Embedded(arrays["embedding_mean"], arrays["embedding_variance"])
    utility = surprisal(Candidates.at(points), known)
    order = np.argsort(utility)
    assert (np.diff(shade[tuple(cells[order].T)]) >= -1.0 / 255).all()
    assert set(np.unique(unpacked(latent["surfaces"][-1]["valid"]))) <= {0.0, 1.0}


def test_a_rollout_begins_with_the_truth_and_moves_with_the_cart(found):
    for strip in found["rollouts"]:
        true, samples = np.array(strip["true"]), np.array(strip["samples"])
        assert samples.shape[0] == len(strip["times"]) == len(true)
        assert np.abs(samples[0] - true[0]).max() < 0.02
        assert np.abs(true[:, 0]).max() < 1e-9  # the cart stays in the middle
        length = np.linalg.norm(true[:, 1] - true[:, 0], axis=-1)
        assert length == pytest.approx(np.full(len(true), strip["reach"]), abs=5e-3)


def test_an_inside_is_made_again_when_the_run_has_gone_on(sweep, monkeypatch):
    import distpaml.report.run_detail as module

    run = next(iter(collect([sweep]).runs))
    first = run_detail_once(run)
    monkeypatch.setattr(module, "run_detail", lambda run: {"new": True})
    assert run_detail_once(run) is first
    with open(run.path / "records.jsonl", "ab") as file:
        file.write(b" ")
    assert run_detail_once(run) == {"new": True}


def test_a_run_of_a_domain_that_is_not_here_keeps_its_latent_space(sweep):
    config = sweep / "trials" / "cartpole-uni-seed0" / "config.yaml"
    config.write_text(config.read_text().replace("  name: cartpole", "  name: elsewhere:Robot"))
    reseal(config.parent)
    run = next(run for run in collect([sweep]).runs if run.name == "cartpole-uni-seed0")
    found = run_detail(run)
    assert "elsewhere" in found["lacking"] and "predictions" not in found
    assert len(found["latent"]["mean"]) == 3


@pytest.mark.parametrize("latent", [1, 3])
def test_other_numbers_of_latent_dimensions(tmp_path, latent):
    from distpaml.runtime.run_experiment import run_to_end

    run_to_end(tiny(f"model.latent={latent}", "method=lhs", "rounds=1"), tmp_path / "run")
    (run,) = collect([tmp_path / "run"]).runs
    found = run_detail(run)
    assert "lacking" not in found and found["latent"]["of"] == latent
    assert len(found["latent"]["dimensions"]) == min(2, latent)
    assert found["latent"]["surfaces"] == [None, None]


def test_packing_keeps_a_sixteen_bit_share():
    values = np.random.default_rng(0).normal(size=(7, 5))
    assert unpacked(packed(values)) == pytest.approx(values.ravel(), abs=np.ptp(values) / 65535)
    assert unpacked(packed(np.full(3, 2.5))).tolist() == [2.5] * 3
    assert rounded([1.23456789, np.nan, np.inf], 4) == [1.235, None, None]


@pytest.mark.parametrize("name", worked_examples())
def test_families_from_data_are_drawn_by_their_own_looks(name):
    config = load(name, ["evaluation.grid=2", "domain.name=cartpole"])  # no formula goes by a name alone
    domain, tasks = config.domain.make(), TaskSet(config).test()
    look = look_of(domain, tasks.starts[0])
    points = look.points(tasks.starts, tasks.parameters[0])
    assert points.shape[0] == len(tasks) and points.shape[2] == 2
    assert not look.cart and look.reach(points) > 0.1
    np.testing.assert_array_equal(look.centre(points), points[:, 0])
