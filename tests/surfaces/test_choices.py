"""Values of launch settings that releases of an engine take."""

from surface_scan.choices import choices_document
from surface_scan.measure import Measurement

METHOD = """
class {name}(Config):
    @classmethod
    def get_name(cls) -> str:
        return "{word}"

    @classmethod
    def get_min_capability(cls) -> int:
        return {least}
"""
LOADER = 'raise ValueError(f"{word} is not supported for the current GPU.")\n'


def _words(workshop, *releases):
    for version, files in releases:
        workshop.release("maker", files, version)
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    names = {
        "versions": [version for version, _ in releases],
        "registries": {"METHODS": {"1-2": "old"}},
    }
    listed = {"quantization": {"maker": {"tables": ["METHODS"], "classes": "maker/quant/"}}}
    return choices_document(listed, measurement, {"maker": names})["quantization"]["maker"]


def test_words_of_registries_and_classes(workshop):
    new = METHOD.format(name="New", word="new", least=89)
    words = _words(
        workshop,
        ("1.0", {"maker/__init__.py": ""}),  # no registry: nothing is known
        ("1.1", {"maker/quant/a.py": "get_name = 1\n"}),
        ("1.2", {"maker/quant/a.py": new, "maker/config.py": ""}),
        ("1.3", {"maker/quant/a.py": new, "maker/config.py": LOADER}),
    )
    assert {
        word: (entry["in"], entry["before"], entry["after"]) for word, entry in words.items()
    } == {
        "old": ([["1.1", "1.2"]], [], [["1.3", "1.3"]]),
        "new": ([["1.2", "1.3"]], [["1.1", "1.1"]], []),
    }
    # only where the loader holds it against the GPU
    assert words["new"]["least"] == {"8.9": [["1.3", "1.3"]]}
    assert (words["new"]["path"], words["new"]["line"]) == ("maker/quant/a.py", 5)


def test_what_a_function_works_out_is_no_capability(workshop):
    code = METHOD.format(name="New", word="new", least="80 if FAST else 90")
    words = _words(
        workshop,
        ("1.0", {"maker/quant/a.py": code, "maker/config.py": LOADER}),
        ("1.1", {}),
        ("1.2", {}),
    )
    assert "least" not in words["new"]
