"""Why an exception was raised, as far as the sources of packages say it."""

import json

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

HEADS = "Total heads ({self.heads}) must be divisible by the number of shards ({size})."
GPU = "The format {name} needs a newer graphics card than that of this machine"
SHORT = "Unknown kind of cache {kind}"
BOTH = "The two settings exclude each other, use one of them alone"
MESSAGES = {
    "divisible": [
        [
            HEADS,
            "1-2",
            [["ValueError", 0, "Config.verify", 7, ["self.heads % size != 0"], "", 0]],
            0,
        ]
    ],
    "graphics": [
        [
            GPU,
            "0-3",
            [["RuntimeError", 0, "check", 9, ["get_device_capability() < (8, 9)"], "", 0]],
            0,
        ]
    ],
    "cache": [[SHORT, "0-3", [["ValueError", 0, "Config.cache", 3, ["kind != 'a'"], "", 0]], 0]],
    "exclude": [
        [
            BOTH,
            "0-3",
            [
                ["ValueError", 0, "Config.verify", 5, ["a and b"], "", 0],
                ["ValueError", 0, "Config.start", 6, ["c and d"], "", 0],
            ],
            0,
        ]
    ],
}


def document(name):
    return {
        "schema": 1,
        "name": name,
        "date": "2026-11-26",
        "versions": ["0.9.0", "1.0.0", "1.2.0", "2.0.0"],
        "modules": [f"{name}.config"],
        "messages": MESSAGES,
    }


def log(message, kind="ValueError", package="maker", function="verify", file="config.py"):
    frame = f'  File "/env/site-packages/{package}/{file}", line 9, in {function}\n'
    return (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 3, in <module>\n    main()\n'
        f"{frame if package else ''}{'    raise Broken' if package else ''}\n{kind}: {message}\n"
    )


@pytest.fixture
def meaning(tmp_path, monkeypatch):
    """What is said of why the run failed, with the packages maker and, if asked, its copy."""
    from envdoctor.matrix import loader

    matrix = load_matrix()
    held = {f"messages/{name}": document(name) for name in ("maker", "copy")}
    index = {"packages": {name: " ".join(MESSAGES) for name in ("maker", "copy")}}

    def run(text, *assume, packages=("maker",)):
        class Files:
            def __getattr__(self, name):
                return getattr(files, name)

            def measured(self, name):
                if name == "messages":
                    kept = {name: index["packages"][name] for name in packages}
                    return {"schema": 1, "packages": kept}
                return json.loads(json.dumps(held.get(name))) or files.measured(name)

        files = matrix._files
        fresh = loader.Matrix(matrix._core, Files())
        path = tmp_path / "run.log"
        path.write_text(text, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        return diagnose([str(path)], facts, fresh).traces[0].meaning

    return run


DIVIDED = "Total heads (40) must be divisible by the number of shards (3)."


def test_it_says_where_and_under_which_condition_with_the_values(meaning):
    said = meaning(log(DIVIDED))
    assert "maker raises this in Config.verify (maker/config.py)" in said
    assert "where heads (40 here) is not a multiple of size (3 here)." in said


def test_it_says_between_which_releases_it_came_and_went(meaning):
    said = meaning(log(DIVIDED), "maker==1.2.0")
    assert "maker 1.0.0 to 1.2.0" in said
    assert "0.9.0" in said
    assert "2.0.0" in said
    assert "another" not in said


def test_an_installed_release_without_it_is_said(meaning):
    assert "2.0.0, which is installed, has not" in meaning(log(DIVIDED), "maker==2.0.0")


def test_what_the_condition_asks_of_the_gpu_is_joined_with_the_facts(meaning):
    text = log(GPU.replace("{name}", "fp8"), "RuntimeError", function="check")
    assert "Here the GPU is of compute capability 8.0." in meaning(text, "gpu=A100")


def test_a_short_text_counts_at_its_own_place_alone(meaning):
    text = "Unknown kind of cache b"
    assert "where kind (b here) is not 'a'" in meaning(log(text, function="cache"))
    assert meaning(log(text, function="other")) == ""
    assert meaning(f"ValueError: {text}\n") == ""


def test_a_long_text_is_known_without_a_traceback(meaning):
    said = meaning(f"ValueError: {DIVIDED}\n")
    assert "not a multiple of" in said
    assert said.startswith("No traceback says who raised it, but maker has this text: ")


def test_a_text_that_python_may_have_raised_needs_a_traceback(meaning):
    kinds = MESSAGES["divisible"][0][2][0]
    kinds[0] = "TypeError"
    try:
        assert meaning(f"TypeError: {DIVIDED}\n") == ""
        assert "not a multiple of" in meaning(log(DIVIDED, "TypeError"))
    finally:
        kinds[0] = "ValueError"


def test_another_exception_of_the_same_text_is_not_it(meaning):
    assert meaning(log(DIVIDED, "RuntimeError")) == ""


def test_what_another_package_raised_is_not_it(meaning):
    assert meaning(log(DIVIDED, package="other_thing")) == ""


def test_what_the_script_itself_raised_is_not_it(meaning):
    assert meaning(log(DIVIDED, package="")) == ""


def test_of_two_packages_with_the_same_text_the_traceback_or_the_installed_decides(meaning):
    alone = f"ValueError: {DIVIDED}\n"
    both = ("maker", "copy")
    assert meaning(alone, packages=both) == ""
    assert "copy raises this" in meaning(alone, "copy==1.0.0", packages=both)
    assert "copy raises this" in meaning(log(DIVIDED, package="copy"), packages=both)


def test_places_that_may_both_be_it_are_both_said(meaning):
    said = meaning(f"ValueError: {BOTH}\n")
    assert "where a is set and b is set, or in Config.start" in said
    assert "c is" not in meaning(log(BOTH))


def test_a_validator_raises_through_pydantic(meaning):
    text = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Config\n"
        f"  Value error, {DIVIDED} [type=value_error, input_value=ArgsKwargs((), {{}}), "
        "input_type=ArgsKwargs]\n    For further information visit https://errors.pydantic.dev\n"
    )
    assert "where heads (40 here) is not a multiple" in meaning(text)


def test_an_assertion_without_a_text_says_what_is_not_so(meaning):
    text = log("", "AssertionError").replace("raise Broken", "assert rows % world_size == 0")
    text = text.replace("AssertionError: \n", "AssertionError\n")
    assert "rows is not a multiple of world_size" in meaning(text)
