"""Checks of versions in code, against a Python that runs the code with versions around the
bound.
"""

import types

import pytest
from packaging.version import Version
from surface_scan.conditions import NEVER
from surface_scan.demands import demands_of
from surface_scan.gates import read_gates
from surface_scan.packages import Entry
from surface_scan.release_gates import gates_of

HEAD = (
    "import importlib.metadata, maker\nfrom packaging.version import Version, parse\n"
    "from packaging import version\n"
    "def assert_pkg_version(pkg, floor, message):\n"
    "    if Version(maker.__version__) < Version(floor):\n"
    "        raise RuntimeError(message)\n"
    "MIN = Version('2.0')\nmaker_version = parse(maker.__version__)\n"
)
#: Code that stops an import below 2.0, and code that does not.
GATES = {
    "call": "assert_pkg_version('maker', '2.0', 'old')",
    "nothing-there": "maker_version = maker.__version__\nif maker_version != 'N/A':\n    "
    "if parse(maker_version) < MIN:\n        raise ImportError",
    "bounded": "def required_maker_version(min_version):\n"
    "    return maker_version >= version.parse(str(min_version))\n"
    "if not required_maker_version(min_version=2.0):\n    raise ImportError('version')",
    "call-in-function": "def start():\n    assert_pkg_version('maker', '2.0', 'old')\nstart()",
    "if": "if Version(maker.__version__) < Version('2.0'):\n    raise ImportError('old')",
    "if-not": "if not version.parse(maker.__version__) >= version.parse('2.0'):\n    raise ImportError",
    "constant": "if maker_version < MIN:\n    raise ImportError(f'needs {MIN}')",
    "function": "def check():\n    if maker_version < MIN:\n        raise ImportError\ncheck()",
    "never-called": "def check():\n    if maker_version < MIN:\n        raise ImportError",
    "caught": "try:\n    if maker_version < MIN:\n        raise ImportError\nexcept ImportError:\n    pass",
    "else": "if maker_version >= MIN:\n    pass\nelse:\n    raise ImportError('old')",
    "chain": "if maker_version == parse('1.9'):\n    pass\nelif maker_version >= parse('2.0.1'):\n"
    "    pass\nelse:\n    raise ImportError('between')",
    "nested": "if maker_version >= MIN:\n    if maker_version < parse('3.0'):\n"
    "        raise ImportError('between')",
    "release": "maker_release = parse(maker.__version__).release\n"
    "if maker_release[:3] == (2, 0, 1):\n    raise ImportError('this one')",
    "release-below": "if parse(maker.__version__).release < (2, 0):\n    raise ImportError('version')",
    "assert": "assert maker_version >= MIN, 'old'",
    "text": "if maker.__version__ < '2.0':\n    raise ImportError('as a text, 10.0 is old')",
    "first-letter": "major = maker.__version__[0]\nif major == '1':\n    pass\n"
    "elif major == '3':\n    pass\nelse:\n    raise ImportError('version')",
    "first-letter-not": "if maker.__version__[0] != '2':\n    raise ImportError('version')",
    "first-letters": "if maker.__version__[:3] == '2.0':\n    raise ImportError('version')",
    "first-letter-below": "if int(maker.__version__[0]) < 2:\n    raise ImportError('version')",
    "first-number": "if int(maker.__version__.split('.')[0]) > 2:\n    raise ImportError('version')",
    "first-number-is": "if maker.__version__.split('.')[0] == '2':\n    raise ImportError('version')",
    "without-build": "if maker.__version__.split('+')[0] == '2.0':\n    raise ImportError('version')",
    "first-of-release": "if parse(maker.__version__).release[0] == 10:\n    raise ImportError('version')",
    "major": "if parse(maker.__version__).major != 2:\n    raise ImportError('version')",
    "by-name": "name = 'maker'\ndef get_version(pkg):\n    return importlib.import_module(pkg)"
    ".__version__\nits = get_version(name)\nif parse(its) < MIN:\n    raise ImportError('old')",
    "warned": "if maker_version < MIN:\n    print('old')",
    "switch": "import os\nif os.environ.get('CHECK') and maker_version < MIN:\n    raise ImportError",
}
VERSIONS = ("1.9", "2.0", "2.0.1", "3.0", "10.0")


