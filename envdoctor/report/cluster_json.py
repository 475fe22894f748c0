"""The answer about a cluster as JSON; ``schemas/nodes.schema.json`` says what is in it."""

from __future__ import annotations

import json

from .cluster_text import verdict_of
from .json_report import dump_difference, dump_report, dump_since
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ..rules.node_table import ClusterReport, Kind, Section

__all__ = ["NODES_SCHEMA_VERSION", "dump_cluster"]

NODES_SCHEMA_VERSION = 1


def dump_cluster(report: ClusterReport) -> str:
    """Return the answer as ASCII JSON; lists of nodes are whole, and folded beside it."""
    table = {
        "schema_version": NODES_SCHEMA_VERSION,
        "verdict": clean(verdict_of(report)),
        "exit_code": report.exit_code,
        "parts": [_section(section) for section in report.sections],
        "failed": [
            {"node": clean(answer.node), "reason": clean(answer.failed)} for answer in report.failed
        ],
        **({} if report.since is None else {"since": dump_since(report.since)}),
    }
    return json.dumps(table, indent=1) + "\n"


def _section(section: Section) -> Dict[str, Any]:
    return {
        "name": clean(section.name),
        "kinds": [_kind(kind) for kind in section.kinds],
        "report": dump_report(section.report),
    }


def _kind(kind: Kind) -> Dict[str, Any]:
    return {
        "list": clean(kind.folded),
        "nodes": [clean(name) for name in kind.names],
        "differences": [dump_difference(entry, "others") for entry in kind.differences],
    }
