"""Packs a plugin's project for a host: `python -m kandev_plugin.pack PROJECT`.

A project is a folder with `manifest.yaml`, `src/main.py`, which calls `serve`, and `requirements.txt`; `ui/` and
`assets/` go into the package when they are there. The package brings along all that the plugin needs except Python
itself:

    manifest.yaml, checksums.txt
    server/plugin-<platform>              starts it: a script, since a package's executable is one file
    app/                                  the project's src/
    vendor/<platform>-<Python's version>/ what requirements.txt names, with all that it needs

The folder that it is packed from stays, for `kandev-host plugin pack`, which checks more and can sign.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

# A platform in a manifest, and what wheels for it are called, the newest last.
WHEELS = {
    "linux-amd64": ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64"],
    "linux-arm64": ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"],
}

# Not in a package: what Python and editors leave behind. Names that begin with a dot are not packed either.
_LEFT_OUT = ("__pycache__", "*.pyc", ".*")

# What the checksums do not list.
_CHECKSUMS = "checksums.txt"
_UNLISTED = (_CHECKSUMS, "checksums.txt.sig")


class PackError(Exception):
    """Why a project cannot be packed."""


def this_platform() -> str:
    """This machine's platform, as manifests name it."""
    machine = platform.machine()
    return "linux-" + {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def this_python() -> str:
    """The version of the Python that runs this."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def pack(project: Path, platforms: list[str], pythons: list[str], folder: Path) -> Path:
    """Makes `folder` anew and a package of it, beside it. The package's path."""
    for needed in ("manifest.yaml", "src/main.py", "requirements.txt"):
        if not (project / needed).is_file():
            raise PackError(
                f"{project / needed} is missing; a project has manifest.yaml, src/main.py, requirements.txt"
            )
    name = f"{_of_manifest(project, 'id')}-{_of_manifest(project, 'version')}.tar.gz"
    shutil.rmtree(folder, ignore_errors=True)
    leave_out = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(project / "src", folder / "app", ignore=leave_out)
    for part in ("ui", "assets"):
        if (project / part).is_dir():
            shutil.copytree(project / part, folder / part, ignore=leave_out)
    shutil.copy(project / "manifest.yaml", folder)
    for wanted in platforms:
        _write_launcher(folder, wanted)
        for version in pythons:
            _install(project, folder / "vendor" / f"{wanted}-{version}", wanted, version)
    package = folder.parent / name
    archive(folder, package)
    return package


def archive(folder: Path, package: Path) -> None:
    """Writes the folder's checksums and the package: the same bytes for the same files."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in _files(folder)]
    (folder / _CHECKSUMS).write_text("".join(lines))
    with (
        package.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, path in [*_files(folder), (_CHECKSUMS, folder / _CHECKSUMS)]:
            entry = tarfile.TarInfo(name)
            content = path.read_bytes()
            entry.size = len(content)
            entry.mode = 0o755 if name.startswith("server/") else 0o644
            tar.addfile(entry, io.BytesIO(content))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise PackError(f"{path} is a link; hosts refuse packages with links")
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and name not in _UNLISTED:
            if any(letter.isspace() for letter in name):
                raise PackError(f"{path} has a space in its name, which {_CHECKSUMS} cannot list")
            yield name, path


def _of_manifest(project: Path, key: str) -> str:
    manifest = (project / "manifest.yaml").read_text()
    found = re.search(rf"^{key}:\s*[\"']?([^\"'\s#]+)", manifest, re.MULTILINE)
    if found is None:
        raise PackError(f"{project / 'manifest.yaml'} has no {key}")
    return found[1]


def _write_launcher(folder: Path, wanted: str) -> None:
    template = resources.files("kandev_plugin").joinpath("launcher.py.template").read_text()
    path = folder / "server" / f"plugin-{wanted}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(template.replace("@PLATFORM@", wanted))
    path.chmod(0o755)


def _install(project: Path, target: Path, wanted: str, version: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command.append("--no-warn-conflicts")
    if (wanted, version) != (this_platform(), this_python()):
        # Wheels only: nothing can be compiled here for another machine or Python.
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={version}"]
        command += [f"--platform={tag}" for tag in WHEELS[wanted]]
    # Paths in it are relative to the project.
    command += ["--requirement", "requirements.txt", "--target", str(target.resolve())]
    if subprocess.run(command, cwd=project, check=False).returncode:  # noqa: S603 the command is made above
        raise PackError(f"pip cannot install what {project / 'requirements.txt'} names: see the lines above")
    # Programs for people; they name the Python of this machine.
    shutil.rmtree(target / "bin", ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m kandev_plugin.pack", description="Pack a plugin for a host.")
    parser.add_argument("project", type=Path, nargs="?", default=Path(), help="the project's folder (default: here)")
    parser.add_argument(
        "--platform", action="append", choices=WHEELS, help="for this platform (default: this machine's)"
    )
    parser.add_argument("--python", action="append", metavar="3.N", help="for this version (default: the one running)")
    parser.add_argument("--folder", type=Path, help="what is packed goes here first (default: dist/ of the project)")
    given = parser.parse_args(arguments)
    folder = given.folder or given.project / "dist"
    try:
        package = pack(given.project, given.platform or [this_platform()], given.python or [this_python()], folder)
    except (PackError, OSError) as error:
        print(f"pack: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(package)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