@pytest.mark.parametrize("form", GATES)
def test_what_stops_an_import(workshop, form):
    user = workshop.release("user", {"user/__init__.py": HEAD + GATES[form] + "\n"})
    demands_of(user, (Entry("user", "", True),), lambda name: None)
    gates = [
        gate for gate, _, _ in gates_of(user, lambda name: None) if gate.at_import and gate.known
    ]
    for version in VERSIONS:
        text = f"__version__ = {version!r}\n"
        maker = workshop.release("maker", {"maker/__init__.py": text}, version)
        error = workshop.run(["import user"], f"maker-{version}", "user-1.0")[0]
        said = any(gate.refuses(maker.version) for gate in gates)
        assert said == bool(error), (version, error, gates)


@pytest.mark.parametrize(("value", "effect"), [("maker", "degrades"), ("other", "note")])
def test_a_floor_of_what_is_chosen_by_its_name(workshop, value, effect):
    code = f"def start(self):\n    if self.backend == {value!r}:\n        assert_pkg_version('maker', '2.0', 'old')\n"
    user = workshop.release("user", {"user/__init__.py": HEAD + code})
    demands_of(user, (Entry("user", "", True),), lambda name: None)
    gates = [gate for gate, _, _ in gates_of(user, lambda name: None) if gate.kind == "floor"]
    assert [gate.effect for gate in gates] == [effect]
    assert (gates[0].use == "backend maker") is (value == "maker")
    for backend in ("maker", "other"):
        maker = workshop.release("maker", {"maker/__init__.py": "__version__ = '1.9'\n"}, "1.9")
        run = f"import user, types; user.start(types.SimpleNamespace(backend={backend!r}))"
        error = workshop.run([run], f"maker-{maker.version}", "user-1.0")[0]
        assert bool(error) is (backend == value)


STARTED = {
    "method": (
        "Run.start",
        (
            "class Run:\n    def start(self):\n        self.check()\n"
            "    def check(self):\n        if maker_version < MIN:\n            raise ImportError('old')\n"
        ),
    ),
    "made": (
        "start",
        (
            "class Run:\n    def __init__(self):\n        assert maker_version >= MIN\n"
            "def start():\n    Run()\n"
        ),
    ),
    "left-before": (
        "start",
        (
            "def start():\n    if maker_version > parse('1.0'):\n        return\n"
            "    raise ImportError('version')\n"
        ),
    ),
    "searched-before": (
        "start",
        (
            "def start():\n    if maker_version >= MIN:\n        return\n    for place in 'ab':\n"
            "        if place == 'b':\n            return place\n    raise ImportError('not found')\n"
        ),
    ),
    "not-reached": (
        "start",
        (
            "def other():\n    if maker_version < MIN:\n        raise ImportError\n"
            "def start():\n    pass\n"
        ),
    ),
}


@pytest.mark.parametrize("form", STARTED)
def test_what_a_run_comes_to(workshop, form):
    start, code = STARTED[form]
    workshop.packages = workshop.packages._replace(starts={"user": {f"user:{start}": "runs"}})
    user = workshop.release("user", {"user/__init__.py": HEAD + code})
    demands_of(user, (Entry("user", "", True),), lambda name: None)
    gates = [gate for gate, _, _ in gates_of(user, lambda name: None)]
    assert all(gate.effect != "blocks" and gate.use == "runs" for gate in gates)
    call = start if "." not in start else "Run().start"
    for version in VERSIONS:
        text = f"__version__ = {version!r}\n"
        maker = workshop.release("maker", {"maker/__init__.py": text}, version)
        run = f"import user; user.{call}()"
        error = workshop.run([run], f"maker-{version}", "user-1.0")[0]
        assert any(gate.refuses(maker.version) for gate in gates) == bool(error), (version, gates)


