import pytest

from distpaml.doctor import checks
from distpaml.doctor.__main__ import main
from distpaml.errors import UserError


@pytest.mark.gl
def test_this_machine_is_fine(capsys):
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"ok       {name}" for name in checks.CHECKS]
    assert lines[0].startswith("ok       versions: Python 3.") and "drawn off screen by" in lines[1]


def test_a_problem_says_what_to_do_and_fails(capsys, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    assert main() == 1
    assert "problem  rendering: Images cannot be rendered here (disable failed): MUJOCO_GL" in capsys.readouterr().out


def test_a_wrong_version_is_a_problem(monkeypatch):
    monkeypatch.setattr(checks, "version", lambda name: "4.0.0" if name == "mujoco" else "99.0")
    with pytest.raises(UserError, match=r"mujoco is 4.0.0, but should be .*<4"):
        checks.versions()


def test_a_check_is_one_function(capsys, monkeypatch):
    monkeypatch.setattr(checks, "CHECKS", {})

    @checks.check
    def weather() -> str:
        raise UserError("It rains; stay inside.")

    assert main() == 1
    assert capsys.readouterr().out == "problem  weather: It rains; stay inside.\n"
