"""``envdoctor.lock.json``: what was written is what is read, and damage is named."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.intake.lock_reader import lock_facts, parse_lock, target_facts
from envdoctor.lock.emit import render
from envdoctor.lock.locking import lock
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Absent, Evidence, Known, Unknown
from envdoctor.model.facts import Facts, Gpu, LockOverride
from envdoctor.model.resolution import Resolution

TARGET = Facts(parse_assumptions(["gpu=H20:8", "nvidia-driver=535.129.03", "glibc=2.31"]))


@pytest.fixture(scope="module")
def written():
    resolution = lock(["vllm==0.6.3"], [TARGET], python="3.10")
    assert isinstance(resolution, Resolution)
    return resolution, render(resolution, "1.0", load_matrix())["envdoctor.lock.json"]


def test_round_trip(written):
    found, text = written
    read = parse_lock(text, "lock")
    assert read.pins == found.pins
    assert read.overrides == found.overrides
    assert read.requires == found.requires
    assert read.settings == found.settings
    assert read.roots == tuple(root.text for root in found.request.roots)


def test_targets_are_read_as_they_were_given(written):
    (facts,) = target_facts(parse_lock(written[1], "lock"))
    assert {field: fact.value for field, fact in facts} == {
        field: fact.value for field, fact in TARGET
    }


def test_a_target_is_kept_without_what_names_the_machine():
    devices = (
        Gpu("H100", "10de:2330", uuid="GPU-1", pci_bus="0000:01:00.0", memory_used=7, visible=True),
        Gpu("T4", visible=False),
    )
    here = Evidence("/home/me/facts.json")
    facts = Facts(
        {
            "gpus": Known(devices, here),
            "variables": Known({"HF_TOKEN": "x"}, here),
            "compat.release": Absent(here),
        }
    )
    resolution = lock(["einops"], [facts], python="3.11")
    text = render(resolution, "1.0", load_matrix())["envdoctor.lock.json"]
    assert not [word for word in ("GPU-1", "0000:01", "HF_TOKEN", "/home/me") if word in text]
    (kept,) = target_facts(parse_lock(text, "lock"))
    assert kept.value("gpus") == (Gpu("H100", "10de:2330"),)
    assert isinstance(kept.get("compat.release"), Absent)
    assert isinstance(kept.get("driver.release"), Unknown)


def test_facts_name_the_contradictions(written):
    facts = lock_facts(parse_lock(written[1], "lock"))
    assert facts["lock.overrides"].value == (
        LockOverride("torch", "nvidia-cublas-cu12", "12.3.4.1", "cublas-12.1-sigfpe-h20"),
    )


@settings(max_examples=400)
@given(st.data())
def test_damage_is_an_input_error(written, data):
    """Any member replaced by something else is read all the same, or refused with its place."""
    table = json.loads(written[1])
    node, key = table, data.draw(st.sampled_from(sorted(table)))
    while isinstance(node[key], (dict, list)) and node[key] and data.draw(st.integers(0, 3)):
        node = node[key]
        key = data.draw(
            st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
        )
    node[key] = data.draw(st.sampled_from([None, 1, "?", [], {}, [1], {"a": 1}, True]))
    with suppress(InputError):  # any other exception is a fault
        parse_lock(json.dumps(table), "lock")
