"""Values of launch settings that releases of an engine take."""

import enum
import os

import pytest
from surface_scan.choices import choices_document, variables_document
from surface_scan.gpu_answers import CAPABILITIES
from surface_scan.measure import Measurement
from surface_scan.methods import read_backends, read_members, read_refusals

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


#: What backends return of a capability, and whether it can be read.
SERVING = {
    "capability >= DeviceCapability(8, 0)": True,
    "capability >= DeviceCapability(7, 5) and capability <= DeviceCapability(12, 1)": True,
    "capability.major in (9, 10)": True,
    "capability.major == 10 or capability == DeviceCapability(9, 0)": True,
    "DeviceCapability(8, 0) <= capability < DeviceCapability(12, 0)": True,
    "True": True,
    "FAST or capability.major > 7": False,
    "is_supported(capability)": False,
}


@pytest.mark.parametrize("test", SERVING)
def test_what_a_backend_serves(test):
    """Held against the expression itself, run with each capability."""

    class DeviceCapability(tuple):
        def __new__(cls, major, minor):
            return super().__new__(cls, (major, minor))

        major = property(lambda self: self[0])
        minor = property(lambda self: self[1])

    code = (
        "class B:\n    def get_name():\n        return 'FAST'\n"
        f"    def supports_compute_capability(cls, capability):\n        return {test}\n"
    )
    ((word, refused, line),) = read_backends(code.encode())
    assert word == "B"
    if not SERVING[test]:
        assert refused == frozenset()
    else:
        assert line == 5
        made = {text: DeviceCapability(*map(int, text.split("."))) for text in CAPABILITIES}
        names = {"DeviceCapability": DeviceCapability}
        assert refused == {
            text
            for text, capability in made.items()
            if not eval(test, names | {"capability": capability})
        }


def test_the_class_that_a_member_names_says_which_gpus_it_serves(workshop):
    code = (
        "class {name}:\n    def supports_compute_capability(cls, capability):\n"
        "        return {test}\n"
    )
    backs = code.format(name="New", test="capability.major >= 9")
    backs += code.format(name="Odd", test="capability.major == 8")
    kinds = "class Kinds(Enum):\n    FAST = 'maker.backs.New'\n    OTHER = 1\n"
    raised = "raise ValueError('is not valid for this')\n"
    files = {"maker/kinds.py": kinds, "maker/platforms/cuda.py": raised, "maker/backs.py": backs}
    workshop.release("maker", files, "1.0")
    workshop.release("maker", {**files, "maker/platforms/cuda.py": ""}, "1.1")
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    listed = {"enums": ["Kinds"], "enum_folders": ["maker/"]}
    names = {"versions": ["1.0", "1.1"], "registries": {}}
    document = choices_document({"a": {"maker": listed}}, measurement, {"maker": names})
    words = document["a"]["maker"]
    old = " ".join(text for text in CAPABILITIES if int(text.split(".")[0]) < 9)
    # only where the engine holds it against the GPU
    assert words["FAST"]["refused"] == {old: [["1.0", "1.0"]]}
    assert "refused" not in words["OTHER"]
    assert words["OTHER"]["in"] == [["1.0", "1.1"]]


def test_members_of_an_enumeration():
    code = "import enum\nclass Kind(enum.Enum):\n    A = enum.auto()\n    B_1 = 'b'\n\n    def text(self):\n        C = 1\n"
    made = {}
    exec(code, made)
    members = {member.name: member.value for member in made["Kind"]}
    assert read_members(code.encode(), "Kind") == {**members, "A": ""}
    assert issubclass(made["Kind"], enum.Enum)
    assert read_members(code.encode(), "Other") == {}


def test_variables_that_a_release_names(workshop):
    """What a release that does not name it does with the variable: nothing."""
    releases = {
        "1.0": "",
        "1.1": "import os\nx = os.environ['MAKER_NEW']\ny = 'MAKER_ALWAYS'\n",
        "1.2": "import os\nx = os.environ['MAKER_NEW']\n",
        "1.3": "# MAKER_NEWER is another\n",
    }
    for version, text in releases.items():
        workshop.release("maker", {"maker/__init__.py": f"y = 'MAKER_EVER'\n{text}"}, version)
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    document = variables_document({"maker": {"prefixes": ["MAKER_"]}}, measurement)
    assert document == {
        "maker": {
            "1.1 1.1": "MAKER_ALWAYS",
            "1.1 1.2": "MAKER_NEW",
            "1.3 1.3": "MAKER_NEWER",
        }
    }
    assert "MAKER_NEW" not in os.environ
    errors = [workshop.run(["import maker"], f"maker-{version}")[0] for version in releases]
    assert errors == ["", "KeyError", "KeyError", ""]


CHECKS = {
    "chain": """
def choose(backend_str, mla):
    if backend_str == "triton":
        return 1
    elif backend_str == "fa3":
        assert (
            torch.cuda.get_device_capability()[0] == 8 and not mla
        ) or torch.cuda.get_device_capability()[0] == 9, "needs 80 to 90. Please"
        return 2
""",
    "data type": """
def choose(word, mla):
    dtype = getattr(torch, word, word)
    if dtype == torch.bfloat16:
        held = torch.cuda.get_device_capability()
        if held[0] < 8:
            name = torch.cuda.get_device_name()
            raise ValueError("Only at least 8.0. Your " f"{name} has less.")
""",
    "platform": """
def choose(word, mla):
    if word == "bfloat16" or mla:
        pass
    if getattr(torch, word, word) == torch.bfloat16:
        if not platform.has_device_capability(80):
            raise ValueError("only 8.0")
""",
    "in two numbers": """
def choose(word, mla):
    if word == "fa3":
        if not platform.has_device_capability((9, 0)):
            raise ValueError("only 9.0")
""",
}


class _Machine:
    """Stands for torch, and for an engine's platform, on a GPU."""

    bfloat16 = object()

    def __init__(self, capability):
        self.cuda = self
        self._capability = tuple(map(int, capability.split(".")))

    def get_device_capability(self):
        return self._capability

    def get_device_name(self):
        return "GPU"

    def has_device_capability(self, least):
        return self._capability >= (least if isinstance(least, tuple) else divmod(least, 10))


@pytest.mark.parametrize("source", CHECKS.values(), ids=list(CHECKS))
@pytest.mark.parametrize("word", ["fa3", "triton", "bfloat16", "float16"])
def test_what_a_check_refuses(source, word):
    """The code itself is run on a machine of each capability, with the other choice either way."""
    refusals = [one for one in read_refusals(source.encode()) if one.word == word]
    refused = frozenset().union(*(one.refused for one in refusals))
    for capability in CAPABILITIES:
        raised = []
        for mla in (False, True):
            machine = _Machine(capability)
            names = {"torch": machine, "platform": machine}
            exec(source, names)
            try:
                names["choose"](word, mla)
            except (ValueError, AssertionError) as error:
                raised.append(str(error))
        assert (capability in refused) is (len(raised) == 2)
        if capability in refused:
            assert all(text.startswith(refusals[0].message) for text in raised)


def test_what_is_registered_under_a_word_refuses_for_it():
    source = """
@register_attention_backend("fa3")
def create(runner):
    import torch
    assert torch.cuda.get_device_capability()[0] == 9, f"needs {9}"
"""
    (refusal,) = read_refusals(source.encode())
    assert (refusal.word, refusal.of_torch) == ("fa3", False)
    assert refusal.refused == frozenset(CAPABILITIES) - {"9.0"}
    assert read_refusals(source.replace("== 9", "== runner.major").encode()) == []
