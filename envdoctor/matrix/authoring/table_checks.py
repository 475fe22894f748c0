"""What is suspicious in tables, packages and signatures."""

from __future__ import annotations

from .provenance import date_fault, source_fault
from .remarks import Bench, LintRemark, Remarks

__all__ = ["package_remarks", "signature_remarks", "table_remarks"]


def table_remarks(bench: Bench) -> Remarks:
    """Yield entries of tables, models and conda names without a usable source or date."""
    from ..compiled import KEYS

    for table, key in KEYS.items():
        entries = (
            bench.matrix.gpu_entries() if table == "gpu" else bench.matrix.table_entries(table)
        )
        for entry in entries:
            yield from _provenance(
                f"{table} {entry[key]}",
                entry["source"],
                entry["date"],
                str(entry.get("origin", "gpus.toml")),
                bench,
            )
    for model in bench.matrix.models:
        yield from _provenance(
            f"model {model.name}", model.source, model.date, "models.toml", bench
        )
    for package in bench.matrix.conda.values():
        yield from _provenance(
            f"conda name of {package.distribution}",
            package.source,
            package.date,
            "conda.toml",
            bench,
        )


def _provenance(subject: str, source: str, date: str, origin: str, bench: Bench) -> Remarks:
    """What is wrong with the source and the date of one entry."""
    for check, fault in (
        ("source-form", source_fault(str(source))),
        ("date", date_fault(str(date), bench.today)),
    ):
        if fault is not None:
            yield LintRemark(check, "fault", subject, fault, origin)


def signature_remarks(bench: Bench) -> Remarks:
    """Sources, dates and rows that signatures name."""
    for entry in bench.matrix.signatures:
        subject = f"signature {entry.id}"
        source = source_fault(entry.source.address)
        if source is not None:
            yield LintRemark("source-form", "fault", subject, source, entry.origin)
        date = date_fault(entry.date, bench.today)
        if date is not None:
            yield LintRemark("date", "fault", subject, date, entry.origin)
        for name in [name for cause in entry.causes for name in cause.rows if "*" not in name]:
            if bench.matrix.row(name) is None:
                yield LintRemark(
                    "signature-row", "fault", subject, f"there is no row {name}", entry.origin
                )


def package_remarks(bench: Bench) -> Remarks:
    """Yield packages and releases without a usable source or date."""
    for name in bench.matrix.package_names:
        package = bench.matrix.package(name)
        if package is None:
            continue
        origin = f"packages/{name}.json"
        date = date_fault(package.date, bench.today)
        if date is not None:
            yield LintRemark("date", "fault", name, date, origin)
        for version in package.versions:
            release = package.release(version)
            if release is None:
                continue
            fault = date_fault(release.released, bench.today)
            if fault is not None:
                yield LintRemark("date", "fault", f"{name} {version}", f"released {fault}", origin)
            if any(not build.source for build in release.builds):
                yield LintRemark(
                    "source-form",
                    "fault",
                    f"{name} {version}",
                    "a build does not say where it was read",
                    origin,
                )
