"""What DCGM, gpud and NVIDIA Health Validation wrote, in the forms of their releases."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Known
from envdoctor.model.facts import HealthFailure
from envdoctor.probes.health_reports import parse_health, probe_health_reports
from envdoctor.probes.machine import Machine


def test(name, *results):
    return {"name": name, "results": list(results)}


test.__test__ = False

#: DCGM 4.2: entities, warnings with a severity. 5 is a setting.
DCGM_4 = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Deployment",
                "tests": [
                    test(
                        "software",
                        {
                            "entity_group": "GPU",
                            "entity_id": 0,
                            "status": "Fail",
                            "warnings": [
                                {"error_id": 29, "error_severity": 5, "warning": "Persistence Mode"}
                            ],
                        },
                    )
                ],
            },
            {
                "category": "Hardware",
                "tests": [
                    test(
                        "memory",
                        {"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
                        {
                            "entity_group": "GPU",
                            "entity_id": 3,
                            "status": "Fail",
                            "warnings": [{"error_severity": 2, "warning": "Detected\n1 DBE"}],
                        },
                        {"entity_group": "GPU", "entity_id": 4, "status": "Skip"},
                    )
                ],
            },
        ]
    },
    "metadata": {"version": "4.2.3"},
}
#: DCGM 3: ids as text, nulls between the tests, a warning before the JSON.
DCGM_3 = {
    "DCGM GPU Diagnostic": {
        "test_categories": [
            {
                "category": "Stress",
                "tests": [
                    test("Denylist", {"gpu_ids": "0,1", "status": "PASS"}),
                    None,
                    test("SM Stress", {"gpu_ids": "1", "status": "FAIL", "warnings": ["too slow"]}),
                ],
            }
        ],
        "version": "3.2.0",
    }
}
GPUD = [
    {"component": "cpu", "states": [{"health": "Healthy", "reason": "ok"}]},
    {
        "component": "accelerator-nvidia-infiniband",
        "states": [{"health": "Unhealthy", "reason": "only 7 ports are active, expect 8"}],
    },
    {"component": "disk", "states": [{"health": "Degraded", "reason": "x"}]},
    {"component": "fuse", "states": None},
]


def affected(severity, *checks, entities=()):
    """Return a component as NVIDIA's verdict schema has it."""
    return {
        "category": "gpu",
        "check_ids": list(checks),
        "entities": list(entities),
        "max_severity": severity,
    }


def verdict(*components):
    """Return a verdict; of its other members the reader knows nothing."""
    return json.dumps({"node_id": "n1", "summary": {"affected_components": list(components)}})


@pytest.mark.parametrize(
    ("text", "failures"),
    [
        (
            json.dumps(DCGM_4),
            [
                HealthFailure("x", "software of GPU 0", "Persistence Mode", True),
                HealthFailure("x", "memory of GPU 3", "Detected 1 DBE"),
            ],
        ),
        (
            "WARNING: x\n" + json.dumps(DCGM_3),
            [HealthFailure("x", "SM Stress of GPU 1", "too slow")],
        ),
        (
            json.dumps(GPUD),
            [
                HealthFailure(
                    "x", "accelerator-nvidia-infiniband", "only 7 ports are active, expect 8"
                ),
            ],
        ),
        (
            verdict(
                affected("CRITICAL", "gpu_power_state", entities=["GPU-0", "GPU-3"]),
                affected("CRITICAL", "gpu_count", "gpu_power_limit"),
            ),
            [
                HealthFailure("x", "gpu (GPU-0, GPU-3)", "gpu_power_state"),
                HealthFailure("x", "gpu", "gpu_count, gpu_power_limit"),
            ],
        ),
        (verdict(affected("WARNING", "gpu_xid_warning")), []),
        (
            verdict({**affected("CRITICAL", "y"), "entities": None}),
            [HealthFailure("x", "gpu", "y")],
        ),
        (verdict({**affected("CRITICAL"), "check_ids": 3}), None),
        (verdict(), None),
        ("[]", None),
        ("{}", None),
        ("Error: cannot connect", None),
        ('{"DCGM Diagnostic": 3}', None),
        ('{"DCGM Diagnostic": {"test_categories": []}}', []),
    ],
)
def test_what_tools_write(text, failures):
    assert parse_health(text, "x") == failures


def test_a_folder_of_reports(tmp_path):
    (tmp_path / "dcgm.json").write_text(json.dumps(DCGM_3))
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "else.json").write_text("{}")
    machine = Machine(environment={"ENVDOCTOR_HEALTH": str(tmp_path)})
    fact = probe_health_reports(machine)["health.failures"]
    assert isinstance(fact, Known)
    assert fact.value == (HealthFailure("dcgm", "SM Stress of GPU 1", "too slow"),)
    assert fact.evidence.detail.startswith("dcgm.json of 20")


def test_without_reports(tmp_path):
    machine = Machine(environment={"ENVDOCTOR_HEALTH": str(tmp_path / "none")})
    assert isinstance(probe_health_reports(machine)["health.failures"], Absent)


@given(st.text(alphabet='[]{}":,a1 \n', max_size=80))
def test_any_text(text):
    parse_health(text, "x")
