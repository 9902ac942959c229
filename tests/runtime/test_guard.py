"""Whatever a driver's Ray has left when the driver is killed is killed too; other processes stand for both here."""

import os
import subprocess
import sys

import psutil
import pytest
from actors import eventually

from distpaml.runtime.guard import MARK, guarded
from distpaml.runtime.lifeline import is_alive

DRIVER = """
import subprocess, sys, time
from distpaml.runtime.guard import guarded
nested = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True); import time; time.sleep(600)"
with guarded() as started:
    raylet = subprocess.Popen([sys.executable, "-c", nested], stdout=subprocess.PIPE, text=True)
    agent = int(raylet.stdout.readline())
    time.sleep(0.5)
    started()
    time.sleep(0.5)
    tracker = subprocess.Popen(["sleep", "600"])
    time.sleep(3)
    print(raylet.pid, agent, tracker.pid, flush=True)
    time.sleep(600)
"""


def test_ray_is_killed_with_its_driver_and_nothing_else_is():
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True) as driver:
        raylet, agent, tracker = (psutil.Process(int(pid)) for pid in driver.stdout.readline().split())
        assert is_alive(raylet) and is_alive(agent)
        driver.kill()
        driver.wait(20)
        eventually(lambda: not is_alive(raylet) and not is_alive(agent), 10)
        assert is_alive(tracker)
        tracker.kill()


BUSY = """
import subprocess, sys, time
from distpaml.runtime.guard import guarded
worker = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
raylet = f"import subprocess, sys; input(); subprocess.run([sys.executable, '-c', {worker!r}])"
with guarded() as started:
    ray = subprocess.Popen([sys.executable, "-c", raylet], stdin=subprocess.PIPE, text=True)
    started()
    time.sleep(0.5)
    print(file=ray.stdin, flush=True)
    time.sleep(600)
"""


def test_a_worker_that_has_just_been_started_is_killed_too():
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as driver:
        worker = psutil.Process(int(driver.stdout.readline()))
        driver.kill()
        driver.wait(20)
        eventually(lambda: not is_alive(worker), 10)


def test_the_guard_goes_with_its_context():
    before = set(psutil.Process().children())
    with guarded() as started:
        assert MARK in os.environ
        started()
        assert MARK not in os.environ
        assert len(set(psutil.Process().children()) - before) == 1
    assert set(psutil.Process().children()) == before
    with pytest.raises(ValueError), guarded():
        raise ValueError
    assert MARK not in os.environ


def test_a_guard_that_was_killed_is_not_missed():
    before = set(psutil.Process().children())
    with guarded():
        (guard,) = set(psutil.Process().children()) - before
        guard.kill()
        eventually(lambda: not is_alive(guard), 10)
    assert set(psutil.Process().children()) == before
