"""Statements about a package and the CUDA of torch: that takes its library by torch's CUDA and has
none, and that refuses a torch for another CUDA than its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence, Set

from packaging.version import Version

from envdoctor.matrix.measured_rows import HAS_NO_LIBRARY, REFUSES_CUDA

from .documents import runs
from .packages import Packages
from .release import Release

__all__ = ["cuda_check_statements", "cuda_file_statements"]


def cuda_file_statements(
    packages: Packages, releases: Sequence[Release], matrices: Path
) -> List[Dict[str, Any]]:
    """Return one statement for each CUDA of torch's builds for which older releases lack a library
    that a newer one has. Of a CUDA that no release has nothing is said, nor of releases after the
    last that has it: those may take another.

    releases: Of one package, oldest first.
    """
    name = releases[0].archive.package if releases else ""
    chosen = packages.by_cuda.get(name)
    path = matrices / "packages" / "torch.json"
    if chosen is None or not path.exists():
        return []
    torch = json.loads(path.read_text("utf-8"))["releases"]
    since = Version(chosen["since"])
    judged = [release for release in releases if release.version >= since]
    statements = []
    for cuda in sorted(_cudas(torch), key=Version):
        file = chosen["library"].format(cuda.replace(".", ""))
        having = [place for place, release in enumerate(judged) if file in release.archive.members]
        if not having or not having[0]:
            continue
        first, last = judged[having[0]], judged[having[0] - 1]
        statements.append(
            {
                "id": f"no-library-cuda-{cuda}",
                "provider": "torch",
                "module": "",
                "name": "",
                "effect": "degrades",
                "verb": HAS_NO_LIBRARY,
                "text": file.rpartition("/")[2],
                "in": runs([release.archive.version for release in judged], range(having[0])),
                "lacking": [[torch[0]["version"], torch[-1]["version"]]],
                "kind": "too-old",
                "component": name,
                "archive": last.archive.file,
                "path": file,
                "line": 0,
                "with": [["torch", f"cuda=={cuda}"], [f"${chosen['variable']}", "-"]],
                "pin": f"{name}>={first.archive.version}",
            }
        )
    return statements


def _cudas(torch: Sequence[Dict[str, Any]]) -> Set[str]:
    """The CUDA versions that torch's releases are built for."""
    return {
        build["cuda"]
        for release in torch
        for build in release.get("builds", ())
        if build.get("cuda", "").count(".") == 1
    }


def cuda_check_statements(
    packages: Packages, releases: Sequence[Release], matrices: Path
) -> List[Dict[str, Any]]:
    """Return one statement for each CUDA of a package's builds, where its code raises beside a
    torch for another; for each major, where it compares no more than that.

    releases: Of one package, oldest first.
    """
    name = releases[0].archive.package if releases else ""
    text = packages.compares_cuda.get(name)
    path = matrices / "packages" / f"{name}.json"
    if text is None or not path.exists():
        return []
    places = [(number, release.place_of(text)) for number, release in enumerate(releases)]
    raising = [(number, place) for number, place in places if place is not None]
    if not raising:
        return []
    last, (file, line) = raising[-1]
    own = sorted(_cudas(json.loads(path.read_text("utf-8"))["releases"]), key=Version)
    if "major" in text:
        majors = sorted({int(cuda.partition(".")[0]) for cuda in own})
        asked = {
            str(major): (f">={major},<{major + 1}", f"<{major}||>={major + 1}") for major in majors
        }
    else:
        asked = {cuda: (f"=={cuda}", f"!={cuda}") for cuda in own}
    torch = json.loads((matrices / "packages" / "torch.json").read_text("utf-8"))["releases"]
    return [
        {
            "id": f"refuses-another-cuda-than-{cuda}",
            "provider": "torch",
            "module": "",
            "name": cuda,
            "effect": "degrades",
            "verb": REFUSES_CUDA,
            "text": text,
            "in": runs(
                [release.archive.version for release in releases],
                [number for number, _ in raising],
            ),
            "lacking": [[torch[0]["version"], torch[-1]["version"]]],
            "kind": "abi-mismatch",
            "component": name,
            "archive": releases[last].archive.file,
            "path": file,
            "line": line,
            "with": [[name, f"cuda{same}"], ["torch", f"cuda{other}"]],
        }
        for cuda, (same, other) in asked.items()
    ]
