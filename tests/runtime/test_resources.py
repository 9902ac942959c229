import pytest
from tiny import tiny

from distpaml.errors import UserError
from distpaml.runtime.parts import who_computes
from distpaml.runtime.resources import bundles, check_fits, fits, refusal

LAPTOP = {"CPU": 2.0}


def test_a_trial_in_one_process_needs_its_threads():
    assert bundles(tiny()) == [{"CPU": 1.0}]
    assert bundles(tiny("runtime.threads=4")) == [{"CPU": 4.0}]


def test_a_trial_with_actors_reserves_them_all_beside_a_process_that_only_waits():
    config = tiny("runtime.kind=ray", "runtime.workers=2", "fit.shards=3", "runtime.threads=2")
    assert bundles(config) == [{}, *[{"CPU": 2.0}] * 6]
    config = tiny("runtime.kind=ray", "runtime.workers=2", "runtime.gpus=0.25")
    assert bundles(config) == [{}, {"CPU": 1.0, "GPU": 0.25}, *[{"CPU": 1.0}] * 2]


@pytest.mark.parametrize(
    ("needs", "nodes", "expected"),
    [
        ([{"CPU": 1}, {"CPU": 1}], [LAPTOP], True),
        ([{"CPU": 1}] * 3, [LAPTOP], False),
        ([{"CPU": 1}] * 3, [LAPTOP, LAPTOP], True),
        ([{"CPU": 3}], [LAPTOP, LAPTOP], False),  # no process spans two machines
        (
            [{"CPU": 1}, {"CPU": 1, "GPU": 1}],
            [{"CPU": 1, "GPU": 1}, {"CPU": 1}],
            True,
        ),  # the GPU is left for who needs it
        ([{"CPU": 1, "GPU": 0.6}] * 2, [{"CPU": 8, "GPU": 1}], False),
        ([{}], [LAPTOP], True),
    ],
)
def test_what_fits(needs, nodes, expected):
    assert fits(needs, nodes) is expected


def test_two_cores_have_room_for_two_trials_and_not_for_three():
    assert fits(bundles(tiny()) * 2, [LAPTOP])
    assert not fits(bundles(tiny()) * 3, [LAPTOP])


def test_a_refusal_says_what_is_needed_and_what_is_there():
    sentence = refusal(tiny("runtime.kind=ray", "runtime.workers=7", "runtime.gpus=1"), [LAPTOP])
    assert "8 CPU and 1 GPU" in sentence and "the machine has 2 CPU" in sentence and "runtime.workers" in sentence
    with pytest.raises(UserError, match="2 machines have 2 CPU; 2 CPU"):
        check_fits(tiny("runtime.threads=3"), [LAPTOP, LAPTOP])
    assert refusal(tiny(), [LAPTOP]) is None


def test_a_trainer_with_a_gpu_evaluates_and_scores_alone_since_workers_see_none():
    without, with_gpu = tiny("runtime.kind=ray"), tiny("runtime.kind=ray", "runtime.gpus=0.5")
    assert who_computes(without, "trainer", ["a", "b"]) == (["trainer", "a", "b"], ["a", "b"])
    assert who_computes(with_gpu, "trainer", ["a", "b"]) == (["trainer"], ["trainer"])
