"""A run that has ended goes on with more rounds; fewer are refused."""

import re

import pytest
from tiny import SIZE, tiny

import distpaml
from distpaml.config import ExperimentConfig
from distpaml.errors import UserError
from distpaml.extension import as_begun, extended
from distpaml.records import read_records
from distpaml.run import main
from distpaml.runtime.run_experiment import run_experiment, run_to_end


def results(folder):
    return [record.result() for record in read_records(folder)]


@pytest.mark.parametrize("method", ["paml-pool", "uni", "lhs"])
def test_more_rounds_go_on_from_the_last_one(tmp_path, method):
    config = tiny(f"method={method}", "rounds=1")
    begun = [record.result() for record in run_to_end(config, tmp_path / "run")]
    more = tiny(f"method={method}", "rounds=3")
    run_to_end(more, tmp_path / "run")
    assert results(tmp_path / "run")[:2] == begun and len(results(tmp_path / "run")) == 4
    assert ExperimentConfig.from_yaml(tmp_path / "run/config.yaml") == more
    assert distpaml.load_run(tmp_path / "run").config.rounds == 3
    run_to_end(tiny(f"method={method}", "rounds=4"), tmp_path / "run")  # and again
    assert len(results(tmp_path / "run")) == 5


def test_an_extended_run_that_is_killed_resumes_with_the_same_results(tmp_path):
    for name in ("whole", "killed"):
        run_to_end(tiny("method=uni", "rounds=0"), tmp_path / name)
    run_to_end(tiny("method=uni", "rounds=2"), tmp_path / "whole")
    going = run_experiment(tiny("method=uni", "rounds=2"), tmp_path / "killed")
    next(going), next(going)
    going.close()
    run_to_end(tiny("method=uni", "rounds=2"), tmp_path / "killed")
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


def test_a_run_that_was_extended_before_its_first_round_can_be_extended_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text(tiny("method=uni", "rounds=0").to_yaml())  # killed in round 0
    for rounds in (1, 2):
        run_to_end(tiny("method=uni", f"rounds={rounds}"), tmp_path / "run")
    assert len(results(tmp_path / "run")) == 3


def test_fewer_rounds_are_refused_with_what_would_be_lost(tmp_path, capsys):
    run = [*SIZE, "method=uni", "--out", str(tmp_path / "run")]
    assert main([*run, "rounds=2"]) == 0
    assert main([*run, "rounds=0"]) == 2
    assert "holds 2 rounds, and rounds=0 would drop rounds 1 to 2; choose another" in capsys.readouterr().err
    assert main([*run, "rounds=1"]) == 2
    assert "would drop round 2;" in capsys.readouterr().err
    assert len(read_records(tmp_path / "run")) == 3


def test_nothing_else_may_change_in_an_extended_config(tmp_path):
    run_to_end(tiny("method=uni", "rounds=0"), tmp_path)
    run_to_end(tiny("method=uni", "rounds=1"), tmp_path)
    file = tmp_path / "config.yaml"
    file.write_text(re.sub("inducing: 40", "inducing: 41", file.read_text()))
    with pytest.raises(UserError, match=r"config\.yaml"):
        read_records(tmp_path)


def test_the_text_comes_back(tmp_path):
    text = tiny("rounds=2").to_yaml()
    assert as_begun(text) == text
    twice = extended(extended(text, 5), 9)
    assert as_begun(twice) == text and ExperimentConfig.from_yaml(twice) == tiny("rounds=9")
