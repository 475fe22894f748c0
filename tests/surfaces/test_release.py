"""What the scanner says a release defines and imports, against a Python that really imports it."""

import pytest
from surface_scan.demands import demands_of
from surface_scan.packages import Entry

IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")

#: Forms in which a module may offer names: files, and the statements that are tried.
EXPORTS = {
    "assignments": (
        {
            "maker/__init__.py": "a = 1\nb, (c, *d) = 1, (2, 3)\ne: int = 4\nf: int\ng += 1 if 0 else 1\n".replace(
                "g += 1 if 0 else 1\n", "g = [0]\ng[0] += 1\n"
            )
        },
        ["a", "b", "c", "d", "e", "g", "nothing"],
    ),
    "definitions": (
        {
            "maker/__init__.py": "def f(): pass\nclass C:\n    inner = 1\nasync def g(): pass\n"
            "import os.path as p, json.decoder\nfrom re import compile as k\n"
        },
        ["f", "C", "g", "p", "json", "k", "inner", "decoder", "compile", "nothing"],
    ),
    "blocks": (
        {
            "maker/__init__.py": "import sys\nfor i in (1,):\n    j = i\nelse:\n    k = 1\n"
            "with open(__file__) as h:\n    w = 1\nwhile True:\n    x = 1\n    break\n"
            "if sys.version_info > (3,):\n    new = 1\nelse:\n    old = 1\n"
            "try:\n    t = 1\nexcept ImportError as error:\n    q = 1\nfinally:\n    z = 1\n"
            "if (y := 3): pass\ndef late():\n    global G\n    G = 1\nlate()\n"
        },
        ["i", "j", "k", "h", "w", "x", "new", "t", "z", "y", "G", "nothing"],
    ),
    "stars": (
        {
            "maker/__init__.py": "from .listed import *\nfrom .open import *\n",
            "maker/listed.py": "__all__ = ['one', '_two']\none = _two = three = 1\n__all__ += ['four']\n"
            "four = 4\n",
            "maker/open.py": "five = _six = 1\nfrom .deep import *\n",
            "maker/deep.py": "seven = 1\n",
        },
        ["one", "_two", "three", "four", "five", "_six", "seven", "nothing"],
    ),
    "star-circle": (
        {
            "maker/__init__.py": "own = 1\nfrom .a import *\n",
            "maker/a.py": "x = 1\nfrom .b import *\n",
            "maker/b.py": "y = 1\nfrom .a import *\n",
        },
        ["own", "x", "y", "nothing"],
    ),
    "submodules": (
        {
            "maker/__init__.py": "",
            "maker/sub.py": "",
            "maker/package/__init__.py": "",
            "maker/package/deep.py": "z = 1",
            "maker/space/plain.py": "q = 1",
        },
        ["sub", "package", "space", "absent"],
    ),
    "getattr-table": (
        {
            "maker/__init__.py": "_MAP = {'Lazy': 'sub'}\ndef __getattr__(name):\n"
            "    if name in _MAP:\n        import importlib\n"
            "        return getattr(importlib.import_module('.sub', __name__), name)\n"
            "    raise AttributeError(name)\n",
            "maker/sub.py": "Lazy = 1\n",
        },
        ["Lazy", "Eager"],
    ),
    "getattr-open": (
        {"maker/__init__.py": "def __getattr__(name):\n    return len(name)\n"},
        ["anything", "at_all"],
    ),
    "globals": (
        {
            "maker/__init__.py": "globals()['made'] = 1\nglobals().update({x: 1 for x in ('p', 'q')})\n"
        },
        ["made", "p", "q"],
    ),
    "sets-on-itself": (
        {
            "maker/__init__.py": "import sys\nmodule = sys.modules[__name__]\n"
            "for name in ('made',):\n    setattr(module, name, 1)\n"
        },
        ["made"],
    ),
    "globals-kept": (
        {
            "maker/__init__.py": "def fill(names):\n    names['made'] = 1\n"
            "_globals = globals()\nfill(_globals)\n"
        },
        ["made"],
    ),
    "import-structure": (
        {
            "maker/__init__.py": "import sys\nfrom types import ModuleType\n"
            "_import_structure = {'sub': ['Lazy']}\n_import_structure['other'] = ['More']\n"
            "_import_structure['sub'].extend(['Again'])\n"
            "class _LazyModule(ModuleType):\n"
            "    def __init__(self, name, path, table):\n"
            "        super().__init__(name)\n        self.__path__ = path\n"
            "        self.table = {n: m for m, names in table.items() for n in names}\n"
            "    def __getattr__(self, name):\n"
            "        import importlib\n"
            "        if name not in self.table: raise AttributeError(name)\n"
            "        return getattr(importlib.import_module(f'maker.{self.table[name]}'), name)\n"
            "sys.modules[__name__] = _LazyModule(__name__, __path__, _import_structure)\n",
            "maker/sub.py": "Lazy = Again = 1\n",
            "maker/other.py": "More = 1\n",
        },
        ["Lazy", "More", "Again", "Gone"],
    ),
    "replaces-itself": (
        {
            "maker/__init__.py": "import sys, types\nm = types.ModuleType('maker')\nm.odd = 1\n"
            "sys.modules[__name__] = m\n"
        },
        ["odd", "even"],
    ),
    "exec": ({"maker/__init__.py": "exec('hidden = 1')\n"}, ["hidden", "nothing"]),
    "typing-only": (
        {
            "maker/__init__.py": "import typing\nfrom typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from .sub import Typed, Both\n    import json.decoder\n"
            "    class C: pass\n    def f(): pass\n    a = 1\n"
            "else:\n    there = 1\n"
            "if typing.TYPE_CHECKING and there:\n    b = 1\n"
            "if TYPE_CHECKING or there:\n    Both = c = 1\n"
            "if not TYPE_CHECKING:\n    d = 1\n",
            "maker/sub.py": "Typed = Both = 1\n",
        },
        ["Typed", "Both", "json", "C", "f", "a", "b", "c", "d", "there", "TYPE_CHECKING"],
    ),
    "typing-and-table": (
        {
            "maker/__init__.py": "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from .sub import Lazy, Hidden, Eager\n"
            "_MAP = {'Lazy': 'sub'}\n_PREFIX = 'Hid'\ndef __getattr__(name):\n"
            "    if name in _MAP or name.startswith(_PREFIX):\n"
            "        from . import sub\n        return getattr(sub, name)\n"
            "    raise AttributeError(name)\n",
            "maker/sub.py": "Lazy = Hidden = Eager = 1\n",
        },
        ["Lazy", "Hidden", "Eager", "nothing"],
    ),
    "foreign-star": ({"maker/__init__.py": "from os.path import *\n"}, ["join", "nothing"]),
}


