"""The table of what is measured: imports, checks of versions and symbols, each in its column."""

import json

from surface_scan.coverage import coverage_lines

STATEMENTS = [{}, {"verb": "refuses"}, {"verb": "warns of"}, {"verb": "cannot be loaded with"}]


def test_each_kind_of_statement_has_its_column(workshop):
    workshop.release("maker", {"maker/__init__.py": ""}, "2.0")
    documents = {
        "packages/maker": {
            "releases": [
                {"version": "1.0", "released": "2022-05-05"},
                {"version": "2.0", "released": "2024-05-05"},
                {"version": "3.0", "released": "2024-06-06"},
                {"version": "3.1", "released": "2024-07-07", "yanked": True},
            ]
        },
        "surfaces/maker": {"measured": ["1.0", "2.0"], "statements": STATEMENTS},
        "symbols": {"fits": {"maker": {"2.0": "0"}}, "links": {"maker": {"3.0": "0"}}},
    }
    for name, document in documents.items():
        path = workshop.folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document))
    lines = list(coverage_lines(workshop.packages, workshop.sources, workshop.folder, "2023-01-01"))
    head, maker, total = (line.split() for line in lines[:3])
    assert dict(zip(head[1:], map(int, maker[1:]))) == {
        "releases": 2,
        "read": 1,
        "measured": 1,
        "imports": 1,
        "gates": 2,
        "symbols": 2,
        "links": 1,
        "metadata": 0,
        "arguments": 0,
    }
    assert total[3:] == maker[1:]
    # 3.0 was not measured, and nothing is known of what either asks for.
    assert [line.partition(" releases")[0] for line in lines[3:-1]] == [
        "metadata: 0 of 2",
        "imports and checks: 1 of 2",
    ]


def test_a_wheel_is_measured_where_all_that_applies_to_it_is_held(workshop):
    """torch has code and symbols; msgspec, of the same list, neither."""
    both = ["manylinux_2_28_aarch64", "manylinux_2_28_x86_64"]
    read = {"sass": ["8.0"]}

    def release(version, *builds, **fields):
        entry = {"version": version, "released": "2024-05-05", "platforms": both, "glibc": "2.28"}
        return {**entry, "builds": builds, **fields}

    documents = {
        "packages/torch": [
            release("2.0", read, {"architecture": "aarch64", "variant": "cpu"}),
            release("2.1", read, {"architecture": "aarch64", "trust": "reported", **read}),
            release("2.2", {"index_name": "pytorch", **read}, platforms=[both[1]]),
            release("2.3", read, platforms=[both[1]], yanked=True),
        ],
        "packages/msgspec": [
            release("1.0"),
            release("1.1", platforms=["any", "macosx_10_9_x86_64"]),
        ],
    }
    for name, releases in documents.items():
        path = workshop.folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"releases": releases}))
    symbols = {"versions": ["2.0", "2.1", "2.2"], "aarch64": {"versions": {"torch": "2.0"}}}
    (workshop.folder / "symbols.json").write_text(json.dumps(symbols))
    lines = list(coverage_lines(workshop.packages, workshop.sources, workshop.folder, "2023-01-01"))
    place = next(place for place, line in enumerate(lines) if "most used" in line)
    assert [line for line in lines if line.startswith("machine code")] == [
        "machine code for GPUs, x86_64: 2 of 3 releases of 1 packages (66.7 %)",
        "machine code for GPUs, aarch64: 1 of 2 releases of 1 packages (50.0 %)",
    ]
    assert lines[place].partition(" (wheels: ")[::2] == (
        "compiled wheels of the 40 most used: 2 of 4 releases",
        "3 of 4 for x86_64, 2 of 3 for aarch64)",
    )
    assert lines[place + 1 :] == [
        "  without machine code, aarch64: 1 (torch 1)",
        "  without symbols, aarch64: 1 (torch 1)",
        "  without machine code, x86_64: 1 (torch 1)",
    ]
