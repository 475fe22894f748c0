"""What ``scripts/refresh_matrix`` writes, from an index that behaves."""

import json
import subprocess
import time

import pytest

from envdoctor.matrix.entries import Faults
from envdoctor.matrix.package_schema import parse_package

from .conftest import Served, make_wheel, metadata_text, sdist, wheel

X86 = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def test_a_release_has_what_its_metadata_and_its_tags_say(index, refresh):
    requires = [
        'triton==3.2.0 ;  platform_system == "Linux" and platform_machine == "x86_64"',
        "numpy (>=1.2, <3)",
        "left-out>=1",
        "torch[x, y] >=2 ; extra == 'all'",
    ]
    for python in ("cp39", "cp310"):
        index.add(
            "torch",
            wheel(
                "torch",
                "2.6.0",
                requires,
                tags=f"{python}-{python}-manylinux_2_17_x86_64.{X86}",
                served={"yanked": None},
            ),
        )
    index.add(
        "torch",
        wheel("torch", "2.6.0", requires, tags="cp313-cp313t-manylinux_2_28_aarch64"),
        sdist("torch", "2.6.0"),
    )
    done = refresh()
    assert done.code == 0, done.err
    assert refresh.release("torch", "2.6.0") == {
        "version": "2.6.0",
        "released": "2025-03-01",
        "requires_python": ">=3.9",
        "requires": [
            'triton==3.2.0; platform_system == "Linux" and platform_machine == "x86_64"',
            "numpy>=1.2,<3",
            "torch[x,y]>=2; extra == 'all'",
        ],
        "pythons": ["cp39", "cp310", "cp313t"],
        "platforms": ["manylinux_2_17_x86_64.manylinux_2_28_x86_64", "manylinux_2_28_aarch64"],
        "glibc": "2.17",
        "sdist": True,
    }
    assert refresh.listing() == {
        "schema": 1,
        "source": "project pages of the default index",
        "date": "2026-11-21",
        "packages": {"torch": {"releases": ["2.6.0"]}},
    }


def test_what_it_writes_loads(index, refresh):
    index.add(
        "torch",
        wheel("torch", "2.6.0", ["triton==3.2.0"], tags=f"cp39-cp39-{X86}"),
        wheel("torch", "2.6.0", [], tags=f"cp39-cp39-{ARM}"),
    )
    index.add(
        "triton",
        sdist("triton", "3.2.0", egg_info="numpy\n"),
        wheel("triton", "3.1", served={"yanked": "wrong"}),
    )
    assert refresh().code == 0
    for name in ("torch", "triton"):
        faults = Faults()
        assert parse_package(refresh.document(name), name, name, faults) is not None, faults.found


def test_the_second_run_changes_nothing_and_reads_no_file_again(index, refresh):
    index.add("torch", *(wheel("torch", f"2.{minor}.0", ["numpy"]) for minor in range(5)))
    index.add("numpy", wheel("numpy", "1.26.0"))
    assert refresh().code == 0
    before = refresh.bytes()
    index.asked.clear()
    again = refresh("--date", "2027-01-01")
    assert (again.code, again.out, refresh.bytes()) == (0, "", before)
    assert {path for path, _ in index.asked} == {"/simple/numpy/", "/simple/torch/"}


def test_a_run_without_cache_gives_the_same(index, refresh):
    index.add(
        "torch",
        *(wheel("torch", f"2.{minor}.0", ["numpy"], tags=f"cp39-cp39-{X86}") for minor in range(5)),
    )
    assert refresh().code == 0
    before = refresh.bytes()
    for path in sorted(refresh.output.rglob("*.json")):
        path.unlink()
    assert refresh("--cache-dir", str(refresh.folder / "other"), "--jobs", "1").code == 0
    assert refresh.bytes() == before


