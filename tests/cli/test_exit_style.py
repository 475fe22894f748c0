"""check --exit-style: the codes, and what real monitoring programs make of them (Nagios itself,
negate).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEGATE = "/usr/lib/nagios/plugins/negate"
CASES = {
    "error": (["torch==2.6.0+cu124", "gpu=H100:8", "nvidia-driver=450.80.02"], 2),
    "warning": (
        [
            "torch==2.6.0+cu124",
            "gpu=H100:8",
            "nvidia-driver=550.54.14",
            "memory=64GiB",
            "shm=64MiB",
        ],
        1,
    ),
    "fine": (["nvidia-driver=570.86.15"], 0),
}


def command(*arguments):
    return [sys.executable, "-m", "envdoctor", "check", *arguments]


def run(*arguments, before=()):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*before, *command(*arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("case", CASES)
def test_nagios(case):
    assumed, code = CASES[case]
    done = run("--exit-style", "nagios", "--assume", *assumed)
    status, *more = done.stdout.splitlines()
    assert done.returncode == code, done.stdout + done.stderr
    text, bar, numbers = status.partition(" | ")
    assert bar
    assert text.startswith(f"ENVDOCTOR {('OK', 'WARNING', 'CRITICAL')[code]}: ")
    assert len(text) <= 80
    assert re.fullmatch(r"errors=\d+ warnings=\d+ undetermined=\d+", numbers)
    assert not any("|" in line for line in more)
    default = json.loads(run("--format", "json", "--assume", *assumed).stdout)
    assert len(more) == len(default["findings"])


@pytest.mark.parametrize("case", CASES)
def test_nhc_is_silent_unless_there_is_an_error(case):
    assumed, code = CASES[case]
    done = run("--exit-style=nhc", "--assume", *assumed)
    if code == 2:
        assert done.returncode == 1
        assert re.fullmatch(
            r"ERROR:  nhc:  Health check failed:  envdoctor: 1 error.*\n", done.stdout
        )
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "wrong", [["--facts", "/nonexistent"], ["--no-such-option"], ["--assume", "nvidia-driver=x"]]
)
def test_no_verdict_reads_as_none(wrong):
    """Codes 1 and 2 would be taken for findings, and a node for a broken one."""
    nagios = run("--exit-style", "nagios", *wrong)
    assert nagios.returncode == 3
    assert nagios.stdout.startswith("ENVDOCTOR UNKNOWN: ")
    nhc = run(*wrong, "--exit-style=nhc")
    assert (nhc.returncode, nhc.stdout) == (0, "")
    assert nhc.stderr.startswith("envdoctor: error: ")
    assert run(*wrong).returncode == 2


def test_nothing_known_is_unknown(tmp_path):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    done = run("--exit-style", "nagios", "--facts", str(empty))
    assert done.returncode == 3
    assert done.stdout.startswith("ENVDOCTOR UNKNOWN: ")


def test_a_style_that_is_none_is_wrong_usage():
    assert run("--exit-style", "zabbix").returncode == 2


@pytest.mark.parametrize(("case", "code"), [("error", 0), ("fine", 2)])
def test_negate_wraps_it(prerequisite, case, code):
    """It exchanges OK and CRITICAL by the code alone, and refuses a plugin that says nothing."""
    prerequisite(os.access(NEGATE, os.X_OK), "negate (Debian: monitoring-plugins-basic)")
    done = run(
        "--exit-style", "nagios", "--assume", *CASES[case][0], before=(NEGATE, "--substitute")
    )
    assert done.returncode == code
    assert done.stdout.startswith(f"ENVDOCTOR {('OK', 'WARNING', 'CRITICAL')[code]}: ")


OBJECTS = """
define timeperiod {{
 timeperiod_name always
 alias always
 {days}
}}
define contact {{
 contact_name nobody
 host_notifications_enabled 0
 service_notifications_enabled 0
 host_notification_period always
 service_notification_period always
 host_notification_options n
 service_notification_options n
 host_notification_commands true
 service_notification_commands true
}}
define command {{
 command_name true
 command_line /bin/true
}}
define host {{
 host_name node
 address 127.0.0.1
 max_check_attempts 1
 check_period always
 notification_period always
 notifications_enabled 0
 contacts nobody
}}
"""
SERVICE = """
define command {{
 command_name {name}
 command_line {line}
}}
define service {{
 host_name node
 service_description {name}
 check_command {name}
 max_check_attempts 1
 check_interval 1
 retry_interval 1
 check_period always
 notification_period always
 notifications_enabled 0
 contacts nobody
}}
"""


@pytest.mark.slow
def test_nagios_itself_reads_status_text_and_numbers(prerequisite, tmp_path):
    program = shutil.which("nagios4", path="/usr/sbin:/usr/bin")
    prerequisite(
        program is not None and os.geteuid() == 0, "nagios4 (Debian: nagios4-core) and root"
    )
    days = "\n ".join(
        f"{day} 00:00-24:00"
        for day in ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    )
    text = OBJECTS.format(days=days)
    for name, (assumed, _) in CASES.items():
        words = " ".join(command("--exit-style", "nagios", "--assume", *assumed))
        text += SERVICE.format(name=name, line=f"/usr/bin/env PYTHONPATH={ROOT} {words}")
    (tmp_path / "objects.cfg").write_text(text)
    (tmp_path / "results").mkdir()
    settings = {
        "cfg_file": tmp_path / "objects.cfg",
        "log_file": tmp_path / "log",
        "object_cache_file": tmp_path / "objects.cache",
        "precached_object_file": tmp_path / "objects.precache",
        "status_file": tmp_path / "status.dat",
        "status_update_interval": 1,
        "state_retention_file": tmp_path / "retention.dat",
        "temp_file": tmp_path / "temp",
        "temp_path": tmp_path,
        "check_result_path": tmp_path / "results",
        "command_file": tmp_path / "pipe",
        "query_socket": tmp_path / "query",
        "lock_file": tmp_path / "lock",
        "nagios_user": "root",
        "nagios_group": "root",
        "use_syslog": 0,
        "service_inter_check_delay_method": "n",
        "max_service_check_spread": 1,
        "illegal_macro_output_chars": "`",
    }
    (tmp_path / "nagios.cfg").write_text(
        "".join(f"{name}={value}\n" for name, value in settings.items())
    )
    with (tmp_path / "output").open("w+b") as output:
        daemon = subprocess.Popen(
            [program, str(tmp_path / "nagios.cfg")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            found, end = {}, time.monotonic() + 60
            while len(found) < len(CASES) and time.monotonic() < end and daemon.poll() is None:
                time.sleep(0.3)
                found = checked(tmp_path / "status.dat")
        finally:
            daemon.terminate()
            daemon.wait(20)
    assert set(found) == set(CASES), (tmp_path / "output").read_text()[-2000:]
    for name, (_, code) in CASES.items():
        assert found[name]["current_state"] == str(code)
        assert found[name]["plugin_output"].startswith(
            f"ENVDOCTOR {('OK', 'WARNING', 'CRITICAL')[code]}: "
        )
        assert re.fullmatch(
            r"errors=\d+ warnings=\d+ undetermined=\d+", found[name]["performance_data"]
        )
    assert found["error"]["long_plugin_output"].startswith("ED1")


def checked(path):
    """Return the services that Nagios has checked, with their values, from its status file."""
    services = {}
    for block in path.read_text().split("servicestatus {")[1:] if path.exists() else ():
        values = dict(
            line.strip().split("=", 1)
            for line in block.partition("}")[0].splitlines()
            if "=" in line
        )
        if values["has_been_checked"] == "1":
            services[values["service_description"]] = values
    return services