@pytest.mark.parametrize("form", EXPORTS)
def test_exports(workshop, form):
    files, names = EXPORTS[form]
    release = workshop.release("maker", files)
    errors = workshop.run([f"from maker import {name}" for name in names], "maker-1.0")
    for name, error in zip(names, errors):
        said = release.defines("maker", name)
        if said is False:
            assert error in IMPORT_ERRORS, f"{name} was said to be missing"
        elif said is True:
            assert not error, f"{name} was said to be there: {error}"


def test_what_can_be_read_is_said():
    """The forms of which nothing may be said are these and no others."""
    readable = set(EXPORTS) - {
        "getattr-open",
        "globals",
        "globals-kept",
        "sets-on-itself",
        "replaces-itself",
        "exec",
        "foreign-star",
        "typing-and-table",
    }
    assert len(readable) > 6


@pytest.mark.parametrize(
    "form",
    sorted(
        set(EXPORTS)
        - {"getattr-open", "globals", "globals-kept", "replaces-itself", "sets-on-itself", "exec"}
        - {"foreign-star", "typing-and-table"}
    ),
)
def test_missing_names_are_found(workshop, form):
    files, names = EXPORTS[form]
    release = workshop.release("maker", files)
    errors = workshop.run([f"from maker import {name}" for name in names], "maker-1.0")
    for name, error in zip(names, errors):
        if error and name != "old":
            assert release.defines("maker", name) is False, name


