import subprocess
import sys

import pytest

from distpaml.domains import CartDoublePole, CartPole, Pendubot, get_domain
from distpaml.errors import UserError


def test_built_in_domains_by_name():
    names = ("cartpole", "pendubot", "cart_double_pole")
    assert [get_domain(name) for name in names] == [CartPole, Pendubot, CartDoublePole]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, importable again only by what `get_domain` does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    return tmp_path


def test_a_class_in_the_working_folder(folder):
    (folder / "shop_floor.py").write_text(
        "from distpaml.domains import CartPole\nclass Crane(CartPole):\n    name = 'crane'\n"
    )
    assert get_domain("shop_floor:Crane").name == "crane"


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("cartpol", "no such domain; the nearest is cartpole, or your own as module:Class"),
        (
            "zzz",
            "no such domain; there are cartpole, cartpole_length, cartpole_short, pendubot, cart_double_pole, or",
        ),
        ("nowhere_at_all:Crane", "but the module nowhere_at_all cannot be imported .*No module named"),
        ("broken_file:Crane", r"broken_file cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("left_early:Crane", r"left_early cannot be imported \(SystemExit: 0\)"),
        ("half_done:Finishd", "half_done has no Finishd; the nearest is Finished"),
        ("half_done:Crate", "half_done has no Crate; it defines Bare, Finished"),
        ("half_done:Bare", "Bare lacks simulate, start"),
        ("half_done:NUMBER", "NUMBER is not a subclass of distpaml.domains.Domain"),
        (":Crane", "is ':Crane', but should be module:Name"),
        ("half_done:", "is 'half_done:', but should be module:Name"),
    ],
)
def test_what_is_wrong_with_a_name_is_one_sentence(folder, name, sentence):
    (folder / "broken_file.py").write_text("1 / 0")
    (folder / "left_early.py").write_text("import sys; sys.exit(0)")
    (folder / "half_done.py").write_text(
        "from distpaml.domains import CartPole, Domain\n"
        "class Bare(Domain): pass\n"
        "class Finished(CartPole): pass\n"
        "NUMBER = 3\n"
    )
    sys.modules.pop("half_done", None)
    with pytest.raises(UserError, match=sentence) as caught:
        get_domain(name)
    assert str(caught.value).startswith(f"domain.name is {name!r}, but ")
    assert "\n" not in str(caught.value)


def test_names_and_boxes_are_read_without_mujoco():
    program = (
        "import sys; from distpaml.domains import get_domain; get_domain('pendubot').box; "
        "print({'mujoco', 'dm_control', 'scipy', 'torch'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
