"""A YAML file may be hostile: too large, too deep, multiplied by aliases. It is refused at once, in a sentence."""

import re
import time

import pytest

from distpaml.config import load
from distpaml.config.yaml_loader import DEEPEST, MOST_NODES
from distpaml.config.yaml_text import parse_value
from distpaml.errors import UserError
from distpaml.sweep.load import load_sweep

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
CHAIN = "x0: &x0 [1]\n" + "".join(f"x{i + 1}: &x{i + 1} [*x{i}]\n" for i in range(500))
HOSTILE = {  # what a file holds → what the sentence says
    BOMB + "method: *j\n": "more than .* keys and values, aliases included at line 6",
    BOMB + "fit: {kind: *j}\n": "aliases included",
    "name: &n " + "x" * 100_000 + "\nmethod: [" + ", ".join(["*n"] * 1_000) + "]\n": "method is",
    "".join(f"{'k' * 20}{i}: 1\n" for i in range(40_000)): "is not a key",
    "".join(f"? [{i}]\n: 1\n" for i in range(50_000)): "unhashable",
    "".join(f"!!str &k{i} ',,{i}\\e': *k{i}\n" for i in range(20_000)): "is not a key",
    f"seed: [&a [{'1, ' * 1000}], {'*a, ' * 400}]\n": "more than 300000 keys and values, aliases included",
    f"{'k' * 1000}: 1\n": "more than 300 characters",
    CHAIN: "nested too deeply",
    "seed: " + "[" * 100_000: "nested too deeply, in more than 20 levels",
    "seed: " + "{a: " * 100_000: "nested too deeply",
    "- " * 100_000: "nested too deeply",
    "seed: &s !!set {? *s}\n": "contains itself",
    "seed: !!set {a}\n": "could not determine a constructor",
    "seed: !!python/object/apply:os.system [id]\n": "could not determine a constructor",
    "seed: !!bool x\n": "'x' cannot be read as bool at line 1",
    "seed: !!float ''\n": "'' cannot be read as float",
    "seed: !!int 1.5\n": "'1.5' cannot be read as int",
    "seed: !!map [a]\n": "expected a mapping node, but found sequence at line 1",
    f"fit: {{tolerance: !!float '{'9:' * 400}9'}}\n": "cannot be read as float at line 1",
    "seed: !!timestamp x\n": "could not determine a constructor",
    "seed: !!int [1]\n": "expected a scalar",
    f"domain: {{box: {{pole_mass: [1, {'9' * 400}]}}}}\n": r"two finite numbers with low < high, up to 1e\+100",
    f"fit: {{tolerance: {'9' * 400}}}\n": "fit.tolerance is 999",
    '"a\\e[31mb": 1\n': r"a\\x1b\[31mb",
    '"a\\u202eb": 1\n': r"a\\u202eb",
}


@pytest.mark.parametrize(("text", "said"), HOSTILE.items(), ids=range(len(HOSTILE)))
@pytest.mark.timeout(60)
def test_a_hostile_file_is_refused_within_seconds_and_in_one_sentence(tmp_path, text, said):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    for loaded in (load, load_sweep):
        begin = time.process_time()
        with pytest.raises(UserError) as caught:
            loaded(file)
        assert time.process_time() - begin < 10
        sentence = str(caught.value)
        assert sentence.isprintable() and len(sentence) < 1000
        assert re.search(said, sentence) or loaded is load_sweep


@pytest.mark.parametrize("key", ["." * 3000, ".".join("a" * 3000), "a" * 3000, "model.\x1b[31m", "&a"])
def test_an_override_with_an_odd_key_is_one_sentence(tmp_path, key):
    (tmp_path / "mine.yaml").write_text("seeds: 2")
    for loaded in (lambda: load(None, [f"{key}=1"]), lambda: load(None, {key: 1})):
        with pytest.raises(UserError) as caught:
            loaded()
        assert str(caught.value).isprintable() and len(str(caught.value)) < 1000


@pytest.mark.parametrize("overrides", [{1: 2}, {None: 1}, {"seed": 10**5000}, {"evaluation.shots": [10**5000]}])
def test_odd_overrides_from_python_are_one_sentence(overrides):
    with pytest.raises(UserError, match=r"should have text as its key|too many digits"):
        load("cartpole", overrides)


def test_what_is_just_within_the_limits_is_read():
    deep = parse_value("[" * DEEPEST + "]" * DEEPEST, "it")
    for _ in range(DEEPEST - 1):
        (deep,) = deep
    assert deep == []
    many = (MOST_NODES - 3) // 3
    assert len(parse_value(f"[&a [1, 2], {'*a, ' * (many - 1)}]", "it")) == many
    with pytest.raises(UserError, match="aliases included"):
        parse_value(f"[&a [1, 2], {'*a, ' * many}1, 1, 1]", "it")
