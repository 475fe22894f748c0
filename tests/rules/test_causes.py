"""Order: roots first, consequences under them, nothing graver hidden under something lighter, no
circles.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.finding import SEVERITIES, Finding, severity_rank
from envdoctor.rules.causes import CAUSES, arrange

_CODES = sorted(
    {code for cause in CAUSES for code in cause.roots}
    | {code for cause in CAUSES for code in cause.effects}
    | {"ED806", "ED501"}
)
_FINDINGS = st.lists(
    st.builds(
        Finding,
        code=st.sampled_from(_CODES),
        component=st.sampled_from(
            ["torch", "vllm", "nvidia-driver", "cuda-compat", "nvidia-nccl", "libnccl", "python"]
        ),
        kind=st.sampled_from(["too-old", "abi-mismatch", "two-copies"]),
        severity=st.sampled_from(SEVERITIES),
        message=st.sampled_from(["a", "b"]),
        verdict=st.sampled_from(["violated", "violated", "undetermined"]),
    ),
    max_size=12,
)


@given(_FINDINGS, st.randoms())
def test_order_is_total_and_free_of_circles(findings: list[Finding], random) -> None:
    ordered = arrange(findings)
    shuffled = list(findings)
    random.shuffle(shuffled)
    assert [(entry.key, entry.verdict, entry.caused_by) for entry in arrange(shuffled)] == [
        (entry.key, entry.verdict, entry.caused_by) for entry in ordered
    ]
    assert {(entry.key, entry.verdict) for entry in ordered} == {
        (entry.key, entry.verdict) for entry in findings
    }
    violated = {entry.key: entry for entry in ordered if entry.verdict == "violated"}
    place = {
        entry.key: number for number, entry in enumerate(ordered) if entry.verdict == "violated"
    }
    for entry in violated.values():
        seen = {entry.key}
        root = entry
        while root.caused_by is not None:
            root = violated[root.caused_by]
            assert root.key not in seen
            seen.add(root.key)
        assert severity_rank(root.severity) <= severity_rank(entry.severity)
        if entry.caused_by is not None:
            assert place[entry.caused_by] < place[entry.key]
    roots = [
        severity_rank(entry.severity)
        for entry in ordered
        if entry.caused_by is None and entry.verdict == "violated"
    ]
    assert roots == sorted(roots)


def _finding(
    code: str, component: str, kind: str = "too-old", severity: str = "error", **values: str
) -> Finding:
    return Finding(code, component, kind, severity, f"{code} {component}", **values)


def test_duplicates_become_one() -> None:
    arranged = arrange(
        [_finding("ED101", "nvidia-driver", severity="warning"), _finding("ED101", "nvidia-driver")]
    )
    assert [finding.severity for finding in arranged] == ["error"]


def test_known_bad_row_stands_under_the_rule_that_says_the_same() -> None:
    arranged = arrange(
        [
            _finding("ED290", "nvidia-nccl", "two-copies", row="some-row"),
            _finding("ED201", "nvidia-nccl", "two-copies"),
        ]
    )
    assert [(finding.code, finding.caused_by) for finding in arranged] == [
        ("ED201", None),
        ("ED290", "ED201:nvidia-nccl:two-copies"),
    ]


def test_an_error_is_never_hidden_under_a_warning() -> None:
    arranged = arrange(
        [_finding("ED304", "torch", severity="warning"), _finding("ED401", "vllm", "abi-mismatch")]
    )
    assert all(finding.caused_by is None for finding in arranged)


def test_another_python_and_another_ray_on_nodes_are_two_causes() -> None:
    kind = "version-mismatch-across-nodes"
    nodes = [_finding("ED702", "python", kind), _finding("ED703", "ray", kind)]
    assert [finding.caused_by for finding in arrange(nodes)] == [None, None]
    joining = [_finding("ED709", name, kind, subject="cluster") for name in ("python", "ray")]
    assert [finding.caused_by for finding in arrange(joining)] == [
        None,
        f"ED709:ray:{kind}:cluster",
    ]
