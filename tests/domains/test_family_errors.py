"""Whatever is wrong with a family is one sentence, with the line of YAML and the nearest valid name."""

import re

import pytest
from families import ARM, load_family, write_family

from distpaml.config import load
from distpaml.errors import UserError

FILES = {
    "massless": "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
    "cut": "<mujoco><worldbod",
    "page": "<html/>",
    "loop": '<mujoco><include file="loop.xml"/></mujoco>',
    "still": '<mujoco><worldbody><body><joint name="h"/><geom size=".1"/></body></worldbody></mujoco>',
    "inertial": """<mujoco><worldbody><body name="arm"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="h"/><geom name="g" size=".1" mass="1"/></body></worldbody>
<actuator><motor joint="h" ctrlrange="-1 1"/></actuator></mujoco>""",
    "free": """<mujoco><worldbody><body><freejoint name="root"/><geom name="g" size=".1"/><body><joint name="tail"/>
<geom size=".1" pos="1 0 0"/></body></body></worldbody>
<actuator><motor name="m" joint="tail"/></actuator></mujoco>""",
}
MASS = {"m": {"range": [1, 2], "sets": {"geom.g.mass": "m"}}}


def payload(**keys):
    return {"parameters": ARM["parameters"] | {"payload": {"range": [0.1, 2.0]} | keys}}


