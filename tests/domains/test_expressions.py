"""Arithmetic from YAML: the numbers that Python would give, and nothing else."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distpaml.domains.expressions import ExpressionError, evaluate, names_in

VALUES = {"mass": 2.0, "upper_length": 0.5}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (3, 3.0),
        ("mass", 2.0),
        ("-upper_length", -0.5),
        ("0.5 * mass + 1", 2.0),
        ("mass ** 2 / 8", 0.5),
        ("pi / 4", math.pi / 4),
        ("sqrt(mass * 2)", 2.0),
        ("max(mass, 3) - min(1, mass)", 2.0),
        ("atan2(1, 1)", math.pi / 4),
        (" 7 % 4 ", 3.0),
    ],
)
def test_values(expression, expected):
    assert evaluate(expression, VALUES) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("mas", "no parameter 'mas'; the nearest is mass"),
        ("__import__('os').system('true')", "not arithmetic"),
        ("mass.__class__", "not arithmetic"),
        ("(lambda: 1)()", "not arithmetic"),
        ("[1][0]", "not arithmetic"),
        ("'a' * 3", "not arithmetic"),
        ("mass if mass else 1", "not arithmetic"),
        ("mass +", "not arithmetic"),
        ("open('x')", "not arithmetic"),
        ("exec(1)", "cannot be evaluated"),
        ("1 / 0", "division by zero"),
        ("sqrt(-1)", "cannot be evaluated with mass=2"),
        ("(-1) ** 0.5", "cannot be evaluated"),
        ("exp(1000)", "cannot be evaluated"),
        ("1e308 * 10", "is inf"),
        ("1" * 501, "more than 500"),
        ("9" * 400, "too large"),
        ("", "not arithmetic"),
    ],
)
def test_what_has_no_value_is_said(expression, said):
    with pytest.raises(ExpressionError) as caught:
        evaluate(expression, VALUES)
    assert said in str(caught.value)


def test_powers_end_at_once():
    begun = time.monotonic()
    for tower in ("9 ** 9 ** 9 ** 9", "3999999 ** 3999999", "10 ** 3999999"):
        with pytest.raises(ExpressionError):
            evaluate(tower, {})
    assert time.monotonic() - begun < 1.0


@given(st.text(max_size=60) | st.from_regex(r"[a-z0-9.+*/() -]{1,40}", fullmatch=True))
def test_any_text_is_a_finite_number_or_a_sentence(text):
    try:
        assert math.isfinite(evaluate(text, VALUES))
    except ExpressionError as error:
        assert "\n" not in str(error)


def test_names():
    assert names_in("sqrt(mass) + 2 * upper_length - pi") == {"mass", "upper_length", "pi"}
    assert names_in(2.0) == set()
