from itertools import pairwise

import numpy as np
import pytest
from tiny import rounds_of, tiny

from distpaml.data.tasks import TaskSet
from distpaml.select.calibration import foreseen_errors
from distpaml.select.candidates import placing


def test_the_record_says_how_far_a_chosen_task_was_from_where_the_choosing_model_foresaw_it():
    shown = TaskSet(tiny()).descriptor
    rounds = rounds_of("method=paml-pool", "selection.batch=2")
    for before, after in pairwise(rounds):
        foreseen = placing(before.model, shown.low, shown.high)(after.data.descriptors)
        latents = before.model.infer(after.data, starts=foreseen.mean)
        for i, added in enumerate(after.record.added):
            mean, variance = latents.mean[i].numpy(), latents.variance[i].numpy()
            expected = (mean - foreseen.mean[i]) / np.sqrt(foreseen.variance[i] + variance)
            np.testing.assert_allclose(added.foreseen, expected, rtol=1e-6)
            assert added.latent == pytest.approx(foreseen.mean[i])


@pytest.mark.parametrize("method", ["uni", "paml"])
def test_where_no_latent_was_uncertain_there_is_nothing_to_compare(method):
    assert all(added.foreseen is None for round in rounds_of(f"method={method}") for added in round.record.added)


def test_a_task_that_is_where_it_was_foreseen_has_no_error_and_one_elsewhere_has_the_right_one():
    """With no data a latent is N(0, I), so all is known in closed form."""
    first = rounds_of()[0]
    nothing = first.data.tasks(slice(0, 2)).first(0)
    mean, variance = np.array([[0.0, 0.0], [2.0, -6.0]]), np.array([[1.0, 1.0], [3.0, 8.0]])
    errors = foreseen_errors(first.model, nothing, mean, variance)
    np.testing.assert_allclose(errors, [[0.0, 0.0], [-1.0, 2.0]], atol=1e-12)
