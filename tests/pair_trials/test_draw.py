"""What is drawn is what the measured statements speak of, and what lies beside it."""

import itertools
import json
import random
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.model.versions import parse_version
from scripts.pair_trials.draw import (
    TORCHES,
    Releases,
    Statements,
    Trial,
    built_for,
    draw,
    needs_torch,
    span_set,
    torch_in,
    torch_of,
)

MATRICES = Path(__file__).resolve().parents[2] / "matrices"


@pytest.fixture(scope="module")
def statements():
    return Statements(MATRICES)


def drawn(statements, kind, count=40, seed="7"):
    generator = random.Random(seed)
    return list(itertools.islice(draw(generator, load_matrix(), statements, [kind]), count))


def pair_of(trial):
    (consumer, own), (provider, other) = (
        word.split("==") for word in trial.requirements if "==" in word
    )
    return consumer, parse_version(own), provider, parse_version(other)


@pytest.mark.parametrize("kind", ["blocks", "degrades"])
def test_pairs_lie_in_the_statement(statements, kind):
    for trial in drawn(statements, kind):
        _, own, provider, other = pair_of(trial)
        entry = statements.of_row(trial.row)
        assert entry["effect"] == kind
        assert entry["provider"] == provider
        assert own in span_set(entry["in"])
        assert other in span_set(entry["lacking"])
        assert trial.imports == (entry["entry"],)


def test_neighbours_lie_in_no_statement(statements):
    for trial in drawn(statements, "allowed"):
        consumer, own, provider, other = pair_of(trial)
        assert not statements.speaks_of(consumer, provider, own, other)


def test_the_same_seed_draws_the_same(statements):
    assert drawn(statements, "stack", 20) == drawn(statements, "stack", 20)
    assert drawn(statements, "stack", 20) != drawn(statements, "stack", 20, "8")


def test_torch_is_of_the_day_or_the_oldest_that_is_tried():
    released = {
        str(version): release.released
        for version, release in load_matrix().package("torch").releases()
    }
    for day, release in TORCHES:
        assert released[release] == day
        assert torch_of(day) == release
    assert torch_of("2024-01-01") == TORCHES[0][1]


def test_releases_of_packages_without_a_file_are_those_that_were_read():
    read = {"made-up": [("0.3.3", "2024-01-06"), ("0.2.0", "2022-03-01"), ("1.0rc1", "2025-01-01")]}
    releases = Releases(load_matrix(), read)
    assert [str(version) for version in releases.of("made-up")] == ["0.3.3"]
    assert releases.floors("2024-01-05") == []
    assert releases.floors("2024-01-06") == ["made-up>=0.3.3"]


def test_what_a_statement_needs_besides_is_installed(tmp_path):
    statement = {
        "id": "imports-x-with-torch",
        "provider": "safetensors",
        "effect": "blocks",
        "in": [["0.7.2", "0.7.2"]],
        "lacking": [["0.3.0", "0.3.3"]],
        "entry": "trl",
        "with": [["torch", ""], ["peft", ""]],
    }
    document = {"name": "trl", "measured": ["0.7.2"], "statements": [statement]}
    (tmp_path / "surfaces").mkdir()
    (tmp_path / "surfaces" / "trl.json").write_text(json.dumps(document))
    for trial in drawn(Statements(tmp_path), "blocks", 3):
        assert trial.requirements[2:] == ("torch", "peft")
        assert trial.torch in {release for _, release in TORCHES}


def test_what_is_built_for_a_torch_is_known_by_what_it_asks_for():
    lines = built_for(load_matrix(), "2.6.0")
    assert {"triton==3.2.0", "torchvision==0.21.0", "torchaudio==2.6.0"} <= set(lines)


def test_days_of_pairs_are_ends_of_quarters(statements):
    for trial in drawn(statements, "blocks"):
        assert trial.before[5:] in ("03-31", "06-30", "09-30", "12-31")


def test_torch_is_that_of_the_pair_where_it_names_one():
    trial = Trial("blocks", ("torchao==0.18.0", "torch==2.6.0"), "2026-09-30", "", ("x",), "")
    assert torch_in(trial) == "2.6.0"
    assert torch_in(trial._replace(requirements=("x==1",), torch="2.15.0")) == "2.15.0"


@pytest.mark.parametrize(("name", "expected"), [("trl", True), ("wandb", False), ("torch", True)])
def test_what_needs_torch(name, expected):
    trial = Trial("blocks", (f"{name}==1.0",), "2024-04-04", "", (name,), "")
    assert needs_torch(load_matrix(), trial) is expected


def test_a_resolver_is_asked_where_newest_releases_do_not_tell():
    asked = []

    def resolves(trial):
        asked.append(trial.requirements)
        return trial.requirements == ("wandb==0.13.0",)

    first = Trial("blocks", ("wandb==0.13.0",), "2024-04-04", "", ("x",), "")
    other = first._replace(requirements=("no-such-package==1.0",))
    told = first._replace(requirements=("trl==1.0",))
    matrix = load_matrix()
    assert [needs_torch(matrix, trial, resolves) for trial in (first, other, told)] == [
        True,
        False,
        True,
    ]
    assert asked == [first.requirements, other.requirements]
