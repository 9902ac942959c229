"""A model as one text that can travel: includes, meshes, pictures."""

import mujoco
import numpy as np
import pytest
from families import load_family

from distpaml.domains import model_files
from distpaml.domains.model_files import ModelError, label_of, read_model

TETRAHEDRON = "\n".join(["v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"])
PARTS = '<mujocoinclude><default><joint damping="0.25"/></default></mujocoinclude>'
ROBOT = """<mujoco><compiler meshdir="meshes" texturedir="pictures"/><include file="parts/common.xml"/>
<asset><mesh name="hull" file="sub/hull.obj"/><texture name="paint" type="2d" file="paint.png"/>
<material name="paint" texture="paint"/></asset>
<worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom name="hull" type="mesh" mesh="hull" material="paint"/></body></worldbody>
<actuator><motor name="drive" joint="hinge" ctrlrange="-1 1"/></actuator></mujoco>"""


@pytest.fixture
def folder(tmp_path):
    for name, text in {"meshes/sub/hull.obj": TETRAHEDRON, "parts/common.xml": PARTS, "robot.xml": ROBOT}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_includes_and_meshes_are_taken_along_and_pictures_are_not(folder):
    text = read_model("robot.xml", folder)
    for file in [*folder.rglob("*.xml"), *folder.rglob("*.obj")]:
        file.unlink()
    model = text.spec().copy().compile()
    assert model.dof_damping[0] == 0.25
    assert model.body_mass[1] == pytest.approx(1000 / 6)
    assert "include" not in text.xml and "png" not in text.xml
    assert list(text.assets) == ["sub/hull.obj"]


def test_a_robot_with_meshes_is_a_family_from_its_config_alone(folder):
    domain = {"mjcf": "robot.xml", "parameters": {"density": {"range": [0.5, 2], "scales": ["geom.hull.density"]}}}
    config = load_family(folder, domain)
    (folder / "meshes" / "sub" / "hull.obj").unlink()
    again = type(config).from_yaml(config.to_yaml())
    inputs = np.array([[1.5]]), np.zeros((1, 2)), np.ones((1, 20, 1))
    np.testing.assert_array_equal(*(c.domain.make().simulate(*inputs) for c in (config, again)))


def test_the_hash_is_of_the_contents(folder):
    before = read_model("robot.xml", folder)
    assert read_model("robot.xml", folder).sha256 == before.sha256
    (folder / "meshes" / "sub" / "hull.obj").write_text(TETRAHEDRON.replace("v 1 0 0", "v 2 0 0"))
    assert read_model("robot.xml", folder).sha256 != before.sha256


@pytest.mark.parametrize("name", ["acrobot", "cartpole", "reacher", "humanoid", "quadruped", "swimmer", "dog"])
def test_models_of_the_suite_are_what_mujoco_reads(name):
    """To the last bit of everything that moves them; `dog` has meshes and skins."""
    from importlib.resources import files

    path = str(files("dm_control") / "suite" / f"{name}.xml")
    try:
        text = read_model(f"dm_control:{name}")
    except ModelError as error:
        assert name == "dog" and "MB" in str(error)
        return
    mine, theirs = text.spec().compile(), mujoco.MjModel.from_xml_path(path)
    for field in ("body_mass", "body_inertia", "qpos0", "dof_damping", "geom_size", "jnt_range", "actuator_gear"):
        np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))


@pytest.mark.parametrize("name", ["Hopper-v5", "Ant-v5", "Reacher-v5", "HalfCheetah-v4", "InvertedDoublePendulum-v5"])
def test_models_of_gymnasium(name):
    assert read_model(f"gymnasium:{name}").spec().compile().nu > 0


def test_labels():
    assert [label_of(source) for source in ("a/arm.xml", "dm_control:acrobot", "gymnasium:Hopper-v5")] == [
        "arm", "acrobot", "hopper",
    ]  # fmt: skip


def test_what_cannot_travel_is_a_sentence(folder, monkeypatch):
    hull = folder / "meshes" / "sub" / "hull.obj"
    hull.write_text(f"{TETRAHEDRON}\n# {np.random.default_rng(0).bytes(4000).hex()}")
    for limit, said in (
        ("LARGEST", r"0\.0 MB, more than the 0\.002 MB"),
        ("LARGEST_FILES", r"hull.obj cannot be read: it has more than 0\.002 MB"),
    ):
        with monkeypatch.context() as patch, pytest.raises(ModelError, match=said):
            patch.setattr(model_files, limit, 2000)
            read_model("robot.xml", folder)
    packed = read_model("robot.xml", folder)
    with (
        monkeypatch.context() as patch,
        pytest.raises(ModelError, match=r"a mesh is cut off or has more than 0\.002 MB"),
    ):
        patch.setattr(model_files, "LARGEST_FILES", 2000)
        packed.spec()
    hull.unlink()
    with pytest.raises(ModelError, match=r"its file hull.obj cannot be read: No such file"):
        read_model("robot.xml", folder)


def nested(depth):
    return f"<mujoco><worldbody>{'<body>' * depth}{'</body>' * depth}</worldbody></mujoco>"


def replicated(outer, inner):
    copies = f'<replicate count="{outer}"><replicate count="{inner}"><body/></replicate></replicate>'
    return f"<mujoco><worldbody>{copies}</worldbody></mujoco>"


def including(file, times):
    return f"<mujoco>{f'<include file={file!r}/>' * times}</mujoco>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (nested(20_000), "it has 20001 elements within one another, more than 300"),
        (replicated("1000", "1001"), "<replicate> makes 1001000 copies, more than 1000"),
        (nested(300), "it has 301 elements within one another"),
        (including("robot.xml", 1), "robot.xml includes itself"),
        (including("0.xml", 1), "it consists of more than 1000 files"),
        (including("large.xml", 2), "its files have more than 6 MB"),
        (including("/dev/null", 1), "null cannot be read .it is not a regular file."),
        (
            "<mujoco><asset><mesh file='/dev/null'/></asset></mujoco>",
            "its file null cannot be read: it is not a regular",
        ),
    ],
    ids=["deep", "copies", "edge", "itself", "bomb", "large", "device", "mesh"],
)
def test_a_model_that_would_fill_the_memory_or_never_end_is_refused(tmp_path, text, said):
    (tmp_path / "robot.xml").write_text(text)
    (tmp_path / "large.xml").write_text(f"<mujoco><!--{'x' * 3_000_000}--></mujoco>")
    for level in range(19):
        (tmp_path / f"{level}.xml").write_text(including(f"{level + 1}.xml", 2))
    (tmp_path / "19.xml").write_text("<mujoco/>")
    with pytest.raises(ModelError, match=said):
        read_model("robot.xml", tmp_path)


def test_a_chain_of_many_bodies_is_read(tmp_path):
    (tmp_path / "robot.xml").write_text(nested(298).replace("<body>", "<body><geom size='1'/>"))
    assert read_model("robot.xml", tmp_path).spec().compile().nbody == 299
