"""The proof table in docs/plan-proofs.md: every model under every plan of one and of three axes, on eight devices.

    python benchmarks/plans/proof_table.py [--pairs] [--models transformer experts] [--page]

Simulated CPU devices, float64; about an hour on two cores with `--pairs`. What was measured is kept in a file
(`--rows`), so that an interrupted run continues; `--page` writes the page from what is there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=600 "
    "--xla_backend_optimization_level=0"  # faster to compile; three steps are not worth more
)
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(ROOT / "tests"))

HEAD = """# Proof of the plans

Made by `python benchmarks/plans/proof_table.py --pairs` on {date}, jax {jax}, eight simulated CPU devices, float64.
Rows are kept between runs: those of one day may be of several commits. Programs are compiled at XLA's optimization
level 0.
Small models (`tests/plan_cases.py`), three steps of Adam under each plan and on one device.

- difference: of losses, gradient norms and parameters after three steps from those of one device, relative to the
  largest parameter.
- bytes: what one device sends in a step, counted in the compiled program, over what the formulas say.
- memory: arguments of the compiled step on one device (parameters, optimizer state, batch), over the formula.
- kinds: AR all-reduce, AG all-gather, RS reduce-scatter, AA all-to-all, CP collective-permute.

DeepONets send up to half a percent less: two biases that are always added have equal gradients, which XLA sends once.
Memory of the smallest models is a percent above: step counters and the like.
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
    import plan_cases

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", action="store_true", help="pairs of axes too")
    options.add_argument("--models", nargs="+", default=list(plan_cases.MAKERS), help="those of tests/plan_cases.py")
    options.add_argument("--page", action="store_true", help="measure nothing")
    options.add_argument("--rows", type=Path, default=Path(tempfile.gettempdir()) / "sciml-plan-measured.json")
    chosen = options.parse_args()
    for name, title, plan in () if chosen.page else _all(chosen.models, (1, 2, 3) if chosen.pairs else (1, 3)):
        rows = _known(chosen.rows)
        if _key(name, title) not in rows:
            rows[_key(name, title)] = dataclasses.asdict(plan_cases.measured(name, plan))
            chosen.rows.write_text(json.dumps({**_known(chosen.rows), **rows}))
            print(" | ".join(_row(name, title, plan, rows)), flush=True)
    _write(_known(chosen.rows))


def _known(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def _all(models: list[str], counts: tuple[int, ...]) -> Iterator[tuple[str, str, Any]]:
    import plan_cases

    from sciml.parallel.plan import Plan

    for name in models:
        for count in counts:
            for title, sizes in plan_cases.plans(name, count).items():
                yield name, title, Plan(**sizes)


def _key(name: str, title: str) -> str:
    return f"{name}: {title}"


def _row(name: str, title: str, plan: Any, rows: dict[str, Any]) -> list[str]:
    import plan_cases

    found, expected = plan_cases.Measured(**rows[_key(name, title)]), plan_cases.predicted(name, plan)
    traffic = f"{found.sent / expected.sent:.4f}"
    kinds = " ".join(sorted(SHORT[kind] for kind in found.kinds))
    return [name, title, f"{found.difference:.1e}", traffic, f"{found.arguments / expected.arguments:.4f}", kinds]


def _write(rows: dict[str, Any]) -> None:
    import jax
    import plan_cases

    wanted = list(_all(list(plan_cases.MAKERS), (1, 2, 3)))
    table = [_row(*one, rows) for one in wanted if _key(*one[:2]) in rows]
    worst = max(float(row[2]) for row in table)
    bytes_off = max(abs(float(row[3]) - 1) for row in table)
    lines = [HEAD.format(date=date.today(), jax=jax.__version__)]
    lines.append(f"{len(table)} plans; largest difference {worst:.1e}, bytes at most {bytes_off:.1%} off.\n")
    missing = [_key(*one[:2]) for one in wanted if _key(*one[:2]) not in rows]
    if missing:
        lines += ["Not run:\n", *[f"- {key}" for key in missing], ""]
    lines += ["| model | plan | difference | bytes | memory | kinds |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in table]
    (ROOT / "docs" / "plan-proofs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
