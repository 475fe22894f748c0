"""Small matrices folders for tests: our tables, two packages, rows as a test wants them."""

import json
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "matrices"
FAR = "2029-01-01"  # later than any built-in date, and not yet come

ROW = """
[[row]]
id = "{id}"
title = "{title}"
effect = "{effect}"
trust = "{trust}"
component = "{component}"
kind = "{kind}"
when = [{when}]
fix = "{fix}"
pins = [{pins}]
sources = [{{ address = "{source}" }}]
date = "{date}"
"""


def row_text(row_id, when, **changes):
    """Return a row in TOML."""
    values = {
        "id": row_id,
        "title": f"Row {row_id}",
        "effect": "blocks",
        "trust": "established",
        "component": "torch",
        "kind": "too-old",
        "when": when,
        "fix": "Ask.",
        "pins": "",
        "source": "https://github.com/pytorch/pytorch/issues/1",
        "date": "2026-11-01",
        "extra": "",
    }
    values.update(changes)
    return ROW.format(**values) + values["extra"]


def package_text(name, releases, date="2026-11-01"):
    """Return a package file; ``releases`` maps versions to further fields."""
    entries = [
        {"version": version, "released": "2026-10-01", **fields}
        for version, fields in releases.items()
    ]
    document = {
        "schema": 1,
        "name": name,
        "source": "our index",
        "date": date,
        "trust": "established",
        "releases": entries,
    }
    return json.dumps(document)


def small_matrix(folder, rows="", date="2026-11-01", packages=None):
    """Make a whole matrices folder: our tables of drivers, CUDA and GPUs, one or more packages,
    these rows.
    """
    (folder / "errata").mkdir(parents=True)
    (folder / "packages").mkdir()
    for name in ("drivers.toml", "cuda.toml", "gpus.toml"):
        # Of one date, so that what is newer does not depend on when a table was last edited.
        (folder / name).write_text(
            re.sub(r"\b20\d\d-\d\d-\d\d\b", "2026-11-01", (SOURCE / name).read_text())
        )
    if packages is None:
        packages = {
            "torch": {"2.5.0": {}, "2.6.0": {"requires": ["triton==3.2.0"]}},
            "vllm": {"0.8.4": {}, "0.8.5": {"requires": ["torch==2.6.0"]}},
        }
    for name, releases in packages.items():
        (folder / "packages" / f"{name}.json").write_text(package_text(name, releases, date))
    (folder / "errata" / "x.toml").write_text(
        rows or row_text("old-torch", '{ env = "torch", in = "<2.6" }', date=date)
    )
    return folder
