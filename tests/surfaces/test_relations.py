"""What metadata alone say: exclusions that a later release adds, and extras. The oracles are
``packaging`` on the committed metadata, and an installer that is asked about both releases.
"""

import json
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from surface_scan.relations import relation_statements

from envdoctor.matrix.measured_rows import EXCLUDED_LATER, NOT_IN_EXTRA

MATRICES = Path(__file__).resolve().parent.parent.parent / "matrices"
DAYS = {"a": "2024-01-01", "b": "2024-01-11", "c": "2024-01-21", "d": "2024-02-21"}


def _committed():
    for path in sorted((MATRICES / "surfaces").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        for statement in document["statements"]:
            if statement.get("verb") in (EXCLUDED_LATER, NOT_IN_EXTRA):
                yield document["name"], statement


def _metadata(name):
    document = json.loads((MATRICES / "packages" / f"{name}.json").read_text("utf-8"))
    return {entry["version"]: entry for entry in document["releases"]}


def _admits(entry, provider, version, extra=""):
    """What packaging says of a release, whoever asks, or who asks for an extra."""
    asked = [Requirement(line) for line in entry["requires"]]
    return all(
        each.specifier.contains(version, prereleases=True)
        for each in asked
        if canonicalize_name(each.name) == provider
        and (each.marker is None or (extra and each.marker.evaluate({"extra": extra})))
    )


def test_what_is_said_stands_in_the_metadata():
    said = {EXCLUDED_LATER: 0, NOT_IN_EXTRA: 0}
    for consumer, statement in _committed():
        provider = statement["provider"]
        releases, others = _metadata(consumer), _metadata(provider)
        said[statement["verb"]] += 1
        for first, last in statement["lacking"]:
            for own in {end for span in statement["in"] for end in span}:
                for other in {first, last}:
                    assert _admits(releases[own], provider, other), (consumer, statement["id"])
                    if statement["verb"] == EXCLUDED_LATER:
                        later = releases[statement["archive"].split()[1]]
                        assert not _admits(later, provider, other), statement
                        assert Version(own) < Version(later["version"])
                        # It was known by then: nobody excludes what is not there.
                        assert others[other]["released"] <= later["released"]
                    else:
                        extras = {provider, provider.replace("-", "_")}
                        assert not all(
                            _admits(releases[own], provider, other, extra) for extra in extras
                        ), statement
    assert min(said.values()) > 50


def _folder(tmp_path, user, maker):
    """A matrix of two packages: {version: (day, requirement lines)}."""
    (tmp_path / "packages").mkdir()
    for name, releases in (("user", user), ("maker", maker)):
        entries = [
            {"version": version, "released": DAYS[day], "requires": lines}
            for version, (day, lines) in releases.items()
        ]
        document = {"name": name, "releases": entries}
        (tmp_path / "packages" / f"{name}.json").write_text(json.dumps(document), "utf-8")
    return relation_statements(tmp_path, "user", [])


MAKER = {"1.0": ("a", []), "2.0": ("b", [])}


@pytest.mark.parametrize(
    ("later", "last", "effect"),
    [
        (["maker<2"], ["maker<2"], "degrades"),
        (["maker!=2.0"], ["maker!=2.0"], "degrades"),
        (["maker<2"], ["maker>=1"], "note"),  # taken back
        (["maker>=1.5"], ["maker>=1.5"], ""),  # a bound that was raised
        (["maker==1.0"], ["maker==1.0"], ""),  # a pin
        ([], [], ""),
        (['maker<2; python_version < "3.9"'], [], ""),
    ],
)
def test_what_the_next_release_excludes(tmp_path, later, last, effect):
    user = {"1.0": ("a", ["maker"]), "1.1": ("c", later), "1.2": ("d", last)}
    statements = _folder(tmp_path, user, MAKER)
    assert [statement["effect"] for statement in statements] == [effect] * bool(effect)
    for statement in statements:
        assert (statement["in"], statement["lacking"]) == ([["1.0", "1.0"]], [["2.0", "2.0"]])
        assert Requirement(statement["pin"]).specifier.contains("1.0")


def test_what_is_said_otherwise_is_not_said_again(tmp_path):
    user = {"1.0": ("a", ["maker"]), "1.1": ("c", ["maker<2"])}
    (statement,) = _folder(tmp_path, user, MAKER)
    import_of_it = {**statement, "verb": "", "id": "imports-maker.gone"}
    assert relation_statements(tmp_path, "user", [import_of_it]) == []
    elsewhere = {**import_of_it, "lacking": [["1.0", "1.0"]]}
    assert relation_statements(tmp_path, "user", [elsewhere]) == [statement]


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ('maker<2; extra == "maker"', [["2.0", "2.0"]]),
        ('maker<2; extra == "Maker"', [["2.0", "2.0"]]),
        ('maker<2; extra == "dev"', None),  # of who works on the package itself
        ('maker; extra == "maker"', None),
        ('maker>=1; extra == "maker"', None),
    ],
)
def test_an_extra_that_is_named_after_a_package(tmp_path, line, lacking):
    statements = _folder(tmp_path, {"1.0": ("c", [line])}, MAKER)
    assert [statement["lacking"] for statement in statements] == [lacking] * (lacking is not None)
    assert all(statement["effect"] == "note" for statement in statements)


def test_an_extra_that_takes_nothing_of_its_year_is_left_from_older_days(tmp_path, monkeypatch):
    monkeypatch.setitem(DAYS, "d", "2025-06-01")
    assert _folder(tmp_path, {"1.0": ("d", ['maker<2; extra == "maker"'])}, MAKER) == []
