"""The tables of keys: what they say of versions, and that layouts are those of the profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.plan.frameworks.key_tables import load_table
from envdoctor.plan.frameworks.reading import _adapter

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PROFILES = {"simplerl": "simplerl-reason"}
TABLES = [path.stem for path in (ROOT / "envdoctor/plan/frameworks/defaults").glob("*.json")]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_names_the_source_of_every_version(name: str) -> None:
    content = json.loads(
        (ROOT / "envdoctor" / "plan" / "frameworks" / "defaults" / f"{name}.json").read_text(
            encoding="utf-8"
        )
    )
    assert set(content["versions"]) == set(content["sources"])
    assert content["trust"] == "established"
    for rows in content["configs"].values():
        for runs in rows.values():
            assert all(0 <= first <= last < len(content["versions"]) for first, last, _ in runs)
            assert all(before[1] < after[0] for before, after in zip(runs, runs[1:]))


def test_published_defaults_of_known_versions() -> None:
    """From the documentation and the release files: verl 0.2 has no swap_space, 0.4.1 has it,
    simpleRL sets 40.
    """
    verl, swap = load_table("verl"), "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"
    assert verl.versions_of(swap) == ("0.4.0", "0.4.1", "0.5.0")
    assert load_table("simplerl").values("actor_rollout_ref.rollout.swap_space", ["v1"]) == [
        (40, ("v1",))
    ]
    assert {
        versions[0]: value
        for value, versions in verl.values("actor_rollout_ref.rollout.max_num_seqs", verl.versions)
    } == {
        "0.1": 1024,
        "0.9.0": 256,
    }
    openrlhf = load_table("openrlhf", "train_ppo_ray")
    assert openrlhf.versions_of("zero_stage")[-1] == "0.10.1.post2"
    assert openrlhf.versions_of("ds.zero_stage")[0] == "0.10.2"
    assert openrlhf.values("vllm_gpu_memory_utilization", ["0.8.0"]) == [(0.95, ("0.8.0",))]


def test_a_version_between_releases_is_one_of_its_neighbours() -> None:
    table = load_table("verl")
    assert table.match("0.4.1") == ("0.4.1",)
    assert table.match("v0.4.1") == ("0.4.1",)
    assert table.match("0.4.2") == ("0.4.1", "0.5.0")
    assert table.match("1.0") == ("0.9.1",)
    assert table.match("main") == ()


def profile_of(name: str) -> Path:
    return ROOT / "matrices" / "profiles" / f"{PROFILES.get(name, name)}.toml"


#: prime-rl has none: its lock takes wheels and packages from git alone.
LOCKED = sorted(set(TABLES) - {"prime-rl"})


@pytest.mark.parametrize("name", LOCKED)
def test_a_layout_is_that_of_the_profile(name: str) -> None:
    profile = tomllib.loads(profile_of(name).read_text(encoding="utf-8"))["layout"]
    layout = _adapter(name).layout
    assert list(layout.files) == profile["files"]
    assert list(layout.absent) == profile.get("absent", [])
    assert list(layout.contains) == [
        (entry["file"], entry["text"]) for entry in profile.get("contains", [])
    ]
