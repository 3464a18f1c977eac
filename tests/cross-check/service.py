"""The private service, and the APIs of servers as its providers."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from servers import KEY, WINDOW, WRONG_KEY, Server


class Failed(Exception):
    """A behaviour that the server offers, and the service does not have."""


class NotOffered(Exception):
    """A behaviour that the server was seen not to offer."""


class Service:
    """A service with its own database, and agents for each provider."""

    def __init__(self, program, folder, verbose):
        self.program, self.folder, self.verbose = program, folder, verbose
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CROSS_KEY": KEY, "CROSS_WRONG_KEY": WRONG_KEY}
        self.settings = ['[agents]\nfolder = "agents"\n', "[worker]\nturns_slots = 8\n", "[providers]\nbusy_first_secs = 2\n"]
        (folder / "agents").mkdir()

    def start(self):
        (self.folder / "dalsegno.toml").write_text("\n".join(self.settings))
        command = [self.program, "serve", "--json", "--set", "http.listen=127.0.0.1:0"]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        text = ""
        while not text.endswith("\n}\n"):
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"cross-check: the service did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            text += line
        self.address = json.loads(text)["address"]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def add_agent(self, name, provider, model="tiny", **keys):
        lines = [f"name: {name}", "description: Talks", f"provider: {provider}", f"model: {model}"]
        lines += [f"{key}: {value}" for key, value in keys.items()]
        (self.folder / f"agents/{name}.md").write_text("---\n" + "\n".join(lines) + "\n---\nYou talk about ships.\n")

    def command(self, *arguments):
        """Runs a command as a person does, and returns what it prints."""
        command = [self.program, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    def open(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"content-type": "application/json"}, method=method)
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path}: {error.read().decode()}") from error

    def call(self, method, path, body=None):
        with self.open(method, path, body) as response:
            return json.loads(response.read())

    def events(self, task):
        """Yields the events of a task until its end."""
        with self.open("GET", f"/v1/tasks/{task}/events") as response:
            kind = ""
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def explained(self, task):
        told = self.call("GET", f"/v1/tasks/{task}/explain")
        return f"{told['because']} {told['next'] or ''}".strip()

    def ended(self, task, seconds=60):
        """Waits for the end of a task, and returns it."""
        until = time.monotonic() + seconds
        while (detail := self.call("GET", f"/v1/tasks/{task}"))["state"] not in ("done", "failed", "cancelled"):
            if time.monotonic() > until:
                raise Failed(f"the task is {detail['state']} after {seconds} s: {self.explained(task)}")
            time.sleep(0.1)
        if self.verbose:
            turns = [(turn["state"], turn["flags"], turn["error"]) for turn in detail["turns"]]
            print(f"    {detail['agent']}: {detail['state']}: {detail['error'] or detail['result']!r:.400} {turns}", flush=True)
        return detail


@dataclasses.dataclass
class Column:
    """One API of a server, as a provider of the service."""

    server: Server
    kind: str
    service: Service
    campaigns: int = 0

    def __post_init__(self):
        self.title = f"{self.server.name} {self.kind}"
        self.provider = "ollama" if self.kind == "ollama" else self.title.lower().replace(".", "").replace(" ", "-")
        self.configure()

    def configure(self):
        """Adds the sections of the provider, and its agents."""
        name, address, add = self.provider, self.server.address, self.service.settings.append
        if self.kind == "ollama":
            add(f'[ollama]\nbase_url = "{address}"\nnum_ctx = {WINDOW}\n')
        else:
            dialect = {"LiteLLM": "litellm", "llama.cpp": "llama_cpp"}.get(self.server.name, "auto")
            section = f'kind = "{self.kind}"\ndialect = "{dialect}"\nbase_url = "{address}'
            key = 'credential_variable = "CROSS_KEY"\n'
            add(f'[providers.{name}]\n{section}/v1"\n{key}')
            add(f'[providers.{name}-wide]\n{section}/v1"\n{key}models = [{{ name = "tiny", window_tokens = 200000 }}]\n')
            add(f'[providers.{name}-key]\n{section}/v1"\ncredential_variable = "CROSS_WRONG_KEY"\n')
            add(f'[providers.{name}-lost]\n{section}/elsewhere"\n{key}')
            for other in ["wide", "key", "lost"]:
                self.service.add_agent(f"{name}-{other}", f"{name}-{other}")
        self.service.add_agent(f"{name}-plain", name)
        self.service.add_agent(f"{name}-tools", name, tools="mcp__dalsegno__status, mcp__dalsegno__records_list")
        self.service.add_agent(f"{name}-short", name, reserve_tokens=600)
        self.service.add_agent(f"{name}-model", name, model="no-such-model")

    def ask(self, text, model="tiny", **fields):
        """Asks the server as a plain client does, and returns status and text."""
        path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}[self.kind]
        messages = [{"role": "user", "content": text}]
        return self.server.ask(path, {"model": model, "max_tokens": 64, "messages": messages, "stream": False} | fields)

    def campaign(self):
        self.campaigns += 1
        body = {"name": f"{self.title} {self.campaigns}", "brief": "Talk about ships."}
        return self.service.call("POST", "/v1/campaigns", body)["id"]

    def add(self, text, agent="plain", campaign=None, **fields):
        body = {"agent": f"{self.provider}-{agent}", "prompt": text} | fields
        return self.service.call("POST", f"/v1/campaigns/{campaign or self.campaign()}/tasks", body)["id"]

    def run(self, text, agent="plain", campaign=None, state="done", **fields):
        """Runs one task to its end, and returns it with its turns."""
        task = self.service.ended(self.add(text, agent, campaign, **fields))
        if task["state"] != state:
            raise Failed(f"the task is {task['state']}: {task['error'] or task['result']}")
        return task