def test_modules(workshop):
    release = workshop.release(
        "maker",
        {
            "maker/__init__.py": "import sys\nsys.modules['maker.alias'] = sys\n",
            "maker/a/b.py": "",
            "maker/native.cpython-312-x86_64-linux-gnu.so": "",
        },
    )
    assert release.has_module("maker.a.b") is True
    assert release.has_module("maker.native") is True
    assert release.defines("maker.native", "x") is None
    assert release.has_module("maker.a.c") is False
    assert release.has_module("maker.alias") is None  # its text stands in the package
    assert release.has_module("elsewhere") is None


@pytest.mark.parametrize(
    ("source", "there"),
    [
        ("__all__ = ['gone']\n", False),
        ("__all__ = [\n    'tool',\n    'gone',\n]\nfrom . import tool\n", False),
        ("__all__ = ['gone']\nimport sys\nsys.modules[__name__ + '.gone'] = sys\n", None),
    ],
)
def test_a_list_of_names_makes_no_module(workshop, source, there):
    release = workshop.release("maker", {"maker/__init__.py": source, "maker/tool.py": ""})
    assert release.has_module("maker.gone") is there
    assert release.has_module("maker.gone.part") is there
    assert release.defines("maker.gone", "name") is there


MAKER = {"maker/__init__.py": "there = 1\n__version__ = '2.5'\n", "maker/sub.py": "x = 1\n"}

