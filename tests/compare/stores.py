"""Measure C: conversations of 10, 100 and 1000 messages, and the next turns."""

import importlib.metadata
import json
import os
import pathlib
import subprocess

import conversation
import tables
from dalsegno import DalsegnoStore
from peers import Failed

FILES = pathlib.Path(__file__).parent


class StoreProgram:
    """A store of another project, measured by a program of its own."""

    def __init__(self, name, package, python, script, *arguments, variant=""):
        self.title = f"{name} {importlib.metadata.version(package)}{variant}"
        self.command = [str(python), str(FILES / script), *arguments]

    def measure(self, database):
        with database() as (url, folder, _):
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "DATABASE_URL": url}
            done = subprocess.run(self.command, env=environment, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                raise Failed((done.stdout + done.stderr)[-1000:])
            return {int(size): figures for size, figures in json.loads(done.stdout.splitlines()[-1]).items()}


class DalsegnoConversation:
    def __init__(self, dalsegno):
        self.title, self.program = tables.label(dalsegno), dalsegno.program
        self.bytes_per_turn = None

    def measure(self, database):
        with database() as (url, folder, _):
            store = DalsegnoStore(self.program, url, folder)
            try:
                figures = conversation.measure(url, store.run_turns, store.load)
                self.bytes_per_turn = store.bytes_per_turn()
                return figures
            finally:
                store.stop()


def all_stores(python, dalsegno):
    langgraph = ["LangGraph", "langgraph", python, "langgraph_store.py"]
    return [
        StoreProgram(*langgraph),
        StoreProgram(*langgraph, "delta", variant=", DeltaChannel"),
        StoreProgram("OpenAI Agents SDK", "openai-agents", python, "agents_store.py"),
        DalsegnoConversation(dalsegno),
    ]
