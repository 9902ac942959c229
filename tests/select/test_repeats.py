"""Choices that nearly repeat a known task are marked."""

import numpy as np
from tiny import rounds_of

from distpaml.select.repeats import NEAR, near_repeats

LOW, HIGH = np.array([0.0, 10.0]), np.array([1.0, 30.0])


def test_a_repeat_is_near_in_every_dimension():
    known = np.array([[0.5, 20.0], [0.9, 29.0]])
    chosen = np.array([[0.5, 20.1], [0.5, 21.0], [0.905, 29.1], [0.5, 21.1]])
    assert near_repeats(chosen, known, LOW, HIGH) == (0, None, 1, 3)  # the last repeats a choice of its own batch


def test_the_paper_s_procedure_repeats_itself_and_the_record_says_so():
    """It picks the lower corner of the box again and again; see distpaml/select/README.md."""
    records = [round.record for round in rounds_of("method=paml", "rounds=8", "domain.trajectory_length=60")]
    known = []
    for record in records:
        for added in record.added:
            near = [
                number
                for number, other in enumerate(known)
                if record.round and np.abs((np.array(other) - added.descriptor) / [4.5, 1.5]).max() <= NEAR
            ]
            assert (added.repeats is not None) == bool(near) and (not near or added.repeats in near)
            known.append(added.descriptor)
    assert any(added.repeats is not None for record in records for added in record.added)
