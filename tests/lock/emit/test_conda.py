"""What conda gets, as rattler reads it: each requirement is a MatchSpec, the environment solves,
the metapackage builds and installs.
"""

from __future__ import annotations

import asyncio
import json

import pytest
import rattler
import yaml

from envdoctor.lock.emit.conda import divide, render_environment, render_recipe


def conda_lines(text):
    return [line for line in yaml.safe_load(text)["dependencies"] if isinstance(line, str)]


def pip_lines(text):
    return next(
        (line["pip"] for line in yaml.safe_load(text)["dependencies"] if isinstance(line, dict)), []
    )


def record(name, version, build="0", depends=(), subdir="linux-64"):
    return {
        "name": name,
        "version": version,
        "build": build,
        "build_number": 0,
        "depends": list(depends),
        "subdir": subdir,
        "timestamp": 1700000000000,
    }


def channel_of(folder, records):
    """Write a channel that has only an index: what a solver reads of it."""
    for subdir in ("linux-64", "noarch"):
        named = {
            f"{entry['name']}-{entry['version']}-{entry['build']}.conda": entry
            for entry in records
            if entry["subdir"] == subdir
        }
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        (folder / subdir / "repodata.json").write_text(
            json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": named})
        )
    return rattler.Channel(folder.as_uri())


def channel_for(found, matrix, folder):
    """A channel with every package that the lock names, and with others that it must not take."""
    division = divide(found, matrix)
    records = [
        record("python", "3.11.9"),
        record("python", "3.12.4"),
        record("pip", "24.0", subdir="noarch"),
    ]
    records += [
        record("cuda-version", version, subdir="noarch")
        for version in ("11.8", "12.4", "12.6", "13.0")
    ]
    for pin in division.conda:
        builds = ("cuda126_py311_0", "cpu_py311_0") if pin.distribution == "torch" else ("py311_0",)
        for build in builds:
            depends = [
                "python 3.11.*",
                *(["cuda-version >=12.6,<13", "__cuda"] if build.startswith("cuda") else []),
            ]
            records += [
                record(pin.package, version, build, depends) for version in (pin.version, "9999.0")
            ]
    return channel_of(folder, records)


def solve(channels, specs, cuda, glibc="2.35"):
    virtual = [
        ("__linux", "6.1"),
        ("__glibc", glibc),
        ("__unix", "0"),
        *([("__cuda", cuda)] if cuda else []),
    ]
    packages = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
        )
        for name, version in virtual
    ]
    found = asyncio.run(
        rattler.solve(
            channels,
            [rattler.MatchSpec(spec, strict=True) for spec in specs],
            platforms=["linux-64", "noarch"],
            virtual_packages=packages,
        )
    )
    return {entry.name.normalized: (str(entry.version), str(entry.build)) for entry in found}


@pytest.fixture
def torch_stack(resolution):
    return resolution("torch==2.6.0", "transformers", "accelerate")


def test_an_environment_solves_to_the_pins(torch_stack, matrix, tmp_path):
    text = render_environment(torch_stack, "0", matrix)
    solved = solve([channel_for(torch_stack, matrix, tmp_path)], conda_lines(text), "12.4")
    assert solved["pytorch"] == ("2.6.0", "cuda126_py311_0")
    assert solved["python"][0] == "3.11.9"
    assert solved["cuda-version"][0] == "12.6"
    for pin in divide(torch_stack, matrix).conda:
        assert solved[pin.package][0] == pin.version
    assert not any(line.startswith(("torch==", "nvidia-cu")) for line in pip_lines(text))


@pytest.mark.parametrize(
    ("cuda", "glibc", "culprit"),
    [("11.8", "2.35", "__cuda"), (None, "2.35", "__cuda"), ("12.4", "2.12", "__glibc")],
)
def test_a_machine_that_is_too_old_is_refused(torch_stack, matrix, tmp_path, cuda, glibc, culprit):
    channel = channel_for(torch_stack, matrix, tmp_path)
    with pytest.raises(Exception, match=culprit):
        solve([channel], conda_lines(render_environment(torch_stack, "0", matrix)), cuda, glibc)


