"""``envdoctor matrix`` as a real child process: answers, exit codes, JSON by its schema, narrow
terminals, pipes, no network.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from envdoctor.matrix.loader import load_builtin
from envdoctor.matrix.source import write_compiled

from ..matrix.folders import package_text, row_text, small_matrix
from ..schemas import unproduced, validate
from .conftest import BROKEN, COMMAND, ROOT, environment
from .test_output import ANSI, on_terminal

OLD = '{ env = "torch", in = "<2.6" }'

SHOWN = [
    "vllm==0.8.5",
    "VLLM == 0.8.5",
    "vllm",
    "vllm>=0.8,<0.9",
    "flash-attn==2.8.3",
    "Flash_Attn",
    "H20",
    "NVIDIA A100-SXM4-80GB",
    "10de:2329",
    "2329",
    "gpu h100",
    "sm_90",
    "sm120",
    "9.0",
    "hopper",
    "driver 550",
    "driver R535",
    "driver 535.129.03",
    "cuda 12.8",
    "cuda 12.8.1",
    "cuda 13",
    "toolkit 11.8",
    "cublas-12.1-sigfpe-h20",
    "row driver-since-10.0",
    "driver-for-cuda-13:torch",
    "package torch",
]
LISTS = [
    [],
    ["packages"],
    ["rows"],
    ["gpus"],
    ["drivers"],
    ["toolkits"],
    ["profiles"],
    ["models"],
    ["conda"],
]


def answer(done, code=0):
    assert done.returncode == code, done.stderr.decode()
    document = json.loads(done.stdout)
    validate(document, "matrix")
    return document


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """envdoctor as a wheel installs it: the package with the compiled matrix of November 2026, and
    no matrices/ folder beside it.
    """
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(
        ROOT / "envdoctor",
        folder / "envdoctor",
        ignore=shutil.ignore_patterns("_compiled", "__pycache__"),
    )
    source = small_matrix(folder / "source")
    write_compiled(str(source), str(folder / "envdoctor" / "_compiled"), times=False)
    shutil.rmtree(source)
    return folder


@pytest.fixture
def at_home(installed, tmp_path):
    """Return a function that runs the installed envdoctor with a home of its own."""

    def run(*arguments, **changes):
        env = environment(
            **{"PYTHONPATH": str(installed), "ENVDOCTOR_HOME": str(tmp_path / "home"), **changes}
        )
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=env,
            capture_output=True,
            check=False,
            timeout=60,
            cwd=tmp_path,
        )
        assert b"Traceback" not in done.stderr
        return done

    return run


def archive_of(tmp_path, row, date):
    folder = small_matrix(tmp_path / row, row_text(row, OLD, date=date))
    path = tmp_path / f"{row}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "matrices")
    subprocess.run(
        f"sha256sum {path.name} > {path.name}.sha256", cwd=tmp_path, shell=True, check=True
    )
    return path


# --------------------------------------------------------------------------------------------------
# show, list


@pytest.mark.parametrize("query", SHOWN)
def test_show(envdoctor, query):
    document = answer(envdoctor("matrix", "show", *query.split(" "), "--json"))
    plain = envdoctor("matrix", "show", query)
    assert plain.returncode == 0
    assert plain.stdout.decode().strip()
    assert plain.stderr == b""
    assert document["kind"] in (
        "release",
        "package",
        "gpu",
        "capability",
        "architecture",
        "driver",
        "cuda",
        "row",
    )


def test_show_a_release_says_everything(envdoctor):
    document = answer(envdoctor("matrix", "show", "vllm==0.8.5", "--json"))
    assert (document["released"], document["glibc"]) == ("2025-04-28", "2.14")
    assert "torch==2.6.0" in document["requires"]
    (build,) = [build for build in document["builds"] if build["architecture"] == "x86_64"]
    assert build["cuda"] == "12.4"
    assert "9.0" in build["sm"]
    assert build["source"]
    torch = answer(envdoctor("matrix", "show", "torch==2.6.0", "--json"))
    assert {"name": "vllm", "version": "0.8.5", "line": "torch==2.6.0"} in torch["pinned_by"]
    flash = answer(envdoctor("matrix", "show", "flash-attn==2.8.3", "--json"))
    assert "openrlhf" in {pin["name"] for pin in flash["pinned_by"]}
    ids = {row["id"] for row in document["rows"]}
    assert ids
    text = " ".join(envdoctor("matrix", "show", "vllm==0.8.5").stdout.decode().split())
    for word in ("2025-04-28", "torch==2.6.0", "CUDA 12.4", "glibc", *ids):
        assert word in text


def test_rows_of_a_release_are_those_that_can_hold_for_it(envdoctor):
    """Every row that is shown holds for this version; every row that is not has a term that rules
    it out.
    """
    document = answer(envdoctor("matrix", "show", "vllm==0.8.5", "--json"))
    shown = {row["id"] for row in [*document["rows"], *document["derived"]]}
    from envdoctor.model.version import Version

    version = Version("0.8.5")
    for row in load_builtin().rows():
        if row.origin == "derived":
            continue
        mine = [
            term
            for term in row.terms
            if term.scope == "env"
            and term.component == "vllm"
            and term.attribute == "version"
            and term.operator in ("in", "lacks")
        ]
        if mine:
            holds = all((version in term.argument) is (term.operator == "in") for term in mine)
            assert holds is (row.id in shown), row.id


def test_show_a_package_whose_releases_nobody_read(envdoctor):
    """Rows speak of it; its releases are not known, and that is said."""
    for query, rows in (("deep-gemm", 1), ("deep-gemm==2.0.0", 1), ("deep-gemm==2.1.0", 0)):
        done = envdoctor("matrix", "show", query, "--json")
        answer = json.loads(done.stdout)
        validate(answer, "matrix")
        assert (answer["kind"], answer["releases"]) == ("package", [])
        assert [row["id"] for row in answer["rows"]] == ["deepgemm-cudart-12.8"][:rows]
    assert b"deep-gemm: releases not read" in envdoctor("matrix", "show", "deep-gemm").stdout
    refused = envdoctor("matrix", "show", "deep-gem")
    assert refused.returncode == 2
    assert b"did you mean deep-gemm" in refused.stderr


def test_show_a_gpu(envdoctor):
    document = answer(envdoctor("matrix", "show", "H20", "--json"))
    assert (document["compute_capability"], document["architecture"], document["pci_ids"]) == (
        "9.0",
        "Hopper",
        ["2329"],
    )
    assert document["source"]
    assert "cublas-12.1-sigfpe-h20" in {row["id"] for row in document["rows"]}
    assert {entry["package"] for entry in document["code"]} >= {"torch", "vllm"}
    code = {
        entry["package"]: entry
        for entry in answer(envdoctor("matrix", "show", "sm_120", "--json"))["code"]
    }
    assert code["torch"]["first"] == "2.8.0" or code["torch"]["first"] == "2.7.0"


@pytest.mark.parametrize(
    ("name", "works", "words"),
    [
        ("H20", True, "works on this class of device"),
        ("AX800", True, "works on this class of device"),
        ("GeForce RTX 4090", False, "error 804"),
        ("Quadro P400", None, "on some of this class of device only"),
    ],
)
def test_show_says_no_more_of_cuda_compat_than_the_check(envdoctor, name, works, words):
    assert answer(envdoctor("matrix", "show", name, "--json"))["forward_compatibility"] is works
    assert words in " ".join(envdoctor("matrix", "show", name).stdout.decode().split())


def test_show_a_driver_and_a_cuda_version(envdoctor):
    driver = answer(envdoctor("matrix", "show", "driver", "550", "--json"))
    assert (driver["cuda"], [entry["major"] for entry in driver["cuda_majors"]]) == (
        "12.4",
        [11, 12],
    )
    assert "9.0" in driver["capabilities"]
    assert "10.0" not in driver["capabilities"]
    cuda = answer(envdoctor("matrix", "show", "cuda", "12.8", "--json"))
    assert (cuda["min_driver"], cuda["ptx_driver"]) == ("525.60.13", "570")
    assert any(
        entry["package"] == "torch" and "2.7.0" in entry["releases"] for entry in cuda["builds"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["show", "vlm"],
            "vlm: no such package, GPU, compute capability, profile or row (did you mean vllm",
        ),
        (["show", "vllm==0.8.55"], "vllm 0.8.55 is not in the matrix of "),
        (["show", "vllm>=99"], "no release of vllm is in >=99; the matrix has 0."),
        (["show", "vllm>="], "expected a requirement such as 'torch>=2.5', found 'vllm>='"),
        (["show", "nosuch==1.0"], "nosuch: no such package in the matrix"),
        (["show", "driver", "999"], "driver 999: no such branch"),
        (["show", "cuda", "99.9"], "cuda 99.9: no such toolkit"),
        (["show", "row", "nothing"], "nothing: no such row"),
        (["show", "\x1b[31m"], "no such package"),
        (["show"], "the following arguments are required: NAME"),
        (["list", "wheels"], "invalid choice: 'wheels'"),
        ([], "the following arguments are required: ACTION"),
        (["shwo", "x"], "invalid choice: 'shwo'"),
        (["show", "H20", "--josn"], "no such option: --josn (did you mean --json"),
        (["validate", "/nonexistent"], "/nonexistent: expected a folder, found nothing"),
        (["lint", "/etc/passwd"], "/etc/passwd: expected a folder, found a file"),
        (
            ["diff", "built-in", "nowhere"],
            "nowhere: expected a folder, an archive, 'built-in', 'current' or 'previous'",
        ),
        (["diff", "built-in", "/etc"], "/etc: expected a whole matrices folder"),
        (["diff", "built-in", "/etc/passwd"], "passwd: expected a .tar.gz or .zip"),
        (["update"], "expected --from URL|FILE, or the address of whoever publishes"),
        (["update", "--from", "x", "--rollback"], "not allowed with argument"),
        (["update", "--rollback", "--sha256", "x"], "--sha256 goes with --from"),
        (
            ["update", "--from", "http://localhost/x"],
            "expected an https address or a file, found http",
        ),
        (["coverage", "nosuch"], "nosuch"),
    ],
)
def test_wrong_usage(envdoctor, tmp_path, arguments, words):
    done = envdoctor("matrix", *arguments, env=environment(ENVDOCTOR_HOME=str(tmp_path)))
    message = done.stderr.decode()
    assert done.returncode == 2, message
    assert message.startswith("envdoctor: error: ")
    assert words in message
    assert "\x1b" not in message
    assert message.count("\n") == 1
    assert done.stdout == b""


@pytest.mark.parametrize("arguments", LISTS)
def test_list(envdoctor, arguments):
    document = answer(envdoctor("matrix", "list", *arguments, "--json"))
    plain = envdoctor("matrix", "list", *arguments).stdout.decode()
    assert plain
    if not arguments:
        assert document["counts"]["rows"] > 200
        return
    assert (
        len(document["entries"])
        == answer(envdoctor("matrix", "list", "--json"))["counts"][arguments[0]]
    )
    words = " ".join(plain.split())
    for entry in document["entries"]:
        assert str(next(iter(entry.values()))) in words


NARROW = [
    *(["show", query] for query in ("vllm==0.8.5", "flash-attn==2.8.3", "H20", "torch")),
    *(["show", query] for query in ("driver 550", "cuda 12.8")),
    *(["list", "rows"], ["list"], ["lint", "cublas-12.1-sigfpe-h20"], ["lint"]),
]


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        # The widest and the narrowest. To read all sources for lint takes two seconds.
        pytest.param(
            arguments,
            columns,
            marks=[pytest.mark.slow] if columns == 60 or arguments == ["lint"] else [],
        )
        for columns in (80, 60, 40)
        for arguments in NARROW
    ],
)
def test_narrow(envdoctor, arguments, columns):
    """Only a word that is longer than the line, such as an address, may stand out; it stands alone,
    or behind its label.
    """
    done = envdoctor("matrix", *arguments, env=environment(COLUMNS=str(columns)))
    assert done.stdout.isascii()
    for line in done.stdout.decode().splitlines():
        if len(line) > columns:
            assert max(map(len, line.split())) > columns - 30, line
            assert len(line.split()) < 4 or line.split()[0].endswith(":"), line


def test_terminal_gets_the_words_of_plain_in_colour(envdoctor):
    code, seen = on_terminal(["matrix", "show", "H20"], 80)
    assert code == 0
    assert b"\x1b[" in seen
    assert ANSI.sub(b"", seen) == envdoctor("matrix", "show", "H20").stdout


def test_a_reader_that_went_away():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "matrix", "list", "rows"],
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_surroundings_change_nothing(envdoctor, tmp_path):
    for arguments in (["show", "vllm==0.8.5", "--json"], ["list", "rows"]):
        expected = envdoctor("matrix", *arguments)
        for changes in (
            {"LC_ALL": "C"},
            {"PYTHONIOENCODING": "ascii"},
            {"PYTHONHASHSEED": "7"},
            {"HOME": None},
            {"HOME": str(tmp_path)},
        ):
            done = envdoctor("matrix", *arguments, env=environment(**changes))
            assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout), (
                arguments,
                changes,
            )
    assert list(tmp_path.iterdir()) == []


def test_looking_never_goes_online():
    """Even update does not, where it is given a file."""
    program = (
        "import sys\n"
        "def hook(name, arguments):\n"
        "    if name.startswith('socket.') or name == 'subprocess.Popen': raise SystemExit(name)\n"
        "sys.addaudithook(hook)\n"
        "from envdoctor.cli.main import run\n"
        "for line in sys.argv[1].split(';'): run(line.split())\n"
        "print('requests' in sys.modules, 'socket' in sys.modules)\n"
    )
    lines = (
        "matrix show vllm==0.8.5;matrix list rows;matrix lint cublas-12.1-sigfpe-h20;"
        "matrix validate;matrix diff built-in current;matrix update --rollback"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, lines],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1].split()[0] == "False", done.stderr


# --------------------------------------------------------------------------------------------------
# coverage, validate, lint, diff


@pytest.fixture
def gaps(tmp_path):
    """Return the folder of a matrix that lacks releases, and a function that asks for its
    coverage.
    """
    folder = small_matrix(tmp_path / "matrices")
    listing = {
        "schema": 1,
        "source": "x",
        "date": "2026-11-20",
        "packages": {"torch": {"releases": ["2.5.0", "2.6.0", "2.7.0"]}},
    }
    (folder / "index.json").write_text(json.dumps(listing))
    program = (
        "import sys\nfrom envdoctor.matrix import loader\n"
        f"loader._SOURCE, loader._COMPILED = {str(folder)!r}, '/nonexistent'\n"
        "from envdoctor.cli.main import run\nsys.exit(run(sys.argv[1:]))\n"
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", program, "matrix", "coverage", *arguments],
            env=environment(),
            capture_output=True,
            check=False,
        )

    return folder, run


def test_coverage(gaps):
    folder, run = gaps
    document = answer(run("torch", "--json"), 1)
    assert {(gap["version"], gap["lacks"]) for gap in document["missing"]} == {
        ("2.7.0", "not in the matrix"),
        ("2.5.0", "no dependencies"),
    }
    text = run("torch").stdout.decode()
    assert "2 of 3 releases" in text
    assert "torch, not in the matrix: 2.7.0" in text
    (folder / "packages" / "torch.json").write_text(
        package_text(
            "torch", {version: {"requires": []} for version in ("2.5.0", "2.6.0", "2.7.0")}
        )
    )
    assert answer(run("torch", "--json"))["missing"] == []
    (folder / "index.json").write_text("{")
    assert b"index.json: is not JSON" in run().stderr


def test_coverage_without_a_listing(at_home):
    done = at_home("matrix", "coverage")
    assert done.returncode == 2
    assert b"carries no listing of the package index; a checkout has it" in done.stderr


def test_validate(envdoctor, tmp_path):
    document = answer(envdoctor("matrix", "validate", "--json"))
    assert document["faults"] == []
    assert document["counts"]["rows"] > 200
    assert document["not_read"] == []
    folder = tmp_path / "site"
    folder.mkdir()
    assert envdoctor("matrix", "validate", folder).returncode == 2  # nothing in it
    (folder / "rows.toml").write_text(row_text("ours", OLD))
    (folder / "rows.tmol").write_text("")
    assert answer(envdoctor("matrix", "validate", folder, "--json"))["not_read"] == ["rows.tmol"]
    (folder / "rows.toml").write_text(row_text("ours", OLD, kind="odd", effect="bad"))
    (folder / "more.toml").write_text("[[row]\n")
    (folder / "packages").mkdir()
    (folder / "packages" / "x.json").write_bytes(b"\xff")
    (folder / "models.toml").write_text("=")
    (folder / "profiles").mkdir()
    (folder / "profiles" / "p.toml").write_text("=")
    document = answer(envdoctor("matrix", "validate", folder, "--json"), 2)
    assert len(document["faults"]) == 6
    done = envdoctor("matrix", "validate", folder)
    assert done.returncode == 2
    for word in (
        "rows.toml: row 'ours': kind",
        "more.toml",
        "packages/x.json",
        "models.toml",
        "profiles/p.toml",
    ):
        assert word in " ".join(done.stdout.decode().split())


def test_validate_of_an_installed_envdoctor_needs_a_folder(at_home):
    done = at_home("matrix", "validate")
    assert done.returncode == 2
    assert b"name a folder" in done.stderr


def test_lint(envdoctor, tmp_path):
    """All of our own matrix is looked through in tests/matrix/authoring/test_lint.py."""
    (tmp_path / "rows.toml").write_text(row_text("ours", '{ env = "torch", in = ">=99" }'))
    document = answer(envdoctor("matrix", "lint", tmp_path, "--json"), 1)
    assert (document["rows"], [entry["check"] for entry in document["findings"]]) == (
        1,
        ["range-without-release"],
    )
    done = envdoctor("matrix", "lint", tmp_path)
    assert done.returncode == 1
    assert b"1 row: 1 fault, no notes" in done.stdout
    whole = small_matrix(tmp_path / "whole", row_text("future", OLD, date="2099-01-01"))
    assert [
        entry["check"]
        for entry in answer(envdoctor("matrix", "lint", whole, "--json"), 1)["findings"]
    ] == ["date"]


def test_lint_of_rows(envdoctor, tmp_path):
    document = answer(envdoctor("matrix", "lint", "cublas-12.1-sigfpe-h20", "--json"))
    assert document["rows"] == 1
    assert {entry["subject"] for entry in document["findings"]} <= {"cublas-12.1-sigfpe-h20"}
    text = row_text("ours", '{ env = "torch", in = ">=99" }')
    text += row_text("unread", '{ env = "no-such", in = "<1" }', kind="bad-version")
    (tmp_path / "rows.toml").write_text(text)
    document = answer(envdoctor("matrix", "lint", tmp_path, "unread", "--json"))
    assert [entry["check"] for entry in document["findings"]] == ["releases-not-read"]
    assert document["findings"][0]["message"].startswith("no-such has no file in packages/")
    done = envdoctor("matrix", "lint", "cublas-12.1-sigfpe-h21")
    assert done.returncode == 2
    assert b"cublas-12.1-sigfpe-h20" in done.stderr


def test_diff(envdoctor, tmp_path):
    old, new = (
        small_matrix(tmp_path / "old"),
        small_matrix(tmp_path / "new", row_text("new-row", OLD)),
    )
    document = answer(envdoctor("matrix", "diff", old, new, "--json"), 1)
    assert [(change["change"], change["key"]) for change in document["changes"]] == [
        ("added", "new-row"),
        ("removed", "old-torch"),
    ]
    text = envdoctor("matrix", "diff", old, new).stdout.decode()
    assert "rows: 1 added, 1 removed" in text
    assert "+ new-row Row new-row" in text
    assert answer(envdoctor("matrix", "diff", old, old, "--json"))["changes"] == []
    assert (
        envdoctor("matrix", "diff", archive_of(tmp_path, "old-torch", "2026-11-01"), old).returncode
        == 0
    )


# --------------------------------------------------------------------------------------------------
# update


def test_update_and_rollback(at_home, tmp_path):
    path = archive_of(tmp_path, "new-row", "2026-11-02")
    document = answer(at_home("matrix", "update", "--from", path, "--json"))
    assert (document["changed"], document["date"], document["previous_date"]) == (
        True,
        "2026-11-02",
        "2026-11-01",
    )
    assert (document["rows"], document["releases"]) == ("1 added, 1 removed", "no change")
    assert at_home("matrix", "show", "new-row").returncode == 0
    assert at_home("explain", "new-row").returncode == 0
    assert at_home("matrix", "show", "old-torch").returncode == 2
    assert answer(at_home("matrix", "list", "--json"))["origin"].startswith(str(tmp_path / "home"))
    assert at_home("matrix", "diff", "previous", "current").returncode == 1
    text = at_home("matrix", "update", "--from", path).stdout.decode()
    assert text.startswith("This matrix is installed already")
    assert "2026-11-01 (built-in)" in at_home("matrix", "update", "--rollback").stdout.decode()
    assert at_home("matrix", "show", "new-row").returncode == 2
    done = at_home("matrix", "update", "--rollback")
    assert done.returncode == 2
    assert b"there is no update to take back" in done.stderr


def test_the_address_of_whoever_publishes(at_home, tmp_path):
    path = archive_of(tmp_path, "new-row", "2026-11-02")
    done = at_home("matrix", "update", "--json", ENVDOCTOR_MATRIX_ADDRESS=path)
    assert answer(done)["date"] == "2026-11-02"
    assert at_home("matrix", "show", "new-row").returncode == 0
    address = {"ENVDOCTOR_MATRIX_ADDRESS": "http://localhost/x"}
    assert b"expected an https address" in at_home("matrix", "update", **address).stderr
    other = archive_of(tmp_path, "other-row", "2026-11-03")  # what is asked for counts
    assert answer(at_home("matrix", "update", "--from", other, "--json", **address))["changed"]


def test_check_uses_the_update_and_no_home_is_no_fault(at_home, tmp_path, broken):
    assert (
        at_home(
            "matrix", "update", "--from", archive_of(tmp_path, "new-row", "2026-11-02")
        ).returncode
        == 0
    )
    report = json.loads(at_home("check", "--facts", broken, "--format", "json").stdout)
    assert report["tool"]["matrix_date"] == "2026-11-02"
    for changes in (
        {"ENVDOCTOR_HOME": None, "HOME": None},
        {"ENVDOCTOR_HOME": "relative"},
        {"ENVDOCTOR_HOME": "/dev/null"},
    ):
        done = at_home("check", "--facts", broken, "--format", "json", **changes)
        assert json.loads(done.stdout)["tool"]["matrix_date"] == "2026-11-01"
        assert done.stderr == b""


def test_no_home_for_an_update(at_home, tmp_path):
    path = archive_of(tmp_path, "new-row", "2026-11-02")
    done = at_home("matrix", "update", "--from", path, ENVDOCTOR_HOME=None, HOME=None)
    assert done.returncode == 2
    assert done.stderr.startswith(
        b"envdoctor: error: there is no place for an update: set ENVDOCTOR_HOME to a folder "
        b"(none of"
    )


def test_an_old_matrix_is_one_line_of_advice(envdoctor, tmp_path):
    """Judged a year later: the use case takes the day."""
    program = (
        "import json, sys\n"
        "import envdoctor.rules as rules\n"
        "from envdoctor.model.serde import load_facts\n"
        "from envdoctor.matrix.loader import load_matrix\n"
        "found = rules.judge(load_facts(open(sys.argv[1]).read(), 'x'), load_matrix(), "
        "today='2028-01-01')\n"
        "print(json.dumps([(f.code, f.severity) for f in found if f.code == 'ED902']))\n"
    )
    path = tmp_path / "healthy.json"
    path.write_text(
        json.dumps({**BROKEN, "facts": {"os.platform": BROKEN["facts"]["os.platform"]}})
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [["ED902", "advice"]]


def test_every_property_of_the_schema_is_in_some_answer(envdoctor, at_home, gaps, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "rows.toml").write_text(row_text("ours", '{ env = "torch", in = ">=99" }'))
    old = small_matrix(tmp_path / "old")
    new = small_matrix(tmp_path / "new", row_text("old-torch", OLD, title="Another title"))
    shown = [
        "vllm==0.8.5",
        "torch==2.6.0",
        "optree==0.2.0",
        "vllm>=0.8,<0.9",
        "H20",
        "sm_90",
        "hopper",
    ]
    shown += ["driver 550", "cuda 12.8", "cublas-12.1-sigfpe-h20", "profile tinyzero"]
    answers = [envdoctor("matrix", "show", *query.split(), "--json") for query in shown]
    answers += [
        envdoctor("matrix", "list", "--json"),
        envdoctor("matrix", "list", "gpus", "--json"),
        gaps[1]("torch", "--json"),
        envdoctor("matrix", "validate", "--json"),
        envdoctor("matrix", "lint", site, "--json"),
        envdoctor("matrix", "diff", old, new, "--json"),
        at_home("matrix", "update", "--from", archive_of(tmp_path, "a", "2026-11-02"), "--json"),
    ]
    assert not unproduced("matrix", [json.loads(done.stdout) for done in answers])


def test_help_of_every_action(envdoctor):
    text = envdoctor("matrix", "--help").stdout.decode()
    for action in re.findall(r"^    ([a-z]+) ", text, re.MULTILINE):
        done = envdoctor("matrix", action, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith(f"usage: envdoctor matrix {action} ".encode())
        assert b"--format" in done.stdout
        assert done.stdout == envdoctor("help", "matrix", action).stdout
    assert "None" not in text
