"""Ask and tell with the robot of `robot.py`, which runs in another process and talks files only.

    python -m distpaml.examples.workshop FOLDER [TASKS]

Killed at any moment and started again, it goes on.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from distpaml import Experiment
from distpaml.durable_io import write_durably

DECLARATION = {
    "name": "arm",
    "descriptors": {
        "payload": [0.5, 2.0],
        "length": [0.3, 0.8],
        "joint": {"categories": ["plain", "bearing"]},
    },
    "states": ["angle", "speed"],
    "controls": ["torque"],
    "angles": ["angle"],
    "units": {"payload": "kg", "length": "m", "angle": "deg", "speed": "deg/s", "torque": "Nm"},
    "dt": 0.05,
}


def main(folder: Path, tasks: int) -> Experiment:
    experiment = Experiment(DECLARATION, folder / "experiment")
    (folder / "stop").unlink(missing_ok=True)
    robot = subprocess.Popen([sys.executable, "-m", "distpaml.examples.robot", "serve", str(folder)])
    try:
        while (status := experiment.status()).count("observed") < tasks:
            out = [task for task in status.tasks if task.state == "out"] or experiment.ask(2)
            for task in out:
                print(attempt(experiment, folder, robot, task.id, task.descriptor), flush=True)
    finally:
        (folder / "stop").touch()
        robot.wait()
    return experiment


def attempt(experiment: Experiment, folder: Path, robot: subprocess.Popen, id: int, descriptor: dict) -> str:
    """Give the robot its order and wait for what it leaves."""
    done, broken = (folder / "results" / f"{id}{suffix}" for suffix in (".csv", ".txt"))
    if not done.exists() and not broken.exists():
        (folder / "orders").mkdir(exist_ok=True)
        write_durably(folder / "orders" / f"{id}.json", json.dumps(descriptor).encode())
    while not done.exists() and not broken.exists():
        if robot.poll() is not None:
            raise RuntimeError(f"the robot has stopped with status {robot.returncode}")
        time.sleep(0.02)
    if broken.exists():
        return f"task {id} failed: {experiment.fail(id, broken.read_text()).reason}"
    return f"task {id}: {experiment.tell(id, done).transitions} transitions"


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 6)
