"""A robot that knows nothing of distpaml and talks files only: one arm in a vertical plane, with a payload at its end.

    python -m distpaml.examples.robot try run.csv payload=1.2 length=0.5 joint=plain      one task, one recording
    python -m distpaml.examples.robot serve FOLDER                                        until FOLDER/stop is there

`serve` takes orders FOLDER/orders/ID.json and leaves FOLDER/results/ID.csv, or ID.txt if something broke. Recordings
are as they come from hardware: degrees wrapped to one turn, times not quite even, samples that got lost, noise.
"""

import csv
import json
import os
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from zlib import crc32

import numpy as np

DT, SAMPLES, LOST = 0.05, 100, 40
FRICTION = {"plain": 0.4, "bearing": 0.05}


def record(path: str | Path, payload: float, length: float, joint: str = "plain") -> None:
    """Move an arm with this payload [kg], length [m] and joint, and write what the sensors said."""
    path = Path(path)
    rng = np.random.default_rng(crc32(f"{payload} {length} {joint}".encode()))
    times = np.arange(SAMPLES) * DT + rng.uniform(-0.1, 0.1, SAMPLES) * DT
    torques = 6.0 * np.sign(np.sin(np.arange(SAMPLES) / 8.0)) + rng.normal(0.0, 0.5, SAMPLES)
    angle, speed = np.pi, 0.0
    rows = []
    for now, torque, after in zip(times, torques, [*times[1:], times[-1]], strict=True):
        measured = np.degrees([angle, speed]) + rng.normal(0.0, [0.05, 0.2])
        rows.append([f"{now:.4f}", f"{(measured[0] + 180) % 360 - 180:.3f}", f"{measured[1]:.3f}", f"{torque:.3f}"])
        for _ in range(20):
            pull = torque + 9.81 * payload * length * np.sin(angle) - FRICTION[joint] * speed
            speed += (after - now) / 20 * pull / (payload * length**2 + 0.1)
            angle += (after - now) / 20 * speed
    rows[LOST][1] = ""
    with NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, newline="") as file:
        csv.writer(file).writerows([["time", "angle [deg]", "speed [deg/s]", "torque [Nm]"], *rows])
    os.replace(file.name, path)


def serve(folder: Path) -> None:
    """Carry out orders until told to stop, or left alone; every fourth breaks something."""
    orders, results = folder / "orders", folder / "results"
    for path in (orders, results):
        path.mkdir(parents=True, exist_ok=True)
    owner = os.getppid()
    while not (folder / "stop").exists() and os.getppid() == owner:
        for order in sorted(orders.glob("[0-9]*.json")):
            if int(order.stem) % 4 == 0:
                (results / f"{order.stem}.txt").write_text("the gripper lost its payload")
            else:
                record(results / f"{order.stem}.csv", **json.loads(order.read_text()))
            order.unlink()
        time.sleep(0.02)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            serve(Path(folder))
        case ["try", file, *words]:
            values = dict(word.split("=") for word in words)
            record(Path(file), float(values["payload"]), float(values["length"]), values["joint"])
        case _:
            sys.exit(__doc__)
