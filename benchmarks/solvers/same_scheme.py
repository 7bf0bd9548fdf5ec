"""Time per step against Exponax at the same scheme (ETDRK4, 2/3 rule), grid and step.

python benchmarks/solvers/same_scheme.py [--cases burgers ks] [--batches 1 16] [--repeats 9]
"""

from __future__ import annotations

import argparse

import against_exponax
import numpy as np
from cases import CASES
from timing import interleaved, one_core

COLUMNS = ("case", "batch", "`integrate`", "`solve`", "Exponax default", "Exponax best", "default / ours",
           "best / ours", "difference")  # fmt: skip


def main() -> None:
    """Print one row per case and batch: CPU microseconds per step, ratios, and how far the answers are apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    one_core()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for key in given.cases:
        for batch in given.batches:
            print(row(key, batch, given.repeats), flush=True)


def row(key: str, batch: int, repeats: int) -> str:
    """One row of the table, as Markdown; times are CPU microseconds per step of the whole batch."""
    case = CASES[key]()
    ours = {"plain": case.plain(batch), "checked": case.checked(batch)}
    runs = ours | against_exponax.contenders(key, case, batch)
    found = np.asarray(runs["plain"]())
    expected = against_exponax.SIGN.get(key, 1.0) * np.asarray(runs["Exponax default"]()).reshape(found.shape)
    apart = float(np.abs(found - expected).max() / np.abs(expected).max())
    spent = {name: 1e6 * t / case.steps for name, t in interleaved(runs, repeats).items()}
    default = spent["Exponax default"]
    best, how = min((t, name) for name, t in spent.items() if name.startswith("Exponax"))
    cells = [
        case.name, batch, *(f"{spent[n]:.1f}" for n in ours), f"{default:.1f}", f"{best:.1f} ({how.split()[-1]})",
        f"**{default / spent['plain']:.2f}**", f"**{best / spent['plain']:.2f}**", f"{apart:.0e}",
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
