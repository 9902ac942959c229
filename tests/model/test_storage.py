"""Models on disk: the same bits back, and a sentence for everything else."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from distpaml.errors import UserError
from distpaml.model.storage import load_model, serialised


@pytest.fixture
def path(fitted, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(serialised(fitted))
    return tmp_path / "model.safetensors"


def parts(path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}, file.metadata()  # noqa: SIM118


def test_a_loaded_model_is_the_same_to_the_last_bit(fitted, cartpole_data, path):
    loaded = load_model(path)
    assert loaded.terms == fitted.terms
    ours, theirs = fitted.infer(cartpole_data), loaded.infer(cartpole_data)
    assert torch.equal(ours.mean, theirs.mean) and torch.equal(ours.variance, theirs.variance)
    for a, b in zip(
        fitted.predict(cartpole_data.inputs, ours), loaded.predict(cartpole_data.inputs, ours), strict=True
    ):
        assert np.array_equal(a, b)
    latents = np.random.default_rng(0).normal(size=(5, 2))
    for a, b in zip(fitted.decode(latents), loaded.decode(latents), strict=True):
        assert np.array_equal(a, b)
    for name, value in fitted.gp.state_dict().items():
        assert torch.equal(value, loaded.gp.state_dict()[name])


def test_saving_again_gives_the_same_file(fitted, path, tmp_path):
    (tmp_path / "again").write_bytes(serialised(load_model(path)))
    ours, theirs = parts(path), parts(tmp_path / "again")
    assert ours[1] == theirs[1]
    assert ours[0].keys() == theirs[0].keys() and all(torch.equal(v, theirs[0][k]) for k, v in ours[0].items())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file(path, share):
    contents = path.read_bytes()
    path.write_bytes(contents[: int(share * len(contents))])
    with pytest.raises(UserError, match=r"^The model .*model\.safetensors is damaged: .*\.$"):
        load_model(path)


def test_files_of_others(path, tmp_path):
    foreign = tmp_path / "foreign"
    save_file({"weight": torch.ones(2)}, foreign)
    with pytest.raises(UserError, match="is not a distpaml model"):
        load_model(foreign)
    foreign.write_text("name: cartpole\n" * 20)
    with pytest.raises(UserError, match="is damaged"):
        load_model(foreign)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_model(tmp_path / "missing")
    with pytest.raises(UserError):
        load_model(tmp_path)


def test_another_version(path):
    tensors, header = parts(path)
    save_file(tensors, path, header | {"version": "99"})
    with pytest.raises(UserError, match="is a model of version 99; this distpaml reads version 2"):
        load_model(path)


@pytest.mark.parametrize("lost", ["gp.mean", "posterior.w", "inputs.scale", "descriptors", "gp.decoder.log_noise"])
def test_a_file_without_one_of_its_tensors(path, lost):
    tensors, header = parts(path)
    del tensors[lost]
    save_file(tensors, path, header)
    with pytest.raises(UserError, match="is damaged"):
        load_model(path)


@pytest.mark.parametrize("changed", ["gp.zx", "gp.offset", "posterior.root", "posterior.w", "posterior.chol"])
def test_a_file_with_a_tensor_of_another_shape(path, changed):
    tensors, header = parts(path)
    tensors[changed] = tensors[changed][..., :-1].contiguous()
    save_file(tensors, path, header)
    with pytest.raises(UserError, match="is damaged"):
        load_model(path)


def test_a_header_that_is_no_json(path):
    tensors, header = parts(path)
    save_file(tensors, path, header | {"terms": json.dumps({"elbo": 1.0})[:-2]})
    with pytest.raises(UserError, match="is damaged"):
        load_model(path)


def test_no_pickle_is_involved(path, monkeypatch):
    import pickle

    def never(*arguments, **options):
        raise AssertionError("a pickle was loaded")

    monkeypatch.setattr(pickle, "load", never)
    monkeypatch.setattr(pickle, "loads", never)
    monkeypatch.setattr(torch, "load", never)
    load_model(path)
