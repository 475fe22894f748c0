"""What archives were asked before: kept by their hash, asked again where what reads them is another
one.
"""

import json
import sqlite3

import pytest
from surface_scan import kept_answers
from surface_scan.kept_answers import KeptAnswers, revision_here
from surface_scan.measure import Measurement, measure
from surface_scan.release import Release
from surface_scan.store import Archive, Sources

ARCHIVE = Archive("maker", "1.0", "maker-1.0-py3-none-any.whl", "aa", "", {})


class Asked:
    """An answer, and how often it was asked for."""

    def __init__(self, answer):
        self.answer, self.count = answer, 0

    def __call__(self):
        self.count += 1
        return self.answer


@pytest.mark.parametrize("answer", [True, False, None, "", "a,b", 'quoted " \t\n é'])
def test_an_answer_is_asked_once_for_each_archive_and_revision(tmp_path, answer):
    asked = Asked(answer)
    for revision, archive, count in [
        ("1", ARCHIVE, 1),
        ("1", ARCHIVE, 1),
        ("1", ARCHIVE._replace(sha256="bb"), 2),
        ("2", ARCHIVE, 3),
    ]:
        kept = KeptAnswers(Sources(str(tmp_path)), revision)
        assert kept.answer(archive, "takes x", asked) == answer
        assert kept.answer(archive, "takes x", asked) == answer
        assert asked.count == count
        kept.flush()


def test_of_what_was_not_read_nothing_is_kept(tmp_path):
    asked = Asked(True)
    kept = KeptAnswers(Sources(str(tmp_path)), "1")
    for _ in range(2):
        kept.answer(ARCHIVE._replace(sha256=""), "takes x", asked)
    kept.flush()
    assert asked.count == 2


def test_two_runs_at_once_keep_the_answers_of_both(tmp_path):
    sources = Sources(str(tmp_path))
    one, other = KeptAnswers(sources, "1"), KeptAnswers(sources, "1")
    one.answer(ARCHIVE, "first", Asked(1))
    other.answer(ARCHIVE, "second", Asked(2))
    one.flush()
    other.flush()
    asked = Asked(3)
    later = KeptAnswers(sources, "1")
    assert [later.answer(ARCHIVE, word, asked) for word in ("first", "second")] == [1, 2]
    assert not asked.count


def test_the_revision_is_that_of_the_code_and_the_list(tmp_path, monkeypatch):
    for name in ("module.py", "packages.toml", "notes.txt"):
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(kept_answers, "__file__", str(tmp_path / "kept_answers.py"))
    revisions = []
    for name in ("", "notes.txt", "module.py", "packages.toml"):
        if name:
            (tmp_path / name).write_text("two")
        revision_here.cache_clear()
        revisions.append(revision_here())
    revision_here.cache_clear()
    assert revisions[0] == revisions[1]
    assert len(set(revisions)) == 3


MAKER = {
    "maker/__init__.py": "def build(size): ...\nclass Base:\n    def run(self):\n"
    "        return self.step(1)\n    def step(self, x): ...\n"
}
OTHER = {
    "maker/__init__.py": "from .parts import *\ndef build(size, colour): ...\nclass Base:\n"
    "    def run(self):\n        return self.step(1, flag=2)\n    def step(self, x, flag): ...\n",
    "maker/parts.py": "new = 1\n",
}
USER = {
    "user/__init__.py": "import maker\nfrom maker import new\nmaker.build(1, colour=2)\n"
    "class Own(maker.Base):\n    def step(self, x): ...\n"
}


def test_a_second_run_says_the_same_and_asks_only_the_new_release(workshop, monkeypatch):
    """Held against a run that keeps nothing, with releases that differ in names and arguments."""
    asked = []
    defines = Release.defines

    def counted(self, module, name):
        asked.append((self.archive.package, self.archive.version))
        return defines(self, module, name)

    monkeypatch.setattr(Release, "defines", counted)
    for version, files in (("1.0", MAKER), ("2.0", OTHER)):
        workshop.release("maker", files, version)
    workshop.release("user", USER)
    where = workshop.folder / "surfaces" / "user.json"

    def run(sources):
        asked.clear()
        measure(workshop.packages, ["user"], sources, workshop.folder, str)
        return json.loads(where.read_text("utf-8"))["statements"]

    first = run(workshop.sources)
    assert len(first) > 1
    assert set(asked) == {("maker", "1.0"), ("maker", "2.0")}
    assert run(workshop.sources) == first
    assert not asked
    workshop.release("maker", MAKER, "3.0")
    third = run(workshop.sources)
    assert set(asked) == {("maker", "3.0")}
    with sqlite3.connect(workshop.folder / "cache" / "surfaces.sqlite") as database:
        database.execute("DELETE FROM reading")
    assert run(Sources(str(workshop.folder / "cache"))) == third != first
    assert set(asked) > {("maker", "3.0")}
    assert Measurement(workshop.packages, workshop.sources, workshop.folder).is_read("user")
