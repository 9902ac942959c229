"""Sweeps that are killed again and again, at random but seeded moments: `python tests/soak.py SECONDS [SEED]`.

In every sweep three blows fall: on the driver, a trial, the raylet, the GCS, or all of them at once, by SIGKILL or
SIGTERM, or a stop for two seconds; soon after a start, or once a round is finished. After each the sweep goes on by
itself or is resumed. It prints a line per sweep and a table in the end, with status 1 unless each sweep has the records
of an undisturbed one, leaves no process, and the last leaves no more than the first: no entry in the folder for
temporary files, and of the whole machine, with room for what else it does (`ROOM`), no processes, no shared memory, no
open files. Memory in use is told but not judged, since it is mostly that of others.
Ray's own session folders, which Ray never removes, are kept apart and removed here.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from unittest.mock import patch

import psutil

from distpaml.scratch import temporary_folder

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "sweep"), str(HERE / "runtime")]
from sweeps import SweepProcess, in_process, results, small  # noqa: E402

SIZE = ("method=uni", "seed=0", "rounds=10")
BLOWS, LIMIT = 3, 900.0
BUSY = {"RAY_worker_niceness": "0"}
"""Ray's workers give way to all other processes, so that beside other work a sweep hardly moves and seems to hang."""
ROOM = {"entries": 0, "processes": 20, "shared": 256, "files": 2048}
"""By how much the state of the machine may differ between the first sweep and the last."""
TRIAL = "cartpole-uni-seed0"
VICTIMS = ("ray::", "raylet", "gcs_server")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)


@dataclass(frozen=True)
class State:
    """What there is when no sweep runs."""

    entries: int
    """In the folder for temporary files, at any depth."""
    processes: int
    shared: int
    """Mebibytes of shared memory, which outlives those who made it."""
    used: int
    """Mebibytes of memory."""
    files: int
    """Open ones."""

    @classmethod
    def of(cls, temporary: Path) -> "State":
        memory = psutil.virtual_memory()
        files = int(Path("/proc/sys/fs/file-nr").read_text().split()[0])
        return cls(
            len(list(temporary.rglob("*"))), len(psutil.pids()), memory.shared >> 20, memory.used >> 20, files
        )  # fmt: skip


def grown(first: State, last: State) -> list[str]:
    """What there is too much more of."""
    before, after = asdict(first), asdict(last)
    return [f"{name} {before[name]} → {after[name]}" for name in ROOM if after[name] > before[name] + ROOM[name]]


