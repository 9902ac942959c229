"""Any YAML at all is a family that can be simulated, or one sentence."""

import copy
import string

import numpy as np
import pytest
import yaml
from families import ARM, write_family
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from test_family_errors import FILES

from distpaml.config import load
from distpaml.domains import SimulationError, control_signals
from distpaml.errors import UserError

addresses = st.sampled_from(
    ["geom.upper.mass", "geom.payload.mass", "joint.elbow.damping", "geom.upper.fromto.5", "body.lower.pos",
     "option.gravity.2", "actuator.elbow_motor.gear", "geom.0.size", "geom.upper.rgba", "joint.elbow", "geom..mass",
     "geom.lower.quat", "", "."]
) | st.text(string.ascii_lowercase + ".0123456789[]", max_size=25)  # fmt: skip
expressions = st.sampled_from(
    ["a", "b", "a * b", "2 * a - 1", "-a", "sqrt(a)", "1 / b", "a ** 9", "c", "a +", "", 1, -3.5]
) | st.text("ab01.+-*/() ", max_size=12)
numbers = (
    st.floats(-10, 10) | st.integers(-5, 5) | st.sampled_from([float("nan"), float("inf"), 1e300, None, "x", True])
)
parameter = st.fixed_dictionaries(
    {"range": st.tuples(numbers, numbers).map(list) | st.just([0.5, 2.0])},
    optional={
        "sets": st.dictionaries(addresses, expressions | st.lists(expressions, max_size=3), max_size=3),
        "scales": st.lists(addresses, max_size=2),
        "attribute": st.text(max_size=3),
    },
)
wild = st.fixed_dictionaries(
    {
        "mjcf": st.sampled_from([*3 * ["two_link_arm.xml"], "dm_control:acrobot", "massless.xml", "free.xml", "no"]),
        "parameters": st.dictionaries(st.sampled_from(["a", "b", "", "pi"]), parameter, max_size=2),
    },
    optional={
        "states": st.lists(st.sampled_from(["shoulder", "elbow", "tail", "root", "x"]), max_size=3),
        "controls": st.lists(st.sampled_from(["shoulder_motor", "elbow_motor", "m", "elbow"]), max_size=3),
        "dt": numbers,
        "substeps": st.integers(-1, 3),
        "start": st.dictionaries(st.sampled_from(["shoulder", "elbow", "y"]), expressions, max_size=2) | st.just("no"),
        "control_limit": numbers,
        "signal": st.fixed_dictionaries(
            {},
            optional={
                "shape": st.sampled_from(["ramp", "chirp", "prbs", "multisine", "recorded", "x"]),
                "limits": st.dictionaries(st.sampled_from(["elbow_motor", "z"]), st.tuples(numbers, numbers).map(list)),
                "frequencies": st.tuples(numbers, numbers).map(list),
            },
        ),
    },
)  # fmt: skip


valid_settings = st.fixed_dictionaries(
    {
        "range": st.tuples(st.floats(0.2, 1.0), st.floats(1.1, 3.0)).map(list),
        "sets": st.dictionaries(
            st.sampled_from(["geom.payload.mass", "joint.elbow.damping", "geom.upper.size", "body.lower.pos.0"]),
            st.sampled_from(["a", "a * b", "sqrt(a) + b", "a ** 2", "max(a, b) / 2"]),
            min_size=1,
        ),
        "scales": st.lists(
            st.sampled_from(["geom.upper.mass", "joint.shoulder.damping", "option.gravity.2"]), max_size=2
        ),
    }
)
tame = st.fixed_dictionaries(
    {
        "mjcf": st.just("two_link_arm.xml"),
        "parameters": st.fixed_dictionaries({"a": valid_settings, "b": valid_settings}),
    },
    optional={
        "dt": st.floats(0.01, 0.1),
        "substeps": st.integers(1, 3),
        "controls": st.sampled_from([["elbow_motor"], ["shoulder_motor", "elbow_motor"]]),
        "signal": st.fixed_dictionaries({"shape": st.sampled_from(["ramp", "chirp", "prbs", "multisine"])}),
    },
)


@st.composite
def families(draw):
    """One that is right, with some of its keys from one that is not."""
    domain, other = draw(tame), draw(wild)
    wrong = draw(st.lists(st.sampled_from(sorted(other)), max_size=2))
    return domain | {key: other[key] for key in wrong}


def _accepted_or_one_sentence(folder, domain):
    write_family(folder, ARM, **FILES)
    path = folder / "fuzzed.yaml"
    path.write_text(yaml.safe_dump({"domain": copy.deepcopy(domain)}, sort_keys=False, allow_unicode=True))
    try:
        config = load(str(path))
        again = type(config).from_yaml(config.to_yaml())
        assert again == config
        made = config.domain.make()
        rng = np.random.default_rng(0)
        signal = control_signals(made, config.domain.signal.signal(), config.domain.control_limit, 2, 5, rng)
        middle = np.array([[(low + high) / 2 for low, high in made.box.values()]])
        assert made.simulate(middle, made.start(rng)[None], signal[None]).shape == (1, 5, len(made.states))
        event("accepted")
    except SimulationError:
        event("diverged")
    except UserError as error:
        said = str(error)
        assert said.endswith(".") and "\n" not in said and len(said) < 1000, said


frugal = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], derandomize=True
)
GOOD = {"mjcf": "two_link_arm.xml", "parameters": {"a": {"range": [0.5, 2.0], "scales": ["geom.upper.mass"]}}}


@given(families())
@example(GOOD)
@settings(frugal, max_examples=40)
def test_some_fuzzed_families_are_accepted_or_one_sentence(tmp_path, domain):
    _accepted_or_one_sentence(tmp_path, domain)


@pytest.mark.slow
@given(families())
@settings(frugal, max_examples=500)
def test_fuzzed_families_are_accepted_or_one_sentence(tmp_path, domain):
    _accepted_or_one_sentence(tmp_path, domain)