BAD = [  # what is changed in the arm's domain, its line in the file, what the sentence must say
    (payload(sets={"geom.paylod.mass": "payload"}), "paylod.mass", ["no geom 'paylod'", "nearest is geom.payload"]),
    (payload(sets={"geom.payload.mas": "payload"}), "geom.payload.mas", ["no number 'mas'", "nearest is mass"]),
    (payload(sets={"gem.payload.mass": "payload"}), "gem.payload", ["no kind of element 'gem'", "nearest is geom"]),
    (payload(sets={"geom.payload": "payload"}), "geom.payload:", ["such as geom.upper.mass"]),
    (payload(sets={"geom.payload.size.7": "payload"}), "size.7", ["components 0 to 2"]),
    (payload(sets={"geom.payload.mass.0": "payload"}), "mass.0", ["one value and no components"]),
    (payload(sets={"geom.payload.mass": "paylod * 2"}), "paylod * 2", ["no parameter 'paylod'", "nearest is payload"]),
    (payload(sets={"geom.payload.mass": "payload +"}), "payload +", ["not arithmetic"]),
    (payload(sets={"geom.payload.mass": "1 / (payload - payload)"}), "1 / (", ["division by zero", "payload=1.05"]),
    (payload(sets={"geom.payload.mass": "payload - 3"}), "payload - 3", ["cannot compile", "payload=1.05", "negative"]),
    (payload(sets={"geom.payload.mass": "payload - 1"}), "payload - 1", ["cannot compile", "payload=0.1", "negative"]),
    (payload(sets={"geom.payload.mass": ["payload", 1]}), "geom.payload.mass", ["at most 1 value, not 2"]),
    (payload(sets={"geom.payload.mass": 2}), "payload:", ["domain.parameters.payload", "no effect"]),
    (payload(sets={"geom.payload.rgba.0": "payload"}), "payload:", ["makes no difference to the compiled model"]),
    (payload(sets={}, scales=["geom.payload.densty"]), "densty", ["scales[0]", "nearest is density"]),
    (payload(sets={}, scales=["geom.payload.solmix", "site.a.pos"]), "site.a", ["no site 'a'", "there are none"]),
    (payload(attribute="mass", sets={"geom.payload.mass": "payload"}), "attribute", ["sets and scales"]),
    (payload(rang=[1, 2]), "rang:", ["nearest is domain.parameters.payload.range"]),
    ({"parameters": {}}, "parameters", ["at least one parameter"]),
    ({"parameters": {"a b": MASS["m"]}}, "a b", ["letters, digits and _"]),
    ({"parameters": {"m": {"sets": {"geom.payload.mass": "m"}}}}, "m:", ["should have a range"]),
    ({"mjcf": "two_link.xml"}, "mjcf", ["two_link.xml cannot be read", "nearest is two_link_arm.xml"]),
    ({"mjcf": "massless.xml"}, "mjcf", ["MuJoCo cannot compile it: mass and inertia of moving bodies"]),
    ({"mjcf": "cut.xml"}, "mjcf", ["is not XML"]),
    ({"mjcf": "page.xml"}, "mjcf", ["its root is <html>"]),
    ({"mjcf": "loop.xml"}, "mjcf", ["includes itself"]),
    ({"mjcf": "still.xml", "parameters": MASS, "states": None, "controls": None}, "mjcf", ["no actuator"]),
    ({"mjcf": "dm_control:acrobt"}, "mjcf", ["nearest is acrobot"]),
    ({"mjcf": "gymnasium:Hoper-v5"}, "mjcf", ["nearest is Hopper-v5"]),
    ({"mjcf": "gymnasium:Pendulum-v1"}, "mjcf", ["take domain.gymnasium instead"]),
    ({"mjcf": 3}, "mjcf", ["should be an MJCF file"]),
    (
        {"mjcf": "free.xml", "parameters": MASS, "states": None, "controls": None},
        "domain",
        ["root is a free joint", "tail"],
    ),
    (
        {"mjcf": "free.xml", "parameters": MASS, "states": ["tail"], "controls": None},
        "domain",
        ["domain.control_limit is null but should be given", "no limits for m"],
    ),
    (
        {"mjcf": "inertial.xml", "parameters": MASS, "states": None, "controls": None},
        "m:",
        ["makes no difference", "<inertial> of its own", "set body.arm.mass"],
    ),
    ({"states": ["sholder"]}, "states", ["no joint", "nearest is shoulder"]),
    ({"states": []}, "states", ["at least one joint"]),
    ({"controls": ["elbow"]}, "controls", ["no actuator", "nearest is elbow_motor"]),
    ({"controls": ["elbow_motor", "elbow_motor"]}, "controls", ["once"]),
    ({"start": {"elbw": 1}}, "elbw", ["nearest is elbow"]),
    ({"start": {"elbow": "pi /"}}, "elbow: pi", ["not arithmetic"]),
    ({"start": "home"}, "start", ["no keyframe 'home'"]),
    ({"angles": ["elbow"]}, "angles", ["should not be there beside domain.mjcf"]),
    ({"gymnasium": "Pendulum-v1"}, "gymnasium", ["a family has one source"]),
    ({"mjcf": None}, "parameters", ["should come with domain.mjcf"]),
    ({"signal": {"limits": {"elbow_moter": [-1, 1]}}}, "elbow_moter", ["nearest is elbow_motor"]),
    ({"signal": {"shape": "chrip"}}, "shape", ["nearest is chirp"]),
    ({"signal": {"recorded": "none.csv"}}, "recorded", ["none.csv cannot be read"]),
    ({"name": "a:b"}, "name", ["letters, digits"]),
    ({"integrator": "RK5"}, "integrator", ["nearest is RK4"]),
    ({"substeps": 0}, "substeps", ["greater than or equal to 1"]),
    ({"camera": {"centre": [0, 0], "height": 1}}, "centre", ["three numbers"]),
    ({"box": {"paylod": [1, 2]}}, "paylod", ["nearest is domain.box.payload"]),
]


@pytest.mark.parametrize(("change", "at", "fragments"), BAD, ids=range(len(BAD)))
def test_a_bad_family_is_one_sentence(tmp_path, change, at, fragments):
    path = write_family(tmp_path, {k: v for k, v in (ARM | change).items() if v is not None}, **FILES)
    with pytest.raises(UserError) as caught:
        load(str(path))
    said = str(caught.value)
    lines = path.read_text().splitlines()
    assert said.endswith(".") and "\n" not in said and len(said) < 600
    for fragment in fragments:
        assert fragment in said
    line = int(re.search(r"line (\d+)", said)[1])
    assert at in lines[line - 1], (said, lines[line - 1])


def test_an_override_is_named_instead_of_a_line(tmp_path):
    with pytest.raises(UserError, match=r"In override 'domain.states=\[elbw\]', domain.states is .* nearest is elbow"):
        load_family(tmp_path, ARM, "domain.states=[elbw]")