def test_every_line_stands_once(torch_stack, resolution, matrix):
    for found in (
        torch_stack,
        resolution("vllm==0.8.5", "ray"),
        resolution("numpy", "ray", assume=()),
    ):
        text = render_environment(found, "0", matrix)
        division = divide(found, matrix)
        brought = {pin.distribution for pin in division.conda}
        by_pip = {line.split("==")[0] for line in pip_lines(text)} | {
            name for name, _ in division.pip
        }
        assert not brought & by_pip
        libraries = (
            {pin.name for pin in found.pins if pin.name.startswith("nvidia-")}
            if not division.reason
            else set()
        )
        assert brought | by_pip | libraries == {pin.name for pin in found.pins}


def test_what_is_built_on_the_wheel_of_torch_moves_with_it(resolution, matrix):
    found = resolution("vllm==0.8.5")
    division = divide(found, matrix)
    assert "no conda package is known of" in division.reason
    assert {"torch", "vllm", "triton", "nvidia-cublas-cu12", "xgrammar"} <= {
        name for name, _ in division.pip
    }
    assert not {"torch", "vllm", "torchvision"} & {pin.distribution for pin in division.conda}


def test_an_override_is_left_to_the_install_script(resolution, matrix):
    found = resolution(
        "torch==2.4.0", python="3.10", assume=("gpu=H20", "nvidia-driver=535.129.03")
    )
    text = render_environment(found, "0", matrix)
    assert "# by install.sh: nvidia-cublas-cu12==12.3.4.1" in text
    assert "nvidia-cublas-cu12==12.3.4.1" not in pip_lines(text)
    assert "torch==2.4.0" in pip_lines(text)


def build(found, matrix, folder):
    """Build the metapackage with rattler-build; return the channel that it lies in."""
    import rattler_build

    folder.mkdir()
    (folder / "recipe.yaml").write_text(render_recipe(found, "0", matrix))
    (folder / "requirements.txt").write_text("# pins\n")
    recipe = rattler_build.Stage0Recipe.from_file(folder / "recipe.yaml")
    output = folder / "output"
    for variant in recipe.render():
        variant.run_build(output_dir=output)
    return rattler.Channel(output.as_uri()), sorted(output.glob("noarch/*.conda"))


def test_the_metapackage_builds_and_brings_the_pins(torch_stack, matrix, tmp_path):
    others = channel_for(torch_stack, matrix, tmp_path / "channel")
    own, files = build(torch_stack, matrix, tmp_path / "recipe")
    assert [file.name.startswith("envdoctor-lock-torch-") for file in files] == [True]
    solved = solve([own, others], ["envdoctor-lock-torch"], "12.4")
    assert solved["pytorch"] == ("2.6.0", "cuda126_py311_0")
    for cuda in ("11.8", None):
        with pytest.raises(Exception, match="__cuda"):
            solve([own, others], ["envdoctor-lock-torch"], cuda)


def test_the_metapackage_carries_what_pip_installs(resolution, matrix, tmp_path):
    found = resolution("vllm==0.8.5")
    own, (file,) = build(found, matrix, tmp_path / "recipe")
    assert own is not None
    from rattler.package_streaming import extract

    extract(file, tmp_path / "unpacked")
    assert (
        tmp_path / "unpacked" / "share" / "envdoctor-lock-vllm" / "requirements.txt"
    ).read_text() == "# pins\n"
    carried = yaml.safe_load(render_recipe(found, "0", matrix))["extra"]["pip"]
    assert "torch==2.6.0" in carried


def test_a_lock_without_a_gpu_asks_for_none(resolution, matrix, tmp_path):
    found = resolution("numpy", "ray", assume=())
    text = render_environment(found, "0", matrix)
    assert not any("__cuda" in line for line in conda_lines(text))
    assert "numpy" in solve([channel_for(found, matrix, tmp_path)], conda_lines(text), None)
