"""The scorer: blocks, ties, and what a utility of one's own may return."""

import sys

import numpy as np
import pytest
from known_tasks import known

from distpaml.errors import UserError
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.scoring import BLOCK, UtilityScorer
from distpaml.select.surprisal import surprisal


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


def test_the_best_is_the_first_of_equals_in_whatever_block(context):
    h = np.zeros((3 * BLOCK, 2))
    h[[BLOCK - 1, BLOCK, 2 * BLOCK + 5]] = 9.0
    candidates = Candidates.at(h)
    best = UtilityScorer("surprisal").best(candidates, context)
    assert best.row == BLOCK - 1 and best.utility == surprisal(Candidates.at(h[[BLOCK]]), context)[0]
    alone = UtilityScorer("surprisal").best(candidates.take(slice(BLOCK, None)), context)
    assert (alone.row, alone.utility) == (0, best.utility)


def test_scores_are_those_of_the_utility_in_whatever_block(context):
    h = np.random.default_rng(0).normal(0, 3, (BLOCK + 7, 2))
    candidates = Candidates.at(h)
    scores = UtilityScorer("surprisal").scores(candidates, context)
    np.testing.assert_array_equal(scores, surprisal(candidates, context))
    assert UtilityScorer("surprisal").best(candidates, context) == (scores.argmax(), scores.max())


def test_a_utility_of_ones_own(tmp_path, monkeypatch, context):
    (tmp_path / "my_utility.py").write_text(
        "import numpy as np\n"
        "def first(candidates, context):\n    return -np.abs(candidates.mean - context.mean[0]).sum(axis=1)\n"
        "def wrong(candidates, context):\n    return 1.0\n"
        "def infinite(candidates, context):\n    return candidates.mean[:, 0] / 0.0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_utility", raising=False)
    h = np.vstack([context.mean[::-1], [[5.0, 5.0]]])
    candidates = Candidates.at(h)
    best = UtilityScorer("my_utility:first").best(candidates, context)
    assert (best.row, best.utility) == (2, 0.0)
    with pytest.raises(UserError, match=r"'my_utility:wrong' should return 4 finite numbers .* shape \[\]"):
        UtilityScorer("my_utility:wrong").best(candidates, context)
    with pytest.raises(UserError, match="non-finite"), np.errstate(divide="ignore"):
        UtilityScorer("my_utility:infinite").best(candidates, context)