@pytest.mark.parametrize(
    "test",
    [
        "sys.version_info >= (3, 9)",
        "sys.version_info < (3, 9)",
        "sys.version_info[:2] <= (3, 9)",
        "sys.version_info > (3, 9)",
        "sys.version_info[:2] > (3, 9)",
        "sys.version_info <= (3, 9)",
        "sys.version_info[:2] == (3, 9)",
    ],
)
def test_the_interpreter(workshop, test):
    """Held against the test itself, evaluated with the versions of interpreters."""
    source = f"import sys\nif {test}:\n    raise RuntimeError('Python')\n"
    user = workshop.release("user", {"user/__init__.py": source})
    demands_of(user, (Entry("user", "", True),), lambda name: None)
    gate = next(gate for gate, _, _ in gates_of(user, lambda name: None))
    assert gate.package == "python"
    for minor in range(7, 12):
        info = types.SimpleNamespace(version_info=(3, minor, 4, "final", 0))
        raises = eval(test, {"sys": info})
        assert gate.refuses(Version(f"3.{minor}")) == raises, minor


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("X currently supports vLLM versions from 0.19.0 to 0.27.1. You have", ">=0.19.0,<=0.27.1"),
        (
            "X currently supports vLLM versions: 0.10.2, 0.11.0, 0.11.1.",
            "==0.10.2||==0.11.0||==0.11.1",
        ),
        ("X currently only supports vLLM version `0.10.2`. You", "==0.10.2"),
        ("Disabling PyTorch because PyTorch >= 2.4 is required but found 2.1", ">=2.4"),
        (
            "Skipping the kernels due to incompatible torch version. Please upgrade to torch >= 2.11.0",
            ">=2.11.0",
        ),
    ],
)
def test_what_a_text_states(text, gate):
    found = read_gates(f"import warnings\nwarnings.warn(f{text + ' {1}'!r})\n".encode())
    assert [item[1][1] for item in found][:1] == [gate]


def test_a_partner_of_another_version(workshop):
    source = (
        "import partner\nfrom .own import __version__ as own_version\n"
        "partner_version = partner.__version__\n"
        "def check():\n    if partner_version != own_version:\n        raise RuntimeError('differ')\n"
        "check()\n"
    )
    gates = read_gates(source.encode())
    assert [(gate[0], gate[1], gate[3]) for gate in gates] == [("equal", ["partner"], True)]


def test_a_version_has_to_begin_with_the_own():
    """flashinfer takes builds of its cache for any CUDA: 0.6.1+cu129."""
    source = (
        "import os\nimport partner\nfrom .own import __version__ as own_version\n"
        "def check():\n    partner_version = partner.__version__\n"
        "    if not os.getenv('SKIP') and not partner_version.startswith(own_version):\n"
        "        raise RuntimeError('differ')\n"
        "check()\n"
    )
    gates = read_gates(source.encode())
    assert [(gate[0], gate[1], gate[3]) for gate in gates] == [("begins", ["partner"], True)]


def test_a_condition_that_cannot_be_is_none(workshop):
    user = workshop.release("user", {"user/__init__.py": "", "user/a.py": ""})
    assert user.limits_of("user", [["const", False]], lambda name: None) == NEVER


def test_a_table_of_what_fits(workshop):
    """A release takes those beside its own version; nightlies are nobody's release."""
    text = (
        "import maker\nfrom packaging.version import parse\n"
        "user_maker_compatible_versions = [\n"
        "    (parse('1.0'), parse('2.0')), (parse('1.0'), parse('2.1.dev1')),\n"
        "    (parse('1.1'), parse('3.0')),\n]\n"
    )
    for version, fitting in (("1.0", "==2.0"), ("1.1", "==3.0"), ("1.2", None)):
        user = workshop.release("user", {"user/__init__.py": text}, version)
        demands_of(user, (Entry("user", "", True),), lambda name: None)
        gates = [gate for gate, _, _ in gates_of(user, lambda name: None)]
        assert [gate.specifier for gate in gates] == ([fitting] if fitting else [])
        assert all((gate.effect, gate.package) == ("note", "maker") for gate in gates)
