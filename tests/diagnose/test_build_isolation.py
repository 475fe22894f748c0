"""Whether a build that misses a module is isolated, by its traceback and by the command."""

from __future__ import annotations

import pytest

ISOLATED = "is not in the environment of its own in which pip builds"
BESIDE = "this build is not isolated"
HOOK = (
    '        File "/opt/env/lib/python3.11/site-packages/pip/_vendor/pyproject_hooks/_in_process/'
    '_in_process.py", line 353, in <module>\n          main()\n'
)
#: What builds, by where it was installed.
OVERLAY = "/tmp/pip-build-env-k3x9/overlay/lib/python3.11/site-packages"
OWN = "/opt/env/lib/python3.11/site-packages"


def step(*places, module="wheelwright", kind="Getting requirements to build wheel"):
    """Return what pip prints of a step whose hook goes through these places."""
    lines = "".join(
        f'        File "{place}", line 31{number}, in run_setup\n          exec(code)\n'
        for number, place in enumerate(places)
    )
    return (
        f"  {kind}: finished with status 'error'\n  error: subprocess-exited-with-error\n\n"
        f"  × {kind} did not run successfully.\n  │ exit code: 1\n  ╰─> [18 lines of output]\n"
        f"      Traceback (most recent call last):\n{HOOK}{lines}"
        '        File "<string>", line 8, in <module>\n'
        f"      ModuleNotFoundError: No module named '{module}'\n      [end of output]\n\n"
        "  note: This error originates from a subprocess, and is likely not a problem with pip.\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (step(f"{OVERLAY}/setuptools/build_meta.py"), ISOLATED),
        (step(f"{OVERLAY}/hatchling/build.py"), ISOLATED),
        (step(f"{OWN}/setuptools/build_meta.py"), BESIDE),
        (step(f"{OWN}/mesonpy/__init__.py", kind="Preparing metadata (pyproject.toml)"), BESIDE),
        (step("/usr/lib/python3/dist-packages/pep517/in_process/_in_process.py"), ISOLATED),
        # Nothing but pip's own place: what it was called with tells.
        (step(), ISOLATED),
        ("$ pip install --no-build-isolation ./kernels\n" + step(), BESIDE),
        ("+ uv pip install -e . --no-build-isolation\n" + step(), BESIDE),
        ("$ UV_NO_BUILD_ISOLATION=1 uv pip install ./kernels\n" + step(), BESIDE),
        ("$ pip install --no-build-isolation a\n$ pip install ./kernels\n" + step(), ISOLATED),
    ],
)
def test_a_build_is_isolated_or_not(said, text, words):
    finding = said(text).traces[0].finding
    assert words in finding.message
    is_remedied = "build without isolation" in finding.remedies[0].text
    assert is_remedied is (words == ISOLATED)


def test_what_a_build_beside_the_installed_lacks_is_installed_there(said):
    text = step(f"{OWN}/setuptools/build_meta.py", module="packaging")
    remedy = said(text).traces[0].finding.remedies[0]
    assert "[build-system]" in remedy.text
    assert [call.packages for call in remedy.commands] == [("packaging",)]


def test_what_misses_a_module_behind_the_output_of_a_build_is_no_build(said):
    text = step(f"{OVERLAY}/setuptools/build_meta.py") + (
        "Traceback (most recent call last):\n"
        '  File "serve.py", line 1, in <module>\n    import deepspeed\n'
        "ModuleNotFoundError: No module named 'deepspeed'\n"
    )
    findings = [trace.finding for trace in said(text).traces]
    (last,) = [finding for finding in findings if finding.component == "deepspeed"]
    assert ISOLATED not in last.message
    assert all("isolation" not in remedy.text for remedy in last.remedies)


def test_what_was_to_be_built_is_missing_since_pip_ended(said):
    text = step(f"{OWN}/setuptools/build_meta.py", kind="Preparing metadata (pyproject.toml)") + (
        "error: metadata-generation-failed\n\n"
        "× Encountered error while generating package metadata.\n╰─> See above for output.\n\n"
        "note: This is an issue with the package mentioned above, not pip.\n"
        "Traceback (most recent call last):\n"
        '  File "serve.py", line 1, in <module>\n    import deepspeed\n'
        "ModuleNotFoundError: No module named 'deepspeed'\n"
    )
    traces = said(text).traces
    roots = [trace for trace in traces if trace.finding.caused_by is None]
    assert [trace.finding.component for trace in roots] == ["wheelwright"]
    assert "likely deepspeed is missing for it" in roots[0].meaning
    assert "The package is" not in roots[0].finding.message


@pytest.mark.parametrize(
    ("stands", "name"),
    [
        ("thin-part", "thin-part"),
        ("thin_part[fast,extra]", "thin_part"),
        ("See above for output.", ""),
        ("from git+https://example.org/thin/part.git", ""),
        ("Everything of it stands above", ""),
    ],
)
def test_the_name_of_the_package_is_a_name_alone(said, stands, name):
    text = step(kind="Preparing metadata (pyproject.toml)") + (
        "error: metadata-generation-failed\n\n"
        f"× Encountered error while generating package metadata.\n╰─> {stands}\n\n"
        "note: This is an issue with the package mentioned above, not pip.\n"
        "hint: See above for details.\n"
    )
    message = said(text).traces[0].finding.message
    assert (f"The package is {name}." in message) is bool(name)
    assert ("The package is" in message) is bool(name)