def test_a_large_wheel_is_not_downloaded(index, refresh):
    big = wheel(
        "torch",
        "2.6.0",
        ["numpy"],
        tags=f"cp39-cp39-{X86}",
        padding=3 << 20,
        members=[(f"torch/{number:05}.py", b"") for number in range(2000)],
    )
    index.add("torch", big)
    assert refresh().code == 0
    assert refresh.release("torch", "2.6.0")["requires"] == ["numpy"]
    files = [wanted for path, wanted in index.asked if path.startswith("/files/")]
    assert None not in files
    assert len(files) <= 3


def test_metadata_that_differs_between_the_wheels_of_a_release(index, refresh):
    for python in ("cp39", "cp310", "cp311"):
        index.add(
            "torch",
            wheel("torch", "2.6.0", ["triton==3.2.0", "numpy"], tags=f"{python}-{python}-{X86}"),
        )
        index.add("torch", wheel("torch", "2.6.0", ["numpy"], tags=f"{python}-{python}-{ARM}"))
    index.add(
        "torch",
        wheel(
            "torch", "2.6.0", ["triton==3.1.0", "numpy"], tags=f"cp312-cp312-{X86}", python=">=3.12"
        ),
    )
    assert refresh().code == 0
    release = refresh.release("torch", "2.6.0")
    assert release["requires"] == ["triton==3.2.0", "numpy"]
    assert release["differs"] == [
        {"pythons": ["cp39", "cp310", "cp311"], "platforms": [ARM], "requires": ["numpy"]},
        {
            "pythons": ["cp312"],
            "platforms": [X86],
            "requires_python": ">=3.12",
            "requires": ["triton==3.1.0", "numpy"],
        },
    ]


def test_order_and_spelling_are_no_difference(index, refresh):
    lines = ["Flash_Attn==2.0", 'torch>=2; extra == "all"', "numpy"]
    for python, requires in (
        ("cp39", ["numpy", "flash-attn (==2.0)", "torch>=2; extra == 'all'"]),
        ("cp310", lines),
    ):
        index.add("vllm", wheel("vllm", "1.0", requires, tags=f"{python}-{python}-{X86}"))
    assert refresh(also=("flash-attn", "numpy", "torch")).code == 0
    assert refresh.release("vllm", "1.0")["requires"] == lines
    assert "differs" not in refresh.release("vllm", "1.0")


def test_a_line_that_no_installer_understands_is_left_out(index, refresh):
    index.add("vllm", wheel("vllm", "1.0", ["numpy (>=1.0<4.0)", "torch>=2; nonsense", "torch<3"]))
    assert refresh().code == 0
    assert refresh.release("vllm", "1.0")["requires"] == ["torch<3"]


def test_of_two_builds_the_newer_counts(index, refresh):
    for tags, requires in (
        ("cp39-abi3", ["numpy"]),
        ("9-cp39-abi3", ["numpy<3"]),
        ("10a-cp39-abi3", ["numpy<2"]),
    ):
        index.add("vllm", wheel("vllm", "1.0", requires, tags=f"{tags}-{X86}"))
    assert refresh().code == 0
    assert refresh.release("vllm", "1.0")["requires"] == ["numpy<2"]
    assert "differs" not in refresh.release("vllm", "1.0")


def test_wheels_for_other_systems_count_where_there_is_nothing_else(index, refresh):
    index.add(
        "torch",
        wheel("torch", "1.0", ["numpy"], tags="cp39-cp39-win_amd64"),
        wheel("torch", "2.0", ["triton"], tags="cp39-cp39-win_amd64"),
    )
    index.add("torch", wheel("torch", "2.0", ["numpy"], tags=f"cp39-cp39-{X86}"))
    assert refresh().code == 0
    assert refresh.release("torch", "1.0") == {
        "version": "1.0",
        "released": "2025-03-01",
        "requires_python": ">=3.9",
        "requires": ["numpy"],
        "platforms": ["win_amd64"],
    }
    assert refresh.release("torch", "2.0")["requires"] == ["numpy"]
    assert "differs" not in refresh.release("torch", "2.0")


