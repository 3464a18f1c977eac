"""OpenAI Agents SDK: an agent whose model answers from words, with SQLAlchemySession on Postgres. Prints figures as JSON."""

import asyncio
import json
import os
import time

import conversation
import words
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.extensions.memory import SQLAlchemySession
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

URL = os.environ["DATABASE_URL"]


class Simulation(Model):
    async def get_response(self, system_instructions, input, *arguments, **options):
        n = len(input)
        part = ResponseOutputText(text=words.text(-n, conversation.ANSWER_BYTES), type="output_text", annotations=[], logprobs=[])
        message = ResponseOutputMessage(id=f"msg_{n}", content=[part], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *arguments, **options):
        raise NotImplementedError("the comparison does not stream")


async def run(agent, session, first, n):
    began = time.monotonic()
    for i in range(first, first + n):
        await Runner.run(agent, words.text(i, conversation.PROMPT_BYTES), session=session)
    return time.monotonic() - began


async def read(session):
    return len(await session.get_items())


set_tracing_disabled(True)
loop = asyncio.new_event_loop()
writer = Agent(name="writer", instructions="You write.", model=Simulation())
harbour = SQLAlchemySession.from_url("harbour", url=URL.replace("postgresql://", "postgresql+asyncpg://"), create_tables=True)
figures = conversation.measure(
    URL, lambda first, n: loop.run_until_complete(run(writer, harbour, first, n)), lambda: loop.run_until_complete(read(harbour))
)
loop.run_until_complete(harbour.engine.dispose())
print(json.dumps(figures))
