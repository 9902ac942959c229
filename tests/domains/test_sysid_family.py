"""Families from `mujoco.sysid.Parameter` objects."""

import mujoco
import numpy as np
import pytest
from families import ARM, ARM_XML, load_family
from mujoco import sysid

from distpaml.config import load
from distpaml.domains import check_domain
from distpaml.domains.family import FamilyError
from distpaml.domains.sysid import sysid_family


def set_payload(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    spec.geom("payload").mass = parameter.value[0]


def set_dampings(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    for joint, value in zip(spec.joints, parameter.value, strict=True):
        joint.damping[0] = value


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM_XML)
    return path


def test_the_same_bits_as_the_family_in_yaml(model, tmp_path):
    payload = sysid.Parameter("payload", 0.5, 0.1, 2.0, modifier=set_payload)
    damping = sysid.Parameter("damping", [0.3, 0.3], [0.1, 0.1], [1.0, 1.0], modifier=set_dampings)
    family = sysid_family(model, [payload, damping], dt=0.05)
    assert family.box == {"payload": (0.1, 2.0), "damping_0": (0.1, 1.0), "damping_1": (0.1, 1.0)}
    parameters = {
        "payload": {"range": [0.1, 2], "sets": {"geom.payload.mass": "payload"}},
        "first": {"range": [0.1, 1], "sets": {"joint.shoulder.damping": "first"}},
        "second": {"range": [0.1, 1], "sets": {"joint.elbow.damping": "second"}},
    }
    in_yaml = load_family(tmp_path, ARM | {"parameters": parameters}).domain.make()
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.2, 0.9, (5, 3)), rng.standard_normal((5, 4)), rng.uniform(-2, 2, (5, 40, 2))
    np.testing.assert_array_equal(family().simulate(*inputs), in_yaml.simulate(*inputs))
    assert check_domain(family()) == []
    np.testing.assert_array_equal(payload.value, [0.5])


def test_it_is_a_domain_by_name(model, tmp_path, monkeypatch):
    (tmp_path / "my_arm.py").write_text(
        "from mujoco.sysid import Parameter\nfrom distpaml.domains.sysid import sysid_family\n"
        "def change(spec, parameter):\n    spec.geom('payload').mass = parameter.value[0]\n"
        f"Arm = sysid_family({str(model)!r}, [Parameter('payload', 0.5, 0.1, 2.0, modifier=change)], dt=0.05)\n"
    )
    monkeypatch.chdir(tmp_path)
    config = load(None, ["domain.name=my_arm:Arm"])
    assert config.domain.box == {"payload": (0.1, 2.0)}
    assert config.domain.make().controls == ("shoulder_motor", "elbow_motor")


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (sysid.Parameter("payload", 1.0, 0.1, 2.0), "no modifier"),
        (sysid.Parameter("payload", 1.0, 0.1, np.inf, modifier=set_payload), "finite bounds"),
        (sysid.Parameter("idle", 1.0, 0.1, 2.0, modifier=lambda spec, parameter: None), "makes no difference"),
        (sysid.Parameter("payload", 1.0, -2.0, 2.0, modifier=set_payload), "cannot compile"),
    ],
)
def test_what_is_wrong_is_a_sentence(model, parameter, said):
    with pytest.raises(FamilyError, match=said):
        sysid_family(model, [parameter])
