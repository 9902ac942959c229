import numpy as np
import pytest
from tiny import rounds_of, run_loop, tiny

from distpaml.config import shipped
from distpaml.rounds import State


def results(rounds):
    return [round.record.result() for round in rounds]


@pytest.mark.parametrize("method", ["paml", "paml-pool"])
def test_the_same_config_and_seed_twice_is_the_same_to_the_bit(method):
    assert results(run_loop(tiny(f"method={method}"))) == results(rounds_of(f"method={method}"))


def test_another_seed_is_another_experiment():
    assert results(rounds_of("seed=1"))[0]["rmse"] != results(rounds_of())[0]["rmse"]


@pytest.mark.parametrize("experiment", shipped())
def test_every_shipped_experiment_runs(experiment):
    rounds = rounds_of("rounds=1", "method=paml", experiment=experiment)
    assert [round.record.round for round in rounds] == [0, 1]
    first, second = (round.record for round in rounds)
    assert second.tasks == first.tasks + 1 == len(first.added) + 1
    assert all(np.isfinite([second.rmse, second.nll, second.rmse_paper, second.nll_paper]))
    total = 100 if experiment == "cartpole_images" else 400
    assert second.candidates.total == total and 0 < second.candidates.valid <= total
    assert second.terms.keys() >= {"elbo", "data_fit", "kl_inducing", "kl_latent", "decoder"}
    assert second.seconds.keys() == {"choose", "simulate", "fit", "evaluate"}


def test_each_round_goes_on_from_data_and_last_model_alone():
    whole = rounds_of("rounds=3")
    for finished in (1, 2, 3):
        data = whole[0].data
        for round in whole[1:finished]:
            data = data.append(round.data)
        rest = run_loop(tiny("rounds=3"), State(data, whole[finished - 1].model, finished))
        assert results(rest) == results(whole[finished:])


def test_a_batch_adds_as_many_tasks():
    rounds = rounds_of("selection.batch=2")
    assert [round.record.tasks for round in rounds] == [3, 5, 7]
    assert all(len(round.record.added) == 2 for round in rounds[1:])


def test_no_rounds_is_the_model_of_the_initial_tasks():
    assert results(rounds_of("rounds=0")) != []
    assert [round.record.tasks for round in rounds_of("rounds=0")] == [3]


def test_the_chosen_task_is_the_one_that_is_simulated_and_learned():
    for round in rounds_of("method=paml-pool")[1:]:
        descriptor = np.array(round.record.added[0].descriptor)
        np.testing.assert_array_equal(round.data.descriptors[0], descriptor)
        np.testing.assert_array_equal(round.tasks.parameters[0], descriptor)
        np.testing.assert_array_equal(round.model.descriptors[-1].numpy(), descriptor)


def test_few_shot_scores_are_in_the_record():
    record = rounds_of("rounds=0", "evaluation.shots=[0, 5]")[0].record
    assert record.shots.keys() == {0, 5}
    assert record.shots[0].keys() == record.shots[5].keys() >= {"rmse", "nll", "rmse_paper_median"}