def test_a_requirement_that_installers_refuse_is_named(index, refresh):
    legacy = "left-out (>=5.1.*)"
    index.add("torch", wheel("torch", "1.0", ["numpy", legacy]), wheel("torch", "1.1", ["numpy"]))
    assert refresh().code == 0
    assert refresh.release("torch", "1.0")["requires"] == ["numpy"]
    assert refresh.release("torch", "1.0")["malformed"] == legacy
    assert "malformed" not in refresh.release("torch", "1.1")


def test_yanked_releases_and_yanked_files(index, refresh):
    reason = 'broken <b>"build"</b> & more'
    index.add(
        "torch",
        wheel("torch", "1.0", ["numpy"], served={"yanked": reason}),
        wheel("torch", "1.1", served={"yanked": ""}),
    )
    index.add(
        "torch",
        wheel("torch", "1.2", ["numpy"], tags=f"cp39-cp39-{X86}"),
        wheel("torch", "1.2", [], tags=f"cp310-cp310-{X86}", served={"yanked": "x"}),
    )
    for as_json in (False, True):
        index.as_json = as_json
        assert refresh().code == 0
        assert [
            refresh.release("torch", "1.0")[key] for key in ("yanked", "yanked_reason", "requires")
        ] == [True, reason, ["numpy"]]
        assert refresh.release("torch", "1.1")["yanked"] is True
        assert "yanked_reason" not in refresh.release("torch", "1.1")
        assert "yanked" not in refresh.release("torch", "1.2")
        assert refresh.release("torch", "1.2")["pythons"] == ["cp39"]
        assert refresh.listing()["packages"]["torch"]["yanked"] == ["1.0", "1.1"]


def test_pre_releases_only_where_people_install_them(index, refresh):
    index.add(
        "torch", *(wheel("torch", version) for version in ("2.0", "2.1rc1", "2.1.dev1", "2.2a0"))
    )
    index.add("triton", *(wheel("triton", version) for version in ("4.0b1", "4.0b2", "4.0.dev7")))
    index.add("numpy", wheel("numpy", "0.0.dev1"))
    index.add("flash-attn", wheel("flash-attn", "1.0", ["torch==2.1rc1", "triton<9"]))
    assert refresh().code == 0
    taken = {name: entry["releases"] for name, entry in refresh.listing()["packages"].items()}
    assert taken == {
        "flash-attn": ["1.0"],
        "numpy": ["0.0.dev1"],
        "torch": ["2.0", "2.1rc1"],
        "triton": ["4.0b1", "4.0b2"],
    }
    assert refresh.listing()["packages"]["torch"]["left_out"] == 2
    assert refresh.listing()["packages"]["triton"]["left_out"] == 1
    # The pin stands in a file that this run does not read: the result is the same.
    before = refresh.bytes()
    assert refresh("--only", "torch").code == 0
    assert refresh.bytes() == before


def test_a_pinned_pre_release_pins_others(index, refresh):
    index.add("flash-attn", wheel("flash-attn", "1.0", ["torch==2.0rc1"]))
    index.add("torch", wheel("torch", "1.0"), wheel("torch", "2.0rc1", ["triton==2.0.dev3"]))
    index.add("triton", wheel("triton", "1.0"), wheel("triton", "2.0.dev3", ["numpy==2.0a1"]))
    index.add("numpy", wheel("numpy", "1.0"), wheel("numpy", "2.0a1"), wheel("numpy", "2.0a2"))
    assert refresh().code == 0
    assert [len(entry["releases"]) for entry in refresh.listing()["packages"].values()] == [
        1,
        2,
        2,
        2,
    ]
    assert refresh("--check").code == 0


def test_pre_releases_that_the_list_names_or_that_are_there_already(index, refresh):
    index.add("torch", *(wheel("torch", version) for version in ("0.0.1", "4.0b1", "4.0b2.dev1")))
    index.add(
        "numpy",
        wheel("numpy", "1.0"),
        wheel("numpy", "2.0rc1", ["torch"]),
        wheel("numpy", "2.0rc2"),
    )
    (refresh.output / "packages").mkdir(parents=True)
    head = {"schema": 1, "name": "numpy", "source": "x", "date": "2020-02-02", "trust": "reported"}
    text = json.dumps({**head, "releases": [{"version": "2.0rc1", "released": "2025-03-01"}]})
    (refresh.output / "packages" / "numpy.json").write_text(text)
    assert refresh(families='prereleases = ["torch"]\n').code == 0
    taken = {name: entry["releases"] for name, entry in refresh.listing()["packages"].items()}
    assert taken == {"numpy": ["1.0", "2.0rc1"], "torch": ["0.0.1", "4.0b1"]}
    assert refresh.release("numpy", "2.0rc1")["requires"] == ["torch"]


