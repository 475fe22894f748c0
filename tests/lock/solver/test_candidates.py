"""What the solver may choose from."""

from __future__ import annotations

from envdoctor.lock.solver.candidates import Catalog
from envdoctor.matrix.loader import Matrix
from envdoctor.model.request import Request, parse_root


def test_a_build_that_only_nightlies_have_is_no_candidate(matrix: Matrix) -> None:
    package = matrix.package("torch")
    assert package is not None
    nightly = {
        f"{version}+{build.variant}"
        for version, release in package.releases()
        for build in release.builds
        if build.nightly
    }
    request = Request((parse_root("torch"),), "3.12", allow_index=("pytorch",))
    offered = {str(entry.version) for entry in Catalog(matrix, request).table("torch").candidates}
    assert nightly
    assert not nightly & offered
    assert any("+" in version for version in offered)
