"""The sums of the chaos table, below the results."""

from __future__ import annotations

from collections import Counter

from .conditions import CONDITIONS

PROPERTY = "chaos"


def pytest_terminal_summary(terminalreporter) -> None:
    """Say how many conditions were tried, and how many jobs were lost and waved through."""
    cells, builds, sums, wrong = 0, set(), Counter(), []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, (condition, build, seen) in report.user_properties:
                if name == PROPERTY:
                    builds.add((condition, build))
                    for policy, letter, state, is_lost, is_waved in seen:
                        cells += 1
                        sums["job lost"] += is_lost
                        sums["waved through"] += is_waved
                        if is_lost or is_waved or not fits(letter, state):
                            wrong.append(f"{condition}, {build}, {policy}: {state}, not {letter}")
    if not cells:
        return
    tried = len({condition for condition, _ in builds})
    terminalreporter.section("chaos table")
    terminalreporter.write_line(
        f"{tried} of {len(CONDITIONS)} conditions, {cells} cells, "
        f"job lost under warn: {sums['job lost']}, "
        f"waved through under enforce --strict: {sums['waved through']}, "
        f"other than expected: {len(wrong)}"
    )
    for line in sorted(wrong):
        terminalreporter.write_line(line)


STATES = {"r": {"runs"}, "u": {"64"}, "n": {"69"}, "x": {"78"}, "e": {"runs", "69", "78"}}


def fits(letter: str, state: str) -> bool:
    """Tell whether what became of a start is what was expected."""
    return state in STATES[letter]
