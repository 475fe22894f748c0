"""What a diagnosis names, without the exceptions that no signature knows."""

from __future__ import annotations


def roots(found):
    return [
        (trace.finding.component, trace.finding.kind, trace.certainty)
        for trace in found.traces
        if trace.finding.caused_by is None and trace.finding.subject != "raised"
    ]