def table(sweeps: int, failures: int, blows: list[str], resumes: int, states: list[State], seconds: float) -> str:
    """What happened in all, for a page."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(blows).most_common())
    before, after = asdict(states[0]), asdict(states[-1])
    rows = {
        "sweeps": sweeps,
        "of them with the undisturbed records": sweeps - failures,
        "blows": f"{len(blows)} ({kinds})",
        "resumes": resumes,
        **{f"{name}, first → last": f"{before[name]} → {after[name]}" for name in before},
        "seconds": round(seconds),
    }
    return "\n".join(["| soak | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def title(process: psutil.Process) -> str:
    """The program or, of a worker, its title; without options, which name others."""
    try:
        return " ".join(process.cmdline()).partition(" --")[0].strip()
    except psutil.Error:
        return ""


def struck(sweep: SweepProcess, chance: random.Random) -> str:
    """Hit some process of the sweep; what was done."""
    alive = sweep.alive()
    titles = {process: title(process) for process in alive}
    victims = {name: [process for process in alive if name in titles[process]][-1:] for name in VICTIMS}
    victims |= {"driver": [process for process in alive if process.pid == sweep.process.pid], "all": alive}
    victim, how = chance.choice([name for name in victims if victims[name]] or ["all"]), chance.choice(SIGNALS)
    hit = victims[victim]
    for process in hit:
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


def moment(sweep: SweepProcess, records: Path, chance: random.Random) -> None:
    """Wait for the next blow: soon, or until one more round is finished; or until the sweep ends."""
    rounds = _rounds(records) if chance.random() < 0.3 else None
    soon = time.monotonic() + chance.uniform(0.5, 4)
    while sweep.process.poll() is None:
        if time.monotonic() > soon if rounds is None else _rounds(records) > rounds:
            time.sleep(chance.uniform(0, 0.5))
            return
        time.sleep(0.02)


def _rounds(records: Path) -> int:
    return records.read_bytes().count(b"\n") if records.exists() else 0


def disturbed(folder: Path, chance: random.Random, ray: Path, temporary: Path) -> tuple[list[str], int, str]:
    """Run a sweep to its end under blows: which fell, how often it was resumed, and what is wrong with it, if any."""
    words = small("methods=[uni]", "seeds=1", SIZE[-1], "--out", "out")
    records = folder / f"out/trials/{TRIAL}/records.jsonl"
    blows, resumes, end = list[str](), 0, time.monotonic() + LIMIT
    while time.monotonic() < end:
        sweep = SweepProcess(*words, cwd=folder, RAY_TMPDIR=str(ray), TMPDIR=str(temporary), **BUSY)
        while len(blows) < BLOWS and sweep.process.poll() is None:
            moment(sweep, records, chance)
            if sweep.process.poll() is None:
                blows.append(struck(sweep, chance))
        try:
            sweep.wait(LIMIT)
        except subprocess.TimeoutExpired:
            for process in sweep.alive():
                process.kill()
            return blows, resumes, "it hung"
        if "Traceback" in sweep.err:
            return blows, resumes, sweep.err[-2000:]
        gone = time.monotonic() + 20
        while left := sweep.alive():
            if time.monotonic() > gone:
                return blows, resumes, f"left running: {[title(process) for process in left]}"
            time.sleep(0.1)
        if sweep.code == 0:
            return blows, resumes, ""
        begun = (folder / "out/sweep.yaml").exists()
        words = ["--resume", "out"] if begun else words
        resumes += 1
    return blows, resumes, "it did not end"


def main(seconds: float, seed: int) -> int:
    chance, failures, number, fallen, resumes = random.Random(seed), 0, 0, list[str](), 0
    top, ray = Path(tempfile.mkdtemp(prefix="soak")), Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    temporary = top / "tmp"
    temporary.mkdir()
    expected, states = in_process(top / "undisturbed", {TRIAL: SIZE}), list[State]()
    print("sweep  seconds  " + "  ".join(field.name for field in fields(State)) + "  blows and verdict")
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        number, begin = number + 1, time.monotonic()
        folder = top / f"sweep-{number}"
        folder.mkdir()
        blows, again, wrong = disturbed(folder, chance, ray, temporary)
        fallen, resumes = fallen + blows, resumes + again
        if not wrong and results(folder / "out") != expected:
            wrong = "other records than the undisturbed sweep"
        failures += bool(wrong)
        if not wrong:
            shutil.rmtree(folder)
        shutil.rmtree(ray, ignore_errors=True)
        ray.mkdir()
        with patch("tempfile.tempdir", str(temporary)), temporary_folder():
            pass  # what killed processes left goes at the next start
        states.append(State.of(temporary))
        counts = "  ".join(f"{count:{len(name)}}" for name, count in asdict(states[-1]).items())
        line = f"{number:5}  {time.monotonic() - begin:7.1f}  {counts}  {', '.join(blows) or 'none'}"
        print(f"{line}: {wrong or 'the same records'}", flush=True)
    shutil.rmtree(ray, ignore_errors=True)
    more = grown(states[0], states[-1])
    bad = bool(failures or more)
    if not bad:
        shutil.rmtree(top)
    print(table(number, failures, fallen, resumes, states, time.monotonic() - start))
    print(f"{number} sweeps, {failures} failed, {', '.join(more) or 'nothing'} grew (seed {seed})", end="")
    print(f", kept in {top}" if bad else "")
    return bad


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
