"""The proof table in docs/plan-proofs.md: every model under every plan of one and of three axes, on eight devices.

    python benchmarks/plans/proof_table.py [--pairs]

Simulated CPU devices, float64; about half an hour on two cores. Rows are kept in a file beside the compiled
programs (`--rows`), so that an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=600"
)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["NPROC"] = "32"  # XLA's threads: eight devices that wait for each other need more than eight
sys.path.insert(0, str(ROOT / "tests"))

HEAD = """# Proof of the plans

Made by `python benchmarks/plans/proof_table.py` on {date}, jax {jax}, eight simulated CPU devices, float64. Small
models (`tests/plan_cases.py`), three steps of Adam under each plan and on one device.

- difference: of losses, gradient norms and parameters after three steps from those of one device, relative to the
  largest parameter.
- bytes: what one device sends in a step, counted in the compiled program, over what the formulas say.
- memory: arguments of the compiled step on one device (parameters, optimizer state, batch), over the formula.
- kinds: AR all-reduce, AG all-gather, RS reduce-scatter, AA all-to-all, CP collective-permute.

A dash: no formula (a PINN split over `tensor` sends what its derivatives need; the schedule 1F1B repeats the forward
pass of split layers).
"""
SHORT = {
    "all-reduce": "AR",
    "all-gather": "AG",
    "reduce-scatter": "RS",
    "all-to-all": "AA",
    "collective-permute": "CP",
}


def main() -> None:
    """Prove, then write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", action="store_true", help="pairs of axes too")
    options.add_argument("--rows", type=Path, default=Path(tempfile.gettempdir()) / "sciml-plan-proofs.json")
    chosen = options.parse_args()
    rows = json.loads(chosen.rows.read_text()) if chosen.rows.exists() else {}
    for name, title, plan in _all(chosen.pairs):
        key = f"{name}: {title}"
        if key not in rows:
            rows[key] = _row(name, title, plan)
            chosen.rows.write_text(json.dumps(rows))
            print(rows[key], flush=True)
    _write(list(rows.values()))


def _all(pairs: bool):
    import plan_cases

    for name in plan_cases.MAKERS:
        for count in (1, 2, 3) if pairs else (1, 3):
            for title, plan in plan_cases.plans(name, count).items():
                yield name, title, plan


def _row(name: str, title: str, sizes: dict) -> list[str]:
    import plan_cases

    from sciml.parallel.plan import Plan

    proof = plan_cases.prove(name, Plan(**sizes))
    traffic = "-" if proof.traffic is None else f"{proof.traffic:.4f}"
    kinds = " ".join(sorted(SHORT[kind] for kind in proof.kinds))
    memory = f"{proof.arguments / proof.predicted_arguments:.4f}"
    return [name, title, f"{proof.difference:.1e}", traffic, memory, kinds]


def _write(rows: list[list[str]]) -> None:
    import jax

    worst = max(float(row[2]) for row in rows)
    lines = [HEAD.format(date=date.today(), jax=jax.__version__)]
    lines.append(f"{len(rows)} plans; largest difference {worst:.1e}.\n")
    lines += ["| model | plan | difference | bytes | memory | kinds |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    (ROOT / "docs" / "plan-proofs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