#: Ways to import: the source, and whether the scanner has to say what happens (or may be silent).
IMPORTS = {
    "plain": ("from maker import gone", True),
    "present": ("from maker import there", True),
    "module": ("import maker.gone", True),
    "module-there": ("import maker.sub as s", True),
    "two": ("from maker import there, gone", True),
    "guarded": ("try:\n    from maker import gone\nexcept ImportError:\n    gone = None", True),
    "guarded-by-module-error": (
        "try:\n    from maker import gone\nexcept ModuleNotFoundError:\n    gone = None",
        False,
    ),
    "guarded-bare": ("try:\n    from maker import gone\nexcept:\n    pass", True),
    "guarded-wide": (
        "try:\n    from maker import gone\nexcept (OSError, Exception):\n    pass",
        True,
    ),
    "other-error": ("try:\n    from maker import gone\nexcept KeyError:\n    pass", True),
    "raised-again": (
        "try:\n    from maker import gone\nexcept ImportError as e:\n    raise ImportError('x') from e",
        True,
    ),
    "second-try": (
        "try:\n    from maker import gone\nexcept ImportError:\n    from maker import there",
        True,
    ),
    "second-try-fails": (
        "try:\n    from maker import gone\nexcept ImportError:\n    from maker import also_gone",
        True,
    ),
    "first-try-works": (
        "try:\n    from maker import there\nexcept ImportError:\n    from maker import gone",
        True,
    ),
    "suppressed": (
        "import contextlib\nwith contextlib.suppress(ImportError):\n    from maker import gone",
        True,
    ),
    "called": ("import maker\ndef f():\n    maker.gone\nf()", True),
    "called-in-assignment": ("import maker\ndef f():\n    return maker.gone\nx = f()", True),
    "called-imports": ("def f():\n    from maker import gone\nf()", True),
    "called-by-decorator": (
        "import maker\ndef f(cls):\n    maker.gone(cls)\n    return cls\n@f\nclass C: pass",
        True,
    ),
    "called-by-decorator-with-argument": (
        "import maker\ndef f(x):\n    maker.gone\n    return id\n@f(1)\ndef g(): pass",
        True,
    ),
    "called-class": ("import maker\nclass K:\n    def __init__(self): maker.gone\nK()", True),
    "called-of-another-module": ("from .acts import reads\nreads()", True),
    "called-of-another-module-there": ("from .acts import reads_there\nreads_there()", True),
    "called-through-another-module": ("from .again import reads\nreads()", True),
    "called-deeper": ("from .acts import deeper\ndeeper()", False),
    "called-guarded": (
        "import maker\ndef f():\n    maker.gone\ntry:\n    f()\nexcept AttributeError:\n    pass",
        True,
    ),
    "called-guards": (
        (
            "import maker\ndef f():\n    try:\n        maker.gone\n    except AttributeError:\n"
            "        pass\nf()"
        ),
        True,
    ),
    "called-leaves": (
        "import maker\ndef f():\n    if maker.there:\n        return\n    maker.gone\nf()",
        True,
    ),
    "called-leaves-in-loop": (
        "import maker\ndef f():\n    for x in (1,):\n        return\n    maker.gone\nf()",
        True,
    ),
    "called-leaves-at-once": ("import maker\ndef f():\n    return\n    maker.gone\nf()", True),
    "called-in-loop-of-none": (
        "import maker\ndef f():\n    for x in ():\n        maker.gone\nf()",
        True,
    ),
    "called-with-argument": (
        "import maker\ndef f(x):\n    if x:\n        maker.gone\nf(False)",
        True,
    ),
    "called-local-name": ("import maker\ndef f(maker=1):\n    return maker.real\nf()", True),
    "called-local-variable": (
        "import maker\ndef f():\n    maker = 1\n    return maker.real\nf()",
        True,
    ),
    "called-generator": ("import maker\ndef f():\n    maker.gone\n    yield\nf()", True),
    "called-coroutine": ("import maker\nasync def f():\n    maker.gone\nf().close()", True),
    "called-exchanged": (
        "import maker\ndef other(f): return id\n@other\ndef f(x):\n    maker.gone\nf(1)",
        True,
    ),
    "called-newer": (
        (
            "import maker\nfrom packaging.version import Version\n"
            "NEW = Version(maker.__version__) >= Version('3')\n"
            "def f():\n    if not NEW:\n        return\n    maker.gone\nf()"
        ),
        True,
    ),
    "not-called": ("import maker\ndef f():\n    maker.gone\n", True),
    "called-under-typing": (
        (
            "import maker\nfrom typing import TYPE_CHECKING\ndef f():\n    maker.gone\n"
            "if TYPE_CHECKING:\n    f()"
        ),
        True,
    ),
    "in-function": ("def f():\n    from maker import gone", True),
    "in-class": ("class C:\n    from maker import gone", True),
    "typing": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from maker import gone",
        True,
    ),
    "not-typing": (
        "import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    from maker import gone",
        True,
    ),
    "newer": (
        (
            "import maker\nfrom packaging.version import Version\n"
            "if Version(maker.__version__) >= Version('3'):\n    from maker import gone"
        ),
        True,
    ),
    "older": (
        (
            "import maker\nfrom packaging import version\n"
            "if version.parse(maker.__version__) < version.parse('3'):\n    from maker import gone"
        ),
        True,
    ),
    "else-branch": (
        (
            "import maker\nfrom packaging.version import Version\n"
            "NEW = Version(maker.__version__) >= Version('2')\n"
            "if NEW:\n    from maker import there\nelse:\n    from maker import gone"
        ),
        True,
    ),
    "available": (
        (
            "import importlib.util\ndef is_maker_available():\n"
            "    return importlib.util.find_spec('maker') is not None\n"
            "if is_maker_available():\n    from maker import gone"
        ),
        True,
    ),
    "unavailable": (
        (
            "import importlib.util\ndef is_third_available():\n"
            "    return importlib.util.find_spec('third') is not None\n"
            "if is_third_available():\n    from maker import gone"
        ),
        True,
    ),
    "window": (
        (
            "import importlib.util, maker\nfrom packaging.version import Version\n"
            "def is_maker_available(min_version=None):\n"
            "    there = importlib.util.find_spec('maker') is not None\n"
            "    if there:\n        if not (Version('0.1') <= Version(maker.__version__)):\n"
            "            print('odd')\n"
            "        if min_version is not None and Version(maker.__version__) < Version(min_version):\n"
            "            return False\n    return there\n"
            "if is_maker_available('3'):\n    from maker import gone"
        ),
        True,
    ),
    "raised-where-missing": (
        (
            "import importlib.util\nclass NotThere(BaseException):\n    pass\n"
            "def is_third_available():\n    return importlib.util.find_spec('third') is not None\n"
            "try:\n    if not is_third_available():\n        raise NotThere()\n"
            "except NotThere:\n    from maker import there\nelse:\n    from maker import gone"
        ),
        True,
    ),
    "not-raised-where-there": (
        (
            "import importlib.util\nclass NotThere(BaseException):\n    pass\n"
            "def is_maker_available():\n    return importlib.util.find_spec('maker') is not None\n"
            "try:\n    if not is_maker_available():\n        raise NotThere()\n"
            "except NotThere:\n    from maker import there\nelse:\n    from maker import gone"
        ),
        True,
    ),
    "raised-below-a-version": (
        (
            "import maker\nfrom packaging.version import Version\n"
            "try:\n    if not (maker and Version(maker.__version__) >= Version('3')):\n"
            "        raise OSError\n"
            "except OSError:\n    pass\nelse:\n    from maker import gone"
        ),
        True,
    ),
    "unknown-condition": (
        "import os\nif os.environ.get('NEVER'):\n    from maker import gone",
        True,
    ),
    "relative": ("from . import inner", True),
    "relative-deep": ("from .package.deep import y", True),
    "attribute": ("import maker\nx = maker.gone", True),
    "attribute-there": ("import maker\nx = maker.there", True),
    "attribute-of-alias": ("import maker.sub as s\nx = s.gone", True),
    "attribute-of-submodule": ("import maker.sub\nx = maker.sub.gone.deeper", True),
    "attribute-of-imported": ("from maker import sub\n@sub.gone\ndef f(): pass", True),
    "attribute-of-a-value": ("import maker\nx = maker.there.real", True),
    "attribute-as-base": ("import maker\nclass C(maker.gone): pass", True),
    "attribute-in-class": ("import maker\nclass C:\n    x = maker.gone", True),
    "attribute-as-default": ("import maker\ndef f(x=maker.gone): pass", True),
    "attribute-in-function": ("import maker\ndef f(): return maker.gone", True),
    "attribute-in-lambda": ("import maker\nf = lambda: maker.gone", True),
    "attribute-asked-for": ("import maker\nif hasattr(maker, 'gone'):\n    maker.gone", True),
    "attribute-after-asking": ("import maker\nx = hasattr(maker, 'gone') and maker.gone", True),
    "attribute-chosen": ("import maker\nx = maker.gone if 0 else 1", True),
    "attribute-guarded": ("import maker\ntry:\n    maker.gone\nexcept AttributeError: pass", True),
    "attribute-set-first": ("import maker\nmaker.gone = 1\nx = maker.gone", True),
    "attribute-of-either": ("import maker\nimport json as maker\nx = maker.loads", True),
    "attribute-annotated": (
        (
            "from __future__ import annotations\nimport maker\nx: maker.gone = 1\n"
            "def f(y: maker.gone): pass"
        ),
        True,
    ),
    "guarded-inner": ("try:\n    from . import inner\nexcept ImportError:\n    pass", True),
}
INNER = {
    "user/inner.py": "from maker import gone\n",
    "user/package/__init__.py": "",
    "user/package/deep.py": "from ..inner import y\n",
    "user/acts.py": "import maker\ndef reads():\n    maker.gone\n"
    "def reads_there():\n    maker.there\ndef deeper():\n    reads()\n",
    "user/again.py": "from .acts import reads\n",
}


