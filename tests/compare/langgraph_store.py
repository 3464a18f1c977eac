"""LangGraph: a graph of one node that answers without a model, with the checkpointer PostgresSaver. Prints figures as JSON.

With the argument `delta`, the messages are in a DeltaChannel (beta), which stores only the writes and a snapshot from time to time.
"""

import json
import os
import sys
import time
from typing import Annotated, TypedDict

import conversation
import words
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, MessagesState, StateGraph

URL = os.environ["DATABASE_URL"]


def append(messages, writes):
    return [*messages, *(message for write in writes for message in write)]


class DeltaState(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(append)]


def answer(state):
    return {"messages": [AIMessage(words.text(-len(state["messages"]), conversation.ANSWER_BYTES))]}


with PostgresSaver.from_conn_string(URL) as saver:
    saver.setup()
    state = DeltaState if sys.argv[1:] == ["delta"] else MessagesState
    graph = StateGraph(state).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "harbour"}}

    def run_turns(first, n):
        began = time.monotonic()
        for i in range(first, first + n):
            graph.invoke({"messages": [HumanMessage(words.text(i, conversation.PROMPT_BYTES))]}, thread)
        return time.monotonic() - began

    def load():
        return len(graph.get_state(thread).values["messages"])

    print(json.dumps(conversation.measure(URL, run_turns, load)))
