"""Sweeps that are killed again and again, at random but seeded moments: `python tests/soak.py SECONDS [SEED]`.

In every sweep three blows fall: on the driver, a trial, the raylet, the GCS, or all of them at once, by SIGKILL or
SIGTERM, or a stop for two seconds. After each the sweep goes on by itself or is resumed. It prints a line per sweep,
and ends with status 1 unless each of them has the records of an undisturbed one and nothing grows: no process is left,
no entry in the folder for temporary files, no memory, no descriptor. Ray's own session folders, which Ray never
removes, are kept apart and removed here.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "sweep"), str(HERE / "runtime")]
from sweeps import SweepProcess, in_process, results, small  # noqa: E402

SIZE = ("rounds=6", "fit.evaluations=60")
SEEDS, BLOWS, LIMIT = 2, 3, 300.0
VICTIMS = ("driver", "ray::", "raylet", "gcs_server", "all")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)


def title(process: psutil.Process) -> str:
    """The program or, of a worker, its title; without options, which name others."""
    try:
        return " ".join(process.cmdline()).partition(" --")[0]
    except psutil.Error:
        return ""


def struck(sweep: SweepProcess, chance: random.Random) -> str:
    """Hit some process of the sweep; what was done."""
    victim, how = chance.choice(VICTIMS), chance.choice(SIGNALS)
    alive = sweep.alive()
    hit = [
        process
        for process in alive
        if victim == "all"
        or (victim == "driver" and process.pid == sweep.process.pid)
        or (victim not in ("driver", "all") and victim in title(process))
    ]
    for process in hit if victim in ("driver", "all") else hit[-1:]:
        try:
            process.send_signal(how)
        except psutil.Error:
            continue
    if how == signal.SIGSTOP:
        time.sleep(2)
        for process in hit:
            try:
                process.send_signal(signal.SIGCONT)
            except psutil.Error:
                continue
    return f"{how.name[3:].lower()} {victim}" if hit else "missed"


def disturbed(folder: Path, chance: random.Random, ray: Path) -> tuple[list[str], str]:
    """Run a sweep to its end under blows: which fell, and what is wrong with it, if anything."""
    words = small("methods=[uni]", f"seeds={SEEDS}", *SIZE, "--out", "out")
    blows, end = list[str](), time.monotonic() + LIMIT
    while time.monotonic() < end:
        sweep = SweepProcess(*words, cwd=folder, RAY_TMPDIR=str(ray), TMPDIR=str(folder.parent))
        while len(blows) < BLOWS and sweep.process.poll() is None:
            try:
                sweep.process.wait(chance.uniform(2, 15))
            except Exception:
                blows.append(struck(sweep, chance))
        try:
            sweep.wait()
        except Exception:
            for process in sweep.alive():
                process.kill()
            return blows, "it hung"
        if "Traceback" in sweep.err:
            return blows, sweep.err[-2000:]
        gone = time.monotonic() + 20
        while left := sweep.alive():
            if time.monotonic() > gone:
                return blows, f"left running: {[title(process) for process in left]}"
            time.sleep(0.1)
        if sweep.code == 0:
            return blows, ""
        begun = (folder / "out/sweep.yaml").exists()
        words = ["--resume", "out"] if begun else words
    return blows, "it did not end"


def main(seconds: float, seed: int) -> int:
    chance, failures, number = random.Random(seed), 0, 0
    top, ray = Path(tempfile.mkdtemp(prefix="soak")), Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    runs = {f"cartpole-uni-seed{s}": ("method=uni", f"seed={s}", *SIZE) for s in range(SEEDS)}
    expected = in_process(top / "undisturbed", runs)
    print(f"{'sweep':>5} {'seconds':>8} {'tmp':>4} {'processes':>9} {'MiB free':>8} {'files':>6}  blows and verdict")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number, begin = number + 1, time.monotonic()
        folder = top / f"sweep-{number}"
        folder.mkdir()
        blows, wrong = disturbed(folder, chance, ray)
        if not wrong and results(folder / "out") != expected:
            wrong = "other records than the undisturbed sweep"
        failures += bool(wrong)
        if not wrong:
            shutil.rmtree(folder)
        shutil.rmtree(ray, ignore_errors=True)
        ray.mkdir()
        state = (
            f"{number:5} {time.monotonic() - begin:8.1f} {len(list(top.glob('distpaml-*/process-*'))):4} "
            f"{len(psutil.pids()):9} {psutil.virtual_memory().available >> 20:8} "
            f"{Path('/proc/sys/fs/file-nr').read_text().split()[0]:>6}"
        )
        print(f"{state}  {', '.join(blows) or 'none'}: {wrong or 'the same records'}", flush=True)
    shutil.rmtree(ray, ignore_errors=True)
    if not failures:
        shutil.rmtree(top)
    print(f"{number} sweeps, {failures} failed (seed {seed}){f', kept in {top}' if failures else ''}")
    return bool(failures)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
