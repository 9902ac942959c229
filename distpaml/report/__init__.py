"""The report: `python -m distpaml.report DIR…` writes one self-contained page about runs and sweeps.

collect.py      directories and files → runs; unreadable ones are listed and skipped
archive.py      runs in one parquet file, without their arrays
groups.py       runs → experiments, and in each a group per method and variant
statistics.py   curves over seeds, area under the curve, paired differences with bootstrap intervals
aggregate.py    differences over several experiments together
claims.py       the paper's claims, each supported or not, with its numbers
run_detail.py   the latent space, predictions and rollouts of a run
kinematics.py   joint positions of the paper's systems
searches.py     samples of a search, importance of keys, the best configuration
timings.py      seconds by stage, throughput, failures and retries
styles.py       colours, dashes and markers of groups
packing.py      numbers in few bytes
payload.py      everything that the page shows, as one tree of plain values
page.py         that tree and the files in assets/ → one HTML file
figures.py      the same figures as PDF and PNG, for papers
image_figures.py  figures of runs whose tasks are described by images
showcase.py     what the paper's figures show of single runs, in small files: python -m distpaml.report.showcase
paper_figures.py  these figures, and those of the paper's two traps
live.py         the same page, live: python -m distpaml.dashboard
"""

from collections.abc import Sequence
from pathlib import Path


def write_report(paths: Sequence[Path], out: Path, figures: bool = False) -> Path:
    """Write `out`/index.html about all runs in `paths`, and figures for papers if asked for; returns the page.

    `paths` are directories of sweeps, of runs, or of both. Damaged runs are listed on the page and never raise.
    The page is replaced atomically, so it can be rewritten while a sweep runs.
    """
    from distpaml.durable_io import write_durably
    from distpaml.errors import UserError
    from distpaml.report.collect import collect
    from distpaml.report.page import html
    from distpaml.report.payload import payload

    tree = payload(collect(paths))
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_durably(out / "index.html", html(tree).encode())
        if figures:
            from distpaml.report.figures import write_figures

            write_figures(tree, out / "figures")
    except OSError as error:
        raise UserError(f"The report cannot be written to {out}: {error.strerror or error}.") from error
    return out / "index.html"
