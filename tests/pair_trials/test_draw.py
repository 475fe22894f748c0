"""What is drawn is what the measured statements speak of, and what lies beside it."""

import itertools
import random
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.model.versions import parse_version
from scripts.pair_trials.draw import (
    TORCHES,
    Statements,
    Trial,
    draw,
    needs_torch,
    span_set,
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


@pytest.mark.parametrize(("name", "expected"), [("trl", True), ("wandb", False), ("torch", True)])
def test_what_needs_torch(name, expected):
    trial = Trial("blocks", (f"{name}==1.0",), "2024-04-04", "", (name,), "")
    assert needs_torch(load_matrix(), trial) is expected
