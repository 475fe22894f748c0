"""Facts as JSON and back."""

from envdoctor.model.evidence import Unknown
from envdoctor.model.facts import SCHEMA_VERSION, Facts
from envdoctor.model.serde import dump_facts, read_facts


def test_a_failed_probe_keeps_its_name():
    facts = Facts({"driver.release": Unknown("crashed", "nvidia"), "gpus": Unknown("not read")})
    table = dump_facts(facts)
    assert table["facts"] == {
        "driver.release": {"unknown": "crashed", "probe": "nvidia"},
        "gpus": {"unknown": "not read"},
    }
    assert dict(read_facts(table, "here")) == dict(facts)
    assert str(facts.get("driver.release")) == "probe nvidia: crashed"


def test_a_file_without_names_of_probes_is_read():
    written = {
        "schema_version": SCHEMA_VERSION,
        "facts": {"driver.release": {"unknown": "probe nvidia: NVML: crashed with SIGSEGV"}},
    }
    fact = read_facts(written, "here").get("driver.release")
    assert fact == Unknown("probe nvidia: NVML: crashed with SIGSEGV")
    assert str(fact) == "probe nvidia: NVML: crashed with SIGSEGV"