def test_source_archives_are_read_and_never_run(index, refresh):
    index.add(
        "flash-attn",
        sdist(
            "flash-attn",
            "1.0",
            egg_info='torch\n\n[all]\nnumpy>=1\n\n[:python_version < "3.9"]\ntriton\n',
        ),
    )
    index.add(
        "flash-attn", sdist("flash-attn", "2.0", ["torch", "einops"]), sdist("flash-attn", "0.1")
    )
    assert refresh().code == 0
    assert refresh.release("flash-attn", "1.0")["requires"] == [
        "torch",
        'numpy>=1; extra == "all"',
        'triton; python_version < "3.9"',
    ]
    assert refresh.release("flash-attn", "2.0") == {
        "version": "2.0",
        "released": "2025-03-01",
        "requires_python": ">=3.9",
        "requires": ["torch"],
        "sdist": True,
        "sdist_only": True,
    }
    # Metadata 2.1 without requirements and without requires.txt: nobody knows.
    assert "requires" not in refresh.release("flash-attn", "0.1")


def test_what_others_put_there_is_kept(index, refresh):
    index.add(
        "torch",
        wheel("torch", "2.6.0", ["numpy"]),
        wheel("torch", "2.7.0", ["numpy"]),
        sdist("torch", "2.8.0"),
    )
    builds = [{"variant": "cu124", "cuda": "12.4", "sass": ["8.0"], "source": "measured"}]
    (refresh.output / "packages").mkdir(parents=True)
    entries = [
        {"version": "1.0", "released": "2019-01-01", "builds": builds},
        {
            "version": "2.6",
            "released": "2020-01-01",
            "requires": ["triton"],
            "requires_python": ">=2",
            "checked_by": "x",
            "builds": builds,
        },
        {"version": "2.8.0", "released": "2025-03-01", "requires": ["numpy>=9"], "builds": builds},
    ]
    text = json.dumps(
        {
            "schema": 1,
            "name": "torch",
            "source": "theirs",
            "date": "2020-02-02",
            "trust": "reported",
            "releases": entries,
        }
    )
    (refresh.output / "packages" / "torch.json").write_text(text)
    done = refresh()
    assert done.code == 0
    assert "1 not on the index any more, kept (1.0)" in done.out
    document = refresh.document("torch")
    assert [document[key] for key in ("source", "trust", "date")] == [
        "theirs",
        "reported",
        "2026-11-21",
    ]
    assert [entry["version"] for entry in document["releases"]] == [
        "1.0",
        "2.6.0",
        "2.7.0",
        "2.8.0",
    ]
    assert document["releases"][0] == entries[0]
    assert document["releases"][1] == {
        "version": "2.6.0",
        "released": "2025-03-01",
        "requires_python": ">=3.9",
        "requires": ["numpy"],
        "pythons": ["py3"],
        "platforms": ["any"],
        "checked_by": "x",
        "builds": builds,
    }
    # The archive says nothing of requirements: what somebody knew stays.
    assert document["releases"][3]["requires"] == ["numpy>=9"]
    before = refresh.bytes()
    assert refresh("--date", "2027-01-01").code == 0
    assert refresh.bytes() == before