def breaks(workshop, user, maker):
    """Whether the scanner says that importing ``user`` fails with this ``maker`` and no third."""
    for demand in demands_of(user, (Entry("user", "", True),), {"maker": maker}.get):
        limits = demand.limits
        from surface_scan.pairs import meets

        if "third" in limits.present or not meets(maker.version, limits, "maker"):
            continue

        def lacks(module, name):
            there = maker.defines(module, name) if name else maker.has_module(module)
            return there is False

        if lacks(demand.module, demand.name) and (
            not demand.alternatives or any(lacks(*other) for other in demand.alternatives)
        ):
            return True
    return False


def test_imports(workshop):
    maker = workshop.release("maker", MAKER, "2.5")
    said, statements, roots = {}, [], ["maker-2.5"]
    for number, (form, (text, _)) in enumerate(IMPORTS.items()):
        name = f"user{number}"
        files = {"user/__init__.py": text + "\n", **INNER}
        release = workshop.release("user", files, f"1.{number}")
        said[form] = breaks(workshop, release, maker)
        renamed = {path.replace("user/", f"{name}/"): body for path, body in files.items()}
        workshop.release("third", renamed, f"9.{number}")
        roots.append(f"third-9.{number}")
        statements.append(f"import {name}")
    errors = dict(zip(IMPORTS, workshop.run(statements, *roots)))
    for form, (_, must) in IMPORTS.items():
        failed = errors[form] in (*IMPORT_ERRORS, "AttributeError")
        assert not errors[form] or failed, (form, errors[form])
        if said[form]:
            assert failed, f"{form}: said to fail, and does not"
        elif must:
            assert not failed, f"{form}: fails, and nothing was said"


