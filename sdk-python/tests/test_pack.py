"""Packing, without pip: what is installed is put there by the test."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from kandev_plugin import pack as packing
from kandev_plugin.pack import PackError, archive, main, pack, this_platform, this_python


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "src" / "__pycache__").mkdir(parents=True)
    (folder / "ui").mkdir()
    (folder / "manifest.yaml").write_text('id: demo # a comment\napi_version: 1\nversion: "1.2.3"\n')
    (folder / "requirements.txt").write_text("needed\n")
    (folder / "src" / "main.py").write_text("import needed, sys\nprint(needed.WORD, sys.pycache_prefix)\n")
    (folder / "src" / "__pycache__" / "main.pyc").write_text("x")
    (folder / "src" / ".secret").write_text("x")
    (folder / "ui" / "bundle.js").write_text("x")

    def install(_: Path, target: Path, wanted: str, version: str) -> None:
        target.mkdir(parents=True)
        (target / "needed.py").write_text(f"WORD = 'for {wanted} {version}'\n")

    monkeypatch.setattr(packing, "_install", install)
    return folder


def test_a_package_has_the_code_what_it_needs_and_a_program_for_each_platform(project: Path) -> None:
    package = pack(project, ["linux-amd64", "linux-arm64"], ["3.11", "3.12"], project / "dist")
    assert package == project / "demo-1.2.3.tar.gz"
    with tarfile.open(package) as tar:
        modes = {entry.name: entry.mode for entry in tar}
        owners = {(entry.uid, entry.gid, entry.mtime, entry.isreg()) for entry in tar}
    assert modes == {
        "app/main.py": 0o644,
        "checksums.txt": 0o644,
        "manifest.yaml": 0o644,
        "server/plugin-linux-amd64": 0o755,
        "server/plugin-linux-arm64": 0o755,
        "ui/bundle.js": 0o644,
        "vendor/linux-amd64-3.11/needed.py": 0o644,
        "vendor/linux-amd64-3.12/needed.py": 0o644,
        "vendor/linux-arm64-3.11/needed.py": 0o644,
        "vendor/linux-arm64-3.12/needed.py": 0o644,
    }
    assert owners == {(0, 0, 0, True)}


def test_the_checksums_are_those_of_every_other_file(project: Path) -> None:
    package = pack(project, ["linux-amd64"], ["3.11"], project / "dist")
    with tarfile.open(package) as tar:
        content = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    lines = content.pop("checksums.txt").decode().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}


def test_the_same_files_give_the_same_bytes(project: Path) -> None:
    first = pack(project, ["linux-amd64"], ["3.11"], project / "dist").read_bytes()
    os.utime(project / "src" / "main.py", (1, 1))
    assert pack(project, ["linux-amd64"], ["3.11"], project / "dist").read_bytes() == first


@pytest.mark.parametrize("missing", ["manifest.yaml", "src/main.py", "requirements.txt"])
def test_a_folder_that_is_no_project_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    (project / missing).unlink()
    assert main([str(project)]) == 1
    assert capsys.readouterr().err == (
        f"pack: {project / missing} is missing; a project has manifest.yaml, src/main.py, requirements.txt\n"
    )


@pytest.mark.parametrize("key", ["id", "version"])
def test_a_manifest_without_a_name_for_the_package_is_refused(project: Path, key: str) -> None:
    manifest = project / "manifest.yaml"
    manifest.write_text(
        manifest.read_text().replace(f"\n{key}:", "\nother:").replace("id: demo", "id: demo" * (key != "id"))
    )
    with pytest.raises(PackError, match=f"has no {key}"):
        pack(project, ["linux-amd64"], ["3.11"], project / "dist")


def test_a_name_that_the_checksums_cannot_list_is_refused(project: Path) -> None:
    (project / "ui" / "a b.js").write_text("x")
    with pytest.raises(PackError, match="has a space in its name"):
        pack(project, ["linux-amd64"], ["3.11"], project / "dist")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "link").symlink_to("nowhere")
    with pytest.raises(PackError, match="is a link; hosts refuse packages with links"):
        archive(tmp_path / "dist", tmp_path / "package")


def run(launcher: Path, data: Path, path: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": path, "KANDEV_PLUGIN_DATA_DIR": str(data)}
    return subprocess.run(
        [sys.executable, str(launcher)], env=variables, cwd="/", capture_output=True, text=True, check=False
    )


def test_the_program_runs_the_code_with_what_it_needs_and_compiles_into_the_data_folder(project: Path) -> None:
    pack(project, [this_platform()], [this_python()], project / "dist")
    launcher = project / "dist" / "server" / f"plugin-{this_platform()}"
    assert os.access(launcher, os.X_OK)
    ended = run(launcher, project / "data", "")
    prefix = project / "data" / "pycache"
    assert (ended.returncode, ended.stdout) == (0, f"for {this_platform()} {this_python()} {prefix}\n")
    assert not list((project / "dist").rglob("__pycache__"))


def test_a_python_that_was_not_packed_for_is_told_of(project: Path) -> None:
    pack(project, [this_platform()], ["3.98", "3.99"], project / "dist")
    ended = run(project / "dist" / "server" / f"plugin-{this_platform()}", project / "data", "/nowhere")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"this plugin is packed for Python 3.98 and 3.99, and python3 on the host's PATH is {this_python()}; install"
        f" one of those, or pack it with --python {this_python()}\n"
    )


def test_another_python_on_the_path_that_was_packed_for_is_taken(project: Path, tmp_path: Path) -> None:
    pack(project, [this_platform()], ["3.99"], project / "dist")
    other = tmp_path / "python3.99"
    other.write_text('#!/bin/sh\necho "taken: $1"\n')
    other.chmod(0o755)
    launcher = project / "dist" / "server" / f"plugin-{this_platform()}"
    assert run(launcher, project / "data", str(tmp_path)).stdout == f"taken: {launcher}\n"