def test_builds_that_are_scanned_meanwhile_are_kept(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", ["numpy"]))
    assert refresh().code == 0
    index.add("torch", wheel("torch", "2.7.0", ["numpy"]))
    index.asked.clear()
    index.delay = 0.3
    process = subprocess.Popen(
        refresh.command(), env=refresh.environment(), stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not index.asked and time.monotonic() < deadline:
        time.sleep(0.01)
    document = refresh.document("torch")
    document["releases"][0]["builds"] = [{"cuda": "12.4", "source": "scanned"}]
    (refresh.output / "packages" / "torch.json").write_text(json.dumps(document))
    assert process.wait(30) == 0
    assert refresh.release("torch", "2.6.0")["builds"] == [{"cuda": "12.4", "source": "scanned"}]
    assert refresh.release("torch", "2.7.0")["requires"] == ["numpy"]


def test_check_says_whether_there_is_news(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", ["numpy"]))
    assert refresh("--check").code == 1
    assert not refresh.output.exists() or refresh.bytes() == {}
    assert refresh().code == 0
    before = refresh.bytes()
    assert refresh("--check").code == 0
    index.add("torch", wheel("torch", "2.7.0", ["numpy"]))
    done = refresh("--check")
    assert (done.code, refresh.bytes()) == (1, before)
    assert "torch: 1 new (2.7.0)" in done.out


def test_offline_it_reads_the_cache_alone(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", ["numpy"]))
    assert refresh().code == 0
    before = refresh.bytes()
    index.asked.clear()
    assert refresh("--offline-cache").code == 0
    assert (index.asked, refresh.bytes()) == ([], before)
    index.add("numpy", wheel("numpy", "1.0"))
    done = refresh("--offline-cache")
    assert done.code == 1
    assert "numpy: its page is not in the cache" in done.err
    assert refresh.bytes() == before


def test_only_some_of_the_list(index, refresh):
    index.add("torch", wheel("torch", "2.6.0", ["numpy"]))
    index.add("numpy", wheel("numpy", "1.0"))
    assert refresh("--only", "numpy").code == 0
    assert sorted(refresh.bytes()) == ["index.json", "packages/numpy.json"]
    assert refresh("--only", "torch").code == 0
    assert sorted(refresh.listing()["packages"]) == ["numpy", "torch"]


def test_a_core_metadata_file_is_taken_where_the_index_offers_it(index, refresh):
    whole = make_wheel("torch", "2.6.0", ["numpy"])
    offered = metadata_text("torch", "2.6.0", ["numpy"]).encode()
    index.add("torch", Served("torch-2.6.0-py3-none-any.whl", whole, metadata=offered))
    assert refresh().code == 0
    assert refresh.release("torch", "2.6.0")["requires"] == ["numpy"]
    assert [path for path, _ in index.asked if path.startswith("/files/")] == [
        "/files/torch-2.6.0-py3-none-any.whl.metadata"
    ]


def test_names_that_a_pattern_has_and_the_list_has_not(index, refresh):
    for name in ("nvidia-cublas-cu12", "nvidia-cublas", "numpy"):
        index.add(name, wheel(name, "1.0"))
    families = '[[family]]\npattern = "nvidia-*"\nnames = ["nvidia-cublas"]\n'
    done = refresh("--discover", names=["numpy"], families=families)
    assert (done.code, done.out) == (0, "nvidia-cublas-cu12\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", "tourch"], "expected names of"),
        (["--jobs", "0"], "expected --jobs"),
        (["--date", "today"], "expected --date"),
        (["--index-url", "file:///etc"], "http or https"),
        (["--index-url", "http://user:secret@127.0.0.1:9/simple"], "no project could be read"),
    ],
)
def test_usage(index, refresh, options, expected):
    index.add("torch", wheel("torch", "2.6.0"))
    done = refresh(*options)
    assert done.code == 2
    assert expected in done.err
    assert "secret" not in done.err


def test_a_file_that_is_no_package_file_is_not_replaced(index, refresh):
    index.add("torch", wheel("torch", "2.6.0"))
    (refresh.output / "packages").mkdir(parents=True)
    path = refresh.output / "packages" / "torch.json"
    for text in ("{", '{"schema": 2}', '{"schema": 1, "name": "numpy", "releases": []}'):
        path.write_text(text)
        done = refresh()
        assert (done.code, path.read_text()) == (2, text)
        assert str(path) in done.err
        assert index.asked == []
