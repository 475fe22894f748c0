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
    assert [line.partition(" releases")[0] for line in lines[3:]] == [
        "metadata: 0 of 2",
        "imports and checks: 1 of 2",
    ]
