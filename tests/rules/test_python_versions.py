"""ED303 and ED305: which Python a distribution is for; the case without an installed copy is in
``test_packages``.
"""

from __future__ import annotations

from .conftest import Judge, by_code, codes, distribution, facts_of


def test_python_outside_the_range(judged: Judge) -> None:
    vllm = distribution("vllm 0.19.0", python=">=3.10,<3.14")
    finding = by_code(judged(facts_of([vllm], python_version="3.14.0")), "ED303")
    assert (finding.component, finding.kind) == ("python", "too-new")
    assert finding.packages == ("vllm",)
    assert by_code(judged(facts_of([vllm], python_version="3.9.1")), "ED303").kind == "too-old"
    assert "ED303" not in codes(judged(facts_of([vllm], python_version="3.12.3")))
    assert "ED303" not in codes(judged(facts_of([vllm])))


def test_a_release_without_a_wheel_for_this_python(judged: Judge) -> None:
    """What is installed was installed somehow; what a file names is not yet."""
    asked = distribution("xformers 0.0.28", location="")._replace(requires=None)
    facts = facts_of([asked], python_version="3.13.1", complete=False)
    finding = by_code(judged(facts), "ED305")
    assert (finding.component, finding.kind) == ("python", "too-new")
    facts = facts_of([asked], python_version="3.12.1", complete=False)
    assert "ED305" not in codes(judged(facts))
