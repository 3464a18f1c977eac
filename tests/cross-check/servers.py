"""The servers of other projects: where they are installed, and how they are started."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

FILES = pathlib.Path(__file__).parent
KEY, WRONG_KEY = "sk-cross-check", "sk-wrong"
WINDOW = 16384


@dataclasses.dataclass
class Server:
    """A server program that runs."""

    name: str
    version: str
    address: str
    command: list
    work: pathlib.Path
    environment: dict
    # The mock server that gives the answers, if it is one.
    mock: "Server" = None
    process: subprocess.Popen = None

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def start(self, probe="/v1/models"):
        """Starts the program and waits until it answers."""
        log = self.work / f"{self.name}-{self.port}.log"
        with open(log, "a") as output:
            self.process = subprocess.Popen(
                self.command, cwd=self.work, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
        for _ in range(1800):
            try:
                if self.ask(probe)[0] == 200:
                    return self
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.stop()
        sys.exit(f"cross-check: {self.name} did not start:\n{log.read_text()[-2000:]}")

    def crash(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, body=None, key=KEY, method=None):
        """Makes a call as a plain client. Returns status and text."""
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def install(target):
    """Installs the servers, and returns their folder. A folder belongs to the versions in the manifests."""
    manifests = [FILES / "requirements.txt", FILES / "package.json"]
    digest = hashlib.sha256(b"".join(manifest.read_bytes() for manifest in manifests)).hexdigest()
    folder = target / digest[:12]
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(manifests[1], folder)
        run(sys.executable, "-m", "venv", folder / "venv")
        # Wheels only: nothing is compiled, and no program of a package runs while it is installed.
        run(
            folder / "venv/bin/pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            "-r",
            manifests[0],
        )
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder)
        (folder / "whole").touch()
    return folder


def run(*command):
    subprocess.run(["nice", *map(str, command)], check=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def server(name, version, command, work, mock=None, **variables):
    """Makes a server. It sees no variable of this process, so no credential."""
    port = free_port()
    command = [str(part).replace("PORT", str(port)) for part in command]
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "NO_PROXY": "127.0.0.1"} | variables
    return Server(name, version, f"http://127.0.0.1:{port}", command, work, environment, mock)


# The fixtures have the words of OpenAI for errors; Ollama has others.
WORDS_OF_OLLAMA = {
    "The model `no-such-model` does not exist": "model 'no-such-model' not found",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.": "the prompt is longer than the context length currently available",
}


def aimock(folder, work, key=None, words=None):
    """Starts the mock server, which requires this key. `words` replaces texts of its fixtures."""
    package = folder / "node_modules/@copilotkit/aimock"
    version = json.loads((package / "package.json").read_text())["version"]
    fixtures = (FILES / "aimock.json").read_text()
    for old, new in (words or {}).items():
        assert old in fixtures, old
        fixtures = fixtures.replace(old, new)
    path = work / f"aimock-{'keyed' if key else 'open'}.json"
    path.write_text(fixtures)
    command = ["node", package / "dist/cli.js", "-p", "PORT", "-f", path, "--log-level", "warn"]
    mock = server("aimock", version, command, work, **({"AIMOCK_API_KEYS": key} if key else {}))
    mock.mock = mock
    return mock.start()


def litellm(folder, work, upstream):
    variables = {"UPSTREAM": f"{upstream.address}/v1", "KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [folder / "venv/bin/litellm", "--config", FILES / "litellm.yaml", "--host", "127.0.0.1", "--port", "PORT"]
    return server("LiteLLM", pinned("litellm"), command, work, upstream, **variables).start()


def llama_cpp(folder, work):
    command = [folder / "venv/bin/python", FILES / "llama_server.py", work, "PORT", KEY, WINDOW]
    return server("llama.cpp", f"in xllamacpp {pinned('xllamacpp')}", command, work).start()


def pinned(package):
    lines = (FILES / "requirements.txt").read_text().splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith(package))
