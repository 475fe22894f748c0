"""Installed distributions: what lies badly, against importlib.metadata on what lies well, and
within its time.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor import sources
from envdoctor.fix import environment_snapshot
from envdoctor.model.evidence import Known, Unknown
from envdoctor.model.versions import canonicalize_name
from envdoctor.probes import distributions as probe
from envdoctor.probes.interpreter import interpreter_of
from envdoctor.probes.machine import Machine

from ..lock.closing.wheels import make_wheel
from ..time_taken import least_seconds
from .compiled import output, plain_environment


@pytest.fixture
def image(tmp_path):
    """An image with one Python, and a way to read it; the second folder is of the user site's
    rank.
    """

    class Image:
        root = tmp_path / "image"
        site = root / "usr/local/lib/python3.11/site-packages"

        def put(self, name, files, site=None):
            folder = (site or self.site) / name
            folder.mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(
                    content if isinstance(content, bytes) else content.encode()
                )
            return folder

        def install(self, name, version, *lines, **files):
            text = (
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                + "".join(line + "\n" for line in lines)
                + "\nA text.\nName: other\n"
            )
            return self.put(
                f"{name.replace('-', '_')}-{version}.dist-info",
                {
                    "METADATA": text,
                    **{key.replace("_json", ".json"): value for key, value in files.items()},
                },
            )

        def read(self, deep=False, environment=None):
            machine = Machine(str(self.root), environment, deep=deep)
            facts = probe.probe_distributions(machine)
            assert all(isinstance(fact, Known) for fact in facts.values()), facts
            return (
                facts["distributions"].value,
                [tuple(entry[:2]) for entry in facts["distributions.oddities"].value],
                facts,
            )

    (tmp_path / "image/usr/local/bin").mkdir(parents=True)
    (tmp_path / "image/usr/local/bin/python3.11").write_bytes(b"\0" + b"3.11.9\0")
    Image.site.mkdir(parents=True)
    return Image()


def test_a_healthy_distribution(image):
    image.install(
        "Under_Score.Dot",
        "1.0+cu128",
        'Requires-Dist: torch (==2.6.0) ; extra == "x"',
        "Requires-Dist: numpy\n <2",
        "Requires-Python: >=3.9",
        "Provides-Extra: x",
        INSTALLER="uv\n",
        WHEEL="Wheel-Version: 1.0\nTag: cp39-abi3-manylinux_2_17_x86_64\nTag: "
        "cp39-abi3-manylinux2014_x86_64\n",
    )
    distributions, oddities, facts = image.read()
    entry = distributions["under-score-dot"]
    assert entry.version == "1.0+cu128"
    assert entry.requires == ('torch (==2.6.0) ; extra == "x"', "numpy <2")
    assert entry.requires_python == ">=3.9"
    assert entry.provides_extras == ("x",)
    assert entry.installer == "uv"
    assert entry.tags == ("cp39-abi3-manylinux_2_17_x86_64", "cp39-abi3-manylinux2014_x86_64")
    assert entry.location == "/usr/local/lib/python3.11/site-packages"
    assert oddities == []
    assert facts["distributions.complete"].value is True


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "unreadable-metadata"),
        (b"\0" * 900, "unreadable-metadata"),
        (
            b"Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\nAuthor: M\xfcller\n\n",
            "unreadable-metadata",
        ),
        (b"\xff\xfe" + "Name: torch\n".encode("utf-16-le"), "unreadable-metadata"),
        (b"Metadata-Version: 2.1\nVersion: 2.6.0\n\n", "unreadable-metadata"),
        (b"Metadata-Version: 2.1\nName: pytorch\nVersion: 2.6.0\n\n", "name-mismatch"),
        (b"Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\n\n", "name-mismatch"),
    ],
)
def test_metadata_that_is_wrong_costs_neither_name_nor_version(image, content, kind):
    image.put("torch-2.6.0.dist-info", {"METADATA": content})
    distributions, oddities, _ = image.read()
    assert distributions["torch"].version == "2.6.0"
    assert oddities == [(kind, "torch")]
    assert (distributions["torch"].requires is None) is (kind == "unreadable-metadata")


@pytest.mark.parametrize(
    "text",
    [
        "Name: torch\r\nVersion: 2.6.0\r\n\r\nName: x\r\n",
        "\ufeffName: torch\nVersion: 2.6\n\n",
        "name:torch\nVERSION :2.6.0\n\n",
    ],
)
def test_other_spellings_of_a_header_are_read(image, text):
    image.put("torch-2.6.0.dist-info", {"METADATA": text})
    assert image.read()[1] == []


def test_a_shell_without_metadata_is_believed_where_its_module_is(image):
    image.put("gone-1.0.dist-info", {"__pycache__/x": ""})
    image.put("there-1.0.dist-info", {"INSTALLER": "pip"})
    image.put("there", {"__init__.py": ""})
    distributions, oddities, _ = image.read()
    assert set(distributions) == {"there"}
    assert oddities == [("no-metadata", "gone"), ("no-metadata", "there")]


def test_leftovers_of_pip_are_no_distribution(image):
    image.install("torch", "2.6.0")
    image.put("~orch-2.5.0.dist-info", {"METADATA": "Name: torch\nVersion: 2.5.0\n\n"})
    image.put("~orch", {"__init__.py": ""})
    distributions, oddities, _ = image.read()
    assert {name: entry.version for name, entry in distributions.items()} == {"torch": "2.6.0"}
    assert [kind for kind, _ in oddities] == ["leftover", "leftover"]


def test_links_to_nothing_and_plain_files(image):
    (image.site / "lost-1.0.dist-info").symlink_to("/cache/lost-1.0.dist-info")
    (image.site / "file-1.0.dist-info").write_text("Name: file")
    distributions, oddities, _ = image.read()
    assert distributions == {}
    assert sorted(oddities) == [("dangling-link", "lost"), ("not-a-directory", "file")]


def test_links_are_followed_inside_the_image_only(image):
    image.install("cached", "1.0")
    store = image.root / "cache"
    store.mkdir()
    (image.site / "cached-1.0.dist-info").rename(store / "cached-1.0.dist-info")
    (image.site / "cached-1.0.dist-info").symlink_to("/cache/cached-1.0.dist-info")
    distributions, oddities, _ = image.read()
    assert distributions["cached"].version == "1.0"
    assert oddities == []


def test_of_two_in_one_folder_the_last_installed_counts(image):
    old = image.install("ray", "2.40.0")
    new = image.install("ray", "2.9.3")
    os.utime(old, (1_000_000, 1_000_000))
    os.utime(new, (2_000_000, 2_000_000))
    distributions, oddities, facts = image.read()
    assert distributions["ray"].version == "2.9.3"
    assert oddities == [("duplicate", "ray")]
    assert "2.40.0" in facts["distributions.oddities"].value[0].detail


def test_the_first_folder_of_the_search_path_wins(image):
    image.install("numpy", "1.26.4")
    front = image.root / "front"
    image.put("numpy-2.2.0.dist-info", {"METADATA": "Name: numpy\nVersion: 2.2.0\n\n"}, front)
    distributions, oddities, _ = image.read(environment={"PYTHONPATH": "/front"})
    assert (distributions["numpy"].version, distributions["numpy"].location) == ("2.2.0", "/front")
    assert oddities == [("hidden", "numpy")]
    assert image.read(environment={})[0]["numpy"].version == "1.26.4"


def test_eggs_of_all_kinds(image):
    image.put(
        "folder-1.0-py3.11.egg-info",
        {
            "PKG-INFO": "Name: folder\nVersion: 1.0\n\n",
            "requires.txt": "a>=1\n\n[x:python_version<'3.9']\nb\n\n[:sys_platform=='win32']\nc\n",
        },
    )
    (image.site / "plain-2.0.egg-info").write_text("Name: plain\nVersion: 2.0\n\n")
    source = image.root / "src" / "tree"
    image.put("dev.egg-info", {"PKG-INFO": "Name: dev\nVersion: 3.0.dev0\n\n"}, source)
    (image.site / "dev.egg-link").write_text("/src/tree\n../")
    (image.site / "lost.egg-link").write_text("/src/none\n")
    image.put("old-4.0-py3.11.egg/EGG-INFO", {"PKG-INFO": "Name: old\nVersion: 4.0\n\n"})
    (image.site / "easy-install.pth").write_text("./old-4.0-py3.11.egg\n/src/tree\n")
    distributions, oddities, _ = image.read()
    assert {name: entry.version for name, entry in distributions.items()} == {
        "folder": "1.0",
        "plain": "2.0",
        "dev": "3.0.dev0",
        "old": "4.0",
    }
    assert distributions["folder"].requires == (
        "a>=1",
        "b ; (python_version<'3.9') and extra == \"x\"",
        "c ; (sys_platform=='win32')",
    )
    assert distributions["dev"].editable
    assert oddities == [("dangling-link", "lost")]


def test_editable_installs_and_addresses_without_credentials(image):
    image.install(
        "mine",
        "0.1",
        direct_url_json=json.dumps({"url": "file:///src/mine", "dir_info": {"editable": True}}),
    )
    image.install(
        "theirs",
        "0.2",
        direct_url_json=json.dumps(
            {
                "url": "https://user:secret@host/a/b.git?token=secret#egg=x",
                "vcs_info": {"vcs": "git", "commit_id": "abc"},
            }
        ),
    )
    image.install("hook", "0.3")
    image.put("", {"__editable___hook_0_3_finder.py": "", "__editable__.hook-0.3.pth": "import x"})
    image.install("odd", "0.4", direct_url_json="[" * 5000)
    distributions, _, _ = image.read()
    assert (distributions["mine"].editable, distributions["mine"].direct_url) == (
        True,
        "file:///src/mine",
    )
    assert distributions["theirs"].direct_url == "git+https://host/a/b.git@abc"
    assert distributions["hook"].editable
    assert not distributions["odd"].editable


def test_conda_records_add_builds_and_what_is_not_python(image):
    # Hand-made after conda's naming rule <name>-<version>-<build>.json; no client was at hand.
    image.put("", {}, image.root / "usr/local/conda-meta")
    for name in (
        "pytorch-2.4.0-py3.11_cuda12.4_cudnn9.1.0_0",
        "cuda-nvcc-12.4.131-0",
        "numpy-1.26.4-py311h08b1b3b_0",
        "history",
    ):
        (image.root / "usr/local/conda-meta" / (name + ".json")).write_text("{}")
    image.install("torch", "2.4.0", INSTALLER="conda")
    image.install("numpy", "2.0.0", INSTALLER="pip")
    distributions, oddities, _ = image.read()
    assert (distributions["torch"].build, distributions["torch"].installer) == (
        "py3.11_cuda12.4_cudnn9.1.0_0",
        "conda",
    )
    assert (distributions["cuda-nvcc"].version, distributions["cuda-nvcc"].requires) == (
        "12.4.131",
        None,
    )
    assert (distributions["numpy"].version, distributions["numpy"].build) == (
        "2.0.0",
        "",
    )  # pip's copy lies over conda's
    assert oddities == []


def test_wheels_that_write_the_same_files(image):
    for suffix, version in (("cu12", "2.27.3"), ("cu13", "2.28.9")):
        image.install(
            f"nvidia-nccl-{suffix}",
            version,
            RECORD=f"nvidia/nccl/lib/libnccl.so.2,sha256=x,10\nnvidia_nccl_{suffix}.dist-info/RECORD,,\n",
        )
    image.install("nvidia-cublas-cu12", "12.8.4.1", RECORD="nvidia/cublas/lib/libcublas.so.12,,\n")
    image.install("nvidia-cublas", "13.0.0.19", RECORD="nvidia/cu13/lib/libcublas.so.13,,\n")
    assert image.read()[1] == [("overlapping-files", "nvidia-nccl-cu13")]


def test_damage_is_looked_for_on_request(image):
    rows = (
        "torch/lib/libtorch_cpu.so,sha256=x,1000",
        "torch/gone.so,,7",
        '"torch/a,b.py",,4',
        "torch/edited.py,,3",
        "torch/x.pyc,,9",
    )
    record = "\n".join((*rows, "torch-2.6.0.dist-info/RECORD,,"))
    image.install("torch", "2.6.0", RECORD=record)
    image.put(
        "torch", {"lib/libtorch_cpu.so": b"x" * 400, "a,b.py": b"1234", "edited.py": b"12345"}
    )
    assert image.read()[1] == []
    _, oddities, facts = image.read(deep=True)
    assert oddities == [("missing-files", "torch"), ("altered-files", "torch")]
    missing, altered = facts["distributions.oddities"].value
    assert missing.detail == "1 of 4 files: torch/gone.so"
    assert altered.detail == "2 of 4 files: torch/lib/libtorch_cpu.so, torch/edited.py"
    assert missing.libraries
    assert altered.libraries


def test_a_folder_that_cannot_be_read_makes_the_list_incomplete(image, monkeypatch):
    image.install("torch", "2.6.0")
    interpreter = interpreter_of(Machine(str(image.root)))
    monkeypatch.setattr(
        probe,
        "interpreter_of",
        lambda machine: interpreter._replace(search_path=(*interpreter.search_path, "/locked")),
    )
    assert image.read()[2]["distributions.complete"].value is False


def test_without_an_interpreter_nothing_is_claimed(tmp_path):
    assert all(
        isinstance(fact, Unknown)
        for fact in probe.probe_distributions(Machine(str(tmp_path))).values()
    )


def test_a_flood_of_oddities_is_bounded(image):
    for number in range(300):
        image.put(f"~{number}-1.0.dist-info", {})
    assert len(image.read()[1]) == 50


# Oracles


def test_as_importlib_metadata_says():
    """Every distribution of this environment: name, version, requirements and required Python."""
    distributions = probe.probe_distributions(Machine())["distributions"].value
    path = list(interpreter_of(Machine()).search_path)
    expected = {}
    for entry in importlib.metadata.distributions(path=path):
        name = entry.metadata["Name"]
        if name:
            expected.setdefault(canonicalize_name(name), entry)
    assert set(distributions) == set(expected)
    for name, entry in expected.items():
        assert distributions[name].version == entry.version, name
        assert distributions[name].requires_python == entry.metadata["Requires-Python"], name
        assert [line.replace(" ", "") for line in distributions[name].requires or ()] == [
            line.replace(" ", "") for line in entry.requires or ()
        ], name


def test_a_real_environment_installed_by_pip(tmp_path, environment_with_pip):
    environment = tmp_path / "env"
    environment_with_pip(environment)
    wheel = make_wheel(tmp_path, "alpha", "1.0")
    output(
        environment / "bin" / "python",
        *("-m", "pip", "install", "--quiet", "--no-index", wheel),
        environment=plain_environment(),
    )
    distributions = probe.probe_distributions(
        Machine(python=str(environment), environment=plain_environment())
    )
    document = json.loads(
        output(
            environment / "bin" / "python",
            "-m",
            "pip",
            "list",
            "--format",
            "json",
            "--disable-pip-version-check",
            environment=plain_environment(),
        )
    )
    versions = {name: entry.version for name, entry in distributions["distributions"].value.items()}
    assert versions["alpha"] == "1.0"
    assert versions == {canonicalize_name(entry["name"]): entry["version"] for entry in document}
    assert distributions["distributions.oddities"].value == ()


#: 30 ms where the files of 340 distributions are read, with nothing done to them, in 12.5.
_OVER_READING = 2.4


def test_340_distributions_take_little_time(tmp_path):
    """Measured against reading the same files with nothing done to them, so that a slow machine or
    disk does not count.
    """
    environment = tmp_path / "env"
    output(
        sys.executable, "-m", "venv", "--without-pip", environment, environment=plain_environment()
    )
    site = next((environment / "lib").glob("python3.*")) / "site-packages"
    lines = "".join(
        f"Requires-Dist: package-{number}>=1.0,<2; extra == 'all'\n" for number in range(20)
    )
    for number in range(340):
        folder = site / f"package_{number}-1.{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: package-{number}\nVersion: 1.{number}\n{lines}\n"
            + "text\n" * 800
        )
        (folder / "INSTALLER").write_text("pip\n")
        (folder / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    machines = [Machine(python=str(environment), environment=plain_environment()) for _ in range(7)]
    for machine in machines:
        interpreter_of(machine)

    def probe_one():
        distributions = probe.probe_distributions(machines.pop())
        assert len(distributions["distributions"].value) == 340

    def read_files():
        for folder in os.listdir(site):
            for name in ("METADATA", "INSTALLER", "WHEEL"):
                with open(os.path.join(site, folder, name), "rb") as file:
                    file.read()

    plain = least_seconds(read_files)
    bound = plain * _OVER_READING
    best = least_seconds(probe_one, bound, tries=len(machines))
    assert best < bound, f"{best * 1000:.1f} ms of processor time, {plain * 1000:.1f} to read"


# Parsers


@given(st.binary(max_size=800))
def test_any_metadata_is_read(content):
    metadata = probe.parse_metadata(content)
    assert "\n" not in metadata.name + metadata.version


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "Name: a",
                "Version: 1",
                "Requires-Dist: b",
                " folded",
                "\tfolded",
                "",
                "\r",
                "Name:",
                ": x",
                "Requires-Dist:\n  c",
            ]
        ),
        max_size=12,
    )
)
def test_metadata_of_known_lines(lines):
    import email

    text = "\n".join(lines) + "\n\nbody"
    metadata = probe.parse_metadata(text.encode())
    if (
        "\r" not in lines
        and "" not in lines
        and not any(line[:1] in (" ", "\t", ":") for line in lines[:1])
        and ": x" not in lines
    ):
        message = email.message_from_string(text)
        assert metadata.name == " ".join(
            (message["Name"] or "").split()
        )  # the module keeps the fold
        assert len(metadata.requires) == len(message.get_all("Requires-Dist", []))


@given(st.binary(max_size=600))
def test_any_record_is_read(content):
    for path, size in probe.parse_record(content):
        assert path
        assert size is None or size >= 0


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1),
            st.integers(0, 10**9),
        ),
        max_size=8,
    )
)
def test_records_as_csv_writes_them(rows):
    import csv
    import io

    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(
        [path, "sha256=abc", size] for path, size in rows
    )
    assert list(probe.parse_record(file.getvalue().encode())) == rows


@given(st.binary(max_size=400))
def test_any_other_file_is_read(content):
    url, editable = probe.parse_direct_url(content)
    assert isinstance(url, str)
    assert isinstance(editable, bool)
    probe.parse_requires_txt(content)


@given(st.text(max_size=60))
def test_any_name_is_split(text):
    name, version = probe.split_name(text)
    assert name in text
    assert version is None or version in text
    found = probe.parse_conda_name(text)
    assert found is None or all(found)


def test_an_unfinished_change_of_our_own_is_read(tmp_path):
    """``fix --apply`` leaves its state where it was killed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    folder = tmp_path / "venv" / environment_snapshot.FOLDER

    def kinds():
        found = sources.probe(python=str(tmp_path / "venv")).value("distributions.oddities", ())
        return [oddity.kind for oddity in found]

    assert "unfinished-change" not in kinds()
    environment_snapshot.take_snapshot(str(tmp_path / "venv"), (), {})
    assert (folder / "state.json").is_file()
    assert "unfinished-change" in kinds()
    environment_snapshot.discard_snapshot(str(tmp_path / "venv"))
    assert "unfinished-change" not in kinds()
