"""What holds of every utility; their formulas have files of their own."""

from dataclasses import replace

import numpy as np
import pytest
from known_tasks import candidates, known

from distpaml.errors import UserError
from distpaml.select.candidates import Candidates
from distpaml.select.scoring import UtilityScorer
from distpaml.select.utilities import UTILITIES, get_utility


@pytest.mark.parametrize("name", UTILITIES)
def test_scores_do_not_depend_on_order_or_shards(name):
    rng, context = np.random.default_rng(3), known()
    some = candidates(rng.normal(size=(23, 2)))
    some = replace(some, variance=rng.uniform(0, 0.1, (23, 2)))
    for given in (context, context.observing(candidates(np.array([[1.5, -0.5]])))):
        whole, order = UTILITIES[name](some, given), rng.permutation(23)
        assert whole.shape == (23,) and whole.std() > 0
        np.testing.assert_allclose(UTILITIES[name](some.take(order), given), whole[order], rtol=1e-7)
        shards = [UTILITIES[name](some.take(slice(i, i + 5)), given) for i in range(0, 23, 5)]
        np.testing.assert_allclose(np.concatenate(shards), whole, rtol=1e-7)
        again = UtilityScorer(name).scores(some, given)
        np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize("name", UTILITIES)
def test_a_chosen_task_counts_as_observed(name):
    context, two = known(), candidates(np.array([[1.0, 1.5], [-2.0, 0.5]]))
    before = UTILITIES[name](two, context)
    after = UTILITIES[name](two, context.observing(two.take(slice(0, 1))))
    assert after[0] < (0.9 if name == "disagreement" else 0.5) * before[0]  # members differ by less than the noise


@pytest.mark.parametrize("name", UTILITIES)
def test_pending_tasks_count_in_whatever_order(name):
    context, two = known(), candidates(np.array([[1.0, 1.5], [-2.0, 0.5]]))
    some = candidates(np.random.default_rng(0).normal(size=(5, 2)))
    at_once = UTILITIES[name](some, context.observing(two))
    one_by_one = UTILITIES[name](some, context.observing(two.take(slice(1, 2))).observing(two.take(slice(0, 1))))
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-6, atol=1e-9)


def test_the_known_tasks_and_those_chosen_are_in_the_context():
    context, two = known(), candidates(np.array([[1.0, 1.5], [-2.0, 0.5]]))
    after = context.observing(two)
    assert (context.fitted, after.fitted, len(after.known)) == (3, 3, 5)
    np.testing.assert_array_equal(after.known.descriptors[:3], context.model.descriptors)
    np.testing.assert_array_equal(after.known.descriptors[3:], two.descriptors)
    np.testing.assert_array_equal(after.mean[3:], two.mean)
    np.testing.assert_array_equal(after.variance[3:], np.median(context.variance, axis=0)[None].repeat(2, axis=0))


@pytest.mark.parametrize("overrides", [("model.dtype=float32",), ("fit.kind=svgp", "fit.adam_steps=20")], ids=" ".join)
@pytest.mark.parametrize("name", UTILITIES)
def test_scores_are_finite_after_every_kind_of_fit(name, overrides):
    some = candidates(np.random.default_rng(0).normal(0, 3, (7, 2)))
    context = known(*overrides)
    for given in (context, context.observing(some.take(slice(0, 2)))):
        scores = UtilityScorer(name).scores(some, given)  # which refuses what is not finite
        assert scores.dtype == np.float64 and len(set(scores)) > 1


def test_points_of_latent_space_have_no_descriptors():
    points = Candidates.at(np.ones((4, 2)))
    assert points.descriptors.shape == (4, 0) and len(points) == 4 and not points.variance.any()


def test_an_unknown_utility_is_a_sentence():
    with pytest.raises(UserError, match="'suprisal', but there is no such utility; the nearest is surprisal"):
        get_utility("suprisal")
