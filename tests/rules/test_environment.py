"""ED8xx: damaged and doubled distributions, hidden modules."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Oddity, ShadowedModule

from .conftest import HERE, Judge, by_code, codes, distribution, facts_of

SITE = "/venv/lib/python3.11/site-packages"


def with_oddities(facts: Facts, *oddities: Oddity) -> Facts:
    return facts.updated({"distributions.oddities": Known(oddities, HERE)})


@pytest.mark.parametrize(
    ("kind", "code", "severity"),
    [
        ("duplicate", "ED801", "warning"),
        ("leftover", "ED802", "advice"),
        ("no-metadata", "ED803", "warning"),
        ("unreadable-metadata", "ED803", "warning"),
        ("name-mismatch", "ED803", "advice"),
        ("dangling-link", "ED803", "warning"),
        ("not-a-directory", "ED803", "advice"),
        ("missing-files", "ED804", "warning"),
        ("altered-files", "ED804", "advice"),
    ],
)
def test_each_oddity_is_one_finding(judged: Judge, kind: str, code: str, severity: str) -> None:
    facts = with_oddities(
        facts_of(["ray 2.40.0"]), Oddity(kind, "ray", f"{SITE}/ray-2.40.0.dist-info", "a detail")
    )
    finding = by_code(judged(facts), code)
    assert (finding.component, finding.kind, finding.severity) == ("ray", "damaged", severity)
    assert finding.evidence[0].source.startswith(SITE)
    assert "a detail" in finding.message or code == "ED802"


def test_a_leftover_names_its_owner(judged: Judge) -> None:
    facts = with_oddities(
        facts_of(["torch 2.6.0"]), Oddity("leftover", "~orch", f"{SITE}/~orch-2.5.0.dist-info")
    )
    finding = by_code(judged(facts), "ED802")
    assert finding.component == "torch"
    assert finding.remedies[0].commands == (f"rm -r '{SITE}/~orch-2.5.0.dist-info'",)


def test_commands_survive_odd_paths(judged: Judge) -> None:
    facts = with_oddities(
        facts_of(["torch 2.6.0"]), Oddity("leftover", "~orch", "/a b/it's/~orch; rm x")
    )
    (command,) = by_code(judged(facts), "ED802").remedies[0].commands
    assert shlex.split(str(command)) == ["rm", "-r", "/a b/it's/~orch; rm x"]


def test_many_are_counted(judged: Judge) -> None:
    oddities = [Oddity("leftover", f"~a{number}", f"{SITE}/~a{number}") for number in range(30)]
    findings = [
        finding
        for finding in judged(with_oddities(facts_of(["torch 2.6.0"]), *oddities))
        if finding.code == "ED802"
    ]
    assert len(findings) == 8
    assert any("22 more" in finding.message for finding in findings)


def test_a_damaged_library_is_a_warning(judged: Judge) -> None:
    facts = with_oddities(
        facts_of(["torch 2.6.0"]),
        Oddity(
            "altered-files",
            "torch",
            f"{SITE}/torch.dist-info",
            "1 of 9 files: torch/lib/libtorch_cpu.so",
            libraries=True,
        ),
    )
    assert by_code(judged(facts), "ED804").severity == "warning"


def shadowed(
    *entries: str, directory: str = "/job", packages: Any = ("ray 2.40.0", "vllm 0.10.0")
) -> Facts:
    return facts_of(packages).updated(
        {
            "shadowed_modules": Known(
                tuple(ShadowedModule(*entry.split(": ")) for entry in entries), HERE
            ),
            "python.working_directory": Known(directory, Evidence("getcwd")),
        },
    )


def test_a_module_of_the_working_directory(judged: Judge) -> None:
    finding = by_code(judged(shadowed("ray: /job/ray.py")), "ED805")
    assert (finding.component, finding.kind, finding.severity) == ("ray", "shadowed", "warning")
    assert "/job/ray.py" in finding.message
    assert "ED805" not in codes(judged(shadowed()))


def test_a_checkout_of_envdoctor_itself_hides_nothing_that_is_judged(judged: Judge) -> None:
    packages = ("envdoctor 0.1.0", "ray 2.40.0")
    assert "ED805" not in codes(judged(shadowed("envdoctor: /job/envdoctor", packages=packages)))
    both = shadowed("envdoctor: /job/envdoctor", "ray: /job/ray", packages=packages)
    assert [entry.component for entry in judged(both) if entry.code == "ED805"] == ["ray"]


def test_a_file_named_as_the_standard_library(judged: Judge) -> None:
    finding = by_code(judged(shadowed("random: /job/random.py")), "ED805")
    assert "standard library" in finding.message


def test_a_working_directory_inside_a_package(judged: Judge) -> None:
    inside = f"{SITE}/vllm"
    finding = by_code(judged(shadowed(f"ray: {inside}/ray", directory=inside)), "ED805")
    assert (finding.component, finding.severity) == ("ray", "error")


@pytest.mark.parametrize(
    "directory", [f"{SITE}/vllm", "site-packages/vllm", "/usr/lib/python3/dist-packages/vllm/"]
)
def test_a_reported_working_directory_is_enough(judged: Judge, directory: str) -> None:
    facts = facts_of(["vllm 0.10.0"], complete=False).updated(
        {"python.working_directory": Known(directory, HERE)}
    )
    finding = by_code(judged(facts), "ED805")
    assert (finding.component, finding.kind) == ("ray", "shadowed")


@pytest.mark.parametrize("directory", [SITE, "/root", "/job/vllm", f"{SITE}/vllm/engine"])
def test_other_working_directories_say_nothing(judged: Judge, directory: str) -> None:
    facts = facts_of(["vllm 0.10.0"]).updated({"python.working_directory": Known(directory, HERE)})
    assert "ED805" not in codes(judged(facts))


def test_a_user_wide_copy(judged: Judge) -> None:
    user = "/root/.local/lib/python3.11/site-packages"
    hidden = Oddity(
        "hidden",
        "torch",
        f"{SITE}/torch-2.6.0.dist-info",
        f"2.6.0 in {SITE} is hidden by 2.5.0 in {user}",
    )
    facts = with_oddities(facts_of([distribution("torch 2.5.0", location=user)]), hidden)
    finding = by_code(judged(facts), "ED806")
    assert (finding.component, finding.kind, finding.severity) == ("torch", "shadowed", "warning")
    # A virtual environment over the system's packages hides on purpose.
    assert "ED806" not in codes(
        judged(with_oddities(facts_of([distribution("torch 2.5.0", location=SITE)]), hidden))
    )
    small = with_oddities(
        facts_of([distribution("six 1.0", location=user)]), hidden._replace(name="six")
    )
    assert "ED806" not in codes(judged(small))


def test_a_copy_in_pythonpath(judged: Judge) -> None:
    hidden = Oddity("hidden", "vllm", f"{SITE}/vllm-0.10.0.dist-info", "0.10.0 is hidden by 0.9.0")
    facts = with_oddities(
        facts_of(
            [distribution("vllm 0.9.0", location="/overlay")],
            variables={"PYTHONPATH": "/overlay:/x"},
        ),
        hidden,
    )
    assert "PYTHONPATH" in by_code(judged(facts), "ED806").message


def test_nothing_known_nothing_said(judged: Judge) -> None:
    assert not [code for code in codes(judged(facts_of())) if code.startswith("ED80")]


def test_an_unfinished_change_of_our_own_is_told(judged: Judge) -> None:
    facts = with_oddities(
        facts_of(["torch 2.6.0"]).updated({"python.prefix": Known("/my venv", HERE)}),
        Oddity("unfinished-change", "", "/my venv/.envdoctor-change/state.json"),
    )
    finding = by_code(judged(facts), "ED807")
    assert finding.severity == "warning"
    words = shlex.split(str(finding.remedies[0].commands[0]))
    assert words == ["envdoctor", "fix", "--python", "/my venv", "--rollback"]
    assert "ED807" not in codes(judged(facts_of(["torch 2.6.0"])))
