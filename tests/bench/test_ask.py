from argparse import Namespace

from distpaml.bench import ask


def test_an_ask_is_compared_with_a_fit_afresh(capsys):
    small = {
        "model": {"inducing": 20},
        "fit": {"evaluations": 5},
        "selection": {"pool_size": 32},
    }
    overrides = ("domain.trajectory_length=20", "model.inducing=20", "fit.evaluations=20", "fit.restarts=2")
    results = ask.run(Namespace(), tasks=4, overrides=overrides, **small)
    assert [result.name for result in results] == ["ask", "ask-8"]
    for result in results:
        assert result.unit == "s" and result.ours > 0.0 and result.ratio == result.other / result.ours
    assert capsys.readouterr().out.count("of the processor") == 3