#: What a function imports that runs come to: the source, and whether the run fails.
STARTS = {
    "plain": ("def start():\n    from maker import gone", True),
    "there": ("def start():\n    from maker import there", False),
    "called": ("def start():\n    other()\ndef other():\n    from maker import gone", True),
    "not-called": ("def start():\n    pass\ndef other():\n    from maker import gone", False),
    "own-module": ("def start():\n    from user import inner", True),
    "guarded": (
        (
            "def start():\n    try:\n        from maker import gone\n    except ImportError:\n"
            "        pass"
        ),
        False,
    ),
}


@pytest.mark.parametrize("form", STARTS)
def test_what_functions_import_that_runs_come_to(workshop, form):
    code, fails = STARTS[form]
    workshop.packages = workshop.packages._replace(starts={"user": {"user:start": "runs"}})
    maker = workshop.release("maker", MAKER, "2.5")
    user = workshop.release("user", {"user/__init__.py": f"{code}\n", **INNER})
    (error,) = workshop.run(["import user; user.start()"], "user-1.0", "maker-2.5")
    assert (bool(error), breaks(workshop, user, maker)) == (fails, fails)


def test_a_module_that_is_only_refused_by_name_is_not_there(workshop):
    refusing = (
        "def __getattr__(name):\n    if name == 'there':\n        return 1\n"
        "    elif name in ('gone', 'moved'):\n        raise AttributeError(f'{name} is private')\n"
        "    raise AttributeError(name)\n"
    )
    maker = workshop.release(
        "maker", {"maker/__init__.py": "", "maker/lib/__init__.py": refusing}, "2.0"
    )
    errors = workshop.run(["import maker.lib.gone", "from maker.lib import there"], "maker-2.0")
    assert errors[0] == "ModuleNotFoundError"
    assert not errors[1]
    assert maker.has_module("maker.lib.gone") is False
    assert maker.has_module("maker.lib.there") is None
