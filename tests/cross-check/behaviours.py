"""The behaviours: each function makes one observation with one provider, and returns a remark.

A function raises `NotOffered` only after it has seen that the server lacks what the behaviour needs, and `Failed` otherwise.
"""

import contextlib
import json
import os
import pathlib
import re
import time
from concurrent.futures import ThreadPoolExecutor

from servers import WRONG_KEY

from service import Failed, NotOffered

SAID, SAID_AGAIN = "The harbour opens at dawn 🚢.", "I said so before."
SCHEMA = {
    "type": "object",
    "properties": {"ships": {"type": "integer"}, "open": {"type": "boolean"}},
    "required": ["ships", "open"],
    "additionalProperties": False,
}


def expect(truth, what):
    if not truth:
        raise Failed(what)


def an_answer_arrives_unchanged(column):
    task = column.run("When does it open?")
    expect(task["result"] == SAID, f"the result is {task['result']!r}")


def an_answer_is_streamed(column):
    task = column.add("[[babble]]")
    pieces = list(pieces_of(column, task))
    result = column.service.ended(task)["result"] or ""
    expect(len(pieces) > 1, f"{len(pieces)} pieces were seen before the end")
    expect(
        result.startswith("la la") and pieces[0].strip() in result,
        f"the pieces begin with {pieces[0]!r:.40}, the result with {result!r:.40}",
    )
    return f"{len(pieces)} pieces"


def an_answer_that_fills_its_reserve_is_flagged(column):
    _, text = column.ask("[[babble]]", max_tokens=8)
    if not any(reason in text for reason in ['"length"', '"max_tokens"']):
        raise NotOffered("the server ignores the limit of an answer")
    flags = column.run("[[babble]]", "short")["turns"][-1]["flags"]
    expect(flags, "the turn has no flag")
    return ", ".join(flags)


def a_second_turn_continues_the_conversation(column):
    campaign = column.campaign()
    column.run("When does it open?", campaign=campaign)
    task = column.run("And [[again]]?", campaign=campaign)
    expect(task["turns"][-1]["number"] == 2, f"it is turn {task['turns'][-1]['number']}")
    expect(task["result"] == SAID_AGAIN, f"the server saw no history, and says {task['result']!r}")


def parallel_calls_of_tools_are_answered(column):
    task = column.run("[[calls]]", "tools")
    turn = task["turns"][-1]
    detail = column.service.call("GET", f"/v1/sessions/{turn['session_id']}/turns/{turn['number']}")
    names = [tool["tool"] for tool in detail["tools"]]
    expect(turn["calls"] == 2, f"the turn made {turn['calls']} calls of the model")
    expect(sorted(name.rpartition("__")[2] for name in names) == ["records_list", "status"], f"the tools are {detail['tools']}")
    expect(task["result"] == SAID, f"the result is {task['result']!r}")
    return f"{len(names)} tools in one answer"


def thinking_is_kept_apart(column):
    if "Ships sleep." not in column.ask("[[ponder]]")[1]:
        raise NotOffered("the server sends no thinking")
    task = column.run("[[ponder]]")
    expect(task["result"] == "At noon.", f"the result is {task['result']!r}")


def a_structured_result_matches_its_schema(column):
    task = column.service.ended(column.add("[[count]]", result_schema=SCHEMA))
    if task["state"] == "failed":
        format = {
            "openai": {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}},
            "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            "ollama": {"format": SCHEMA},
        }
        status, text = column.ask("[[count]]", **format[column.kind])
        if status == 200 and "ships" not in text:
            raise NotOffered("the server ignores the schema of a call")
    expect(task["state"] == "done", f"the task is {task['state']}: {task['error']}")
    result = task["result_json"]
    expect(isinstance(result.get("ships"), int) and isinstance(result.get("open"), bool), f"the result is {result}")
    return f"{len(task['turns'])} turn" + "s" * (len(task["turns"]) > 1)


def the_server_counts_the_tokens(column):
    turn = column.run("When does it open? [[counted]]")["turns"][-1]
    read = turn["input_tokens"] + turn["cache_read_tokens"] + turn["cache_creation_tokens"]
    if not read or not turn["output_tokens"]:
        usage = counts(column)
        if not any(value for key, value in usage.items() if key.endswith("_tokens") or key.endswith("eval_count")):
            raise NotOffered("the server counts no tokens")
    expect(read and turn["output_tokens"], f"the turn has {read} input tokens and {turn['output_tokens']} output tokens")
    return f"{read} + {turn['output_tokens']}"


def counts(column):
    """Asks the server for its counts as a plain client does."""
    answer = json.loads(column.ask("When does it open? [[counted]]")[1])
    return answer.get("usage", answer)


def cached_tokens_are_counted_apart(column):
    campaign = column.campaign()
    column.run("When does it open?", campaign=campaign)
    turn = column.run("And [[again]]?", campaign=campaign)["turns"][-1]
    if not turn["cache_read_tokens"]:
        counts(column)
        usage = counts(column)
        cached = [usage.get("cache_read_input_tokens"), (usage.get("prompt_tokens_details") or {}).get("cached_tokens")]
        if not any(cached):
            raise NotOffered("the server reports no cached tokens")
    expect(turn["cache_read_tokens"] > 0, "no token was read from the cache")
    return f"{turn['cache_read_tokens']} of {turn['cache_read_tokens'] + turn['input_tokens']}"


def an_unknown_model_fails_with_its_name(column):
    status, _ = column.ask("Hello", model="no-such-model")
    if status == 200:
        raise NotOffered("the server answers for any name of a model")
    task = column.run("Hello", "model", state="failed")
    expect(len(task["turns"]) <= 1, f"the task made {len(task['turns'])} turns")
    expect("does not have the model no-such-model" in task["error"], f"the error is {task['error']!r}")
    return task["error"]


def a_wrong_key_fails_and_names_the_setting(column):
    if column.server.ask("/v1/models", key=WRONG_KEY)[0] == 200:
        raise NotOffered("the server accepts any key")
    task = column.run("Hello", "key", state="failed")
    expect("refuses the key" in task["error"] and "credential_variable" in task["error"], f"the error is {task['error']!r}")
    expect(len(task["turns"]) <= 1, f"the task made {len(task['turns'])} turns")
    return task["error"]


def a_wrong_address_fails_and_names_the_setting(column):
    if column.kind == "ollama":
        # The service has one Ollama server, so the doctor looks at another one.
        told = column.service.command("doctor", "--set", f"ollama.base_url={column.server.address}/elsewhere")
        expect("correct ollama.base_url" in told, f"the doctor says {told}")
        return next(line for line in told.splitlines() if "correct ollama.base_url" in line)
    path = {"openai": "/elsewhere/chat/completions", "anthropic": "/elsewhere/messages"}[column.kind]
    if column.server.ask(path, {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]})[0] == 200:
        raise NotOffered("the server answers at any address")
    task = column.run("Hello", "lost", state="failed")
    expect("base_url" in task["error"], f"the error is {task['error']!r}")
    return task["error"]


def a_busy_server_delays_the_task_without_an_attempt(column):
    mock = column.server.mock
    if not mock:
        with ThreadPoolExecutor(16) as pool:
            statuses = set(pool.map(lambda _: column.ask("When does it open?")[0], range(64)))
        if statuses == {200}:
            raise NotOffered("the server queues 64 calls at once, and refuses none")
        raise Failed(f"64 calls got {statuses}, and the service was not asked")
    mock.ask("/__aimock/chaos", {"rateLimitRate": 1})
    try:
        task = column.add("When does it open?")
        told = wait_for(lambda: waiting(column, task, "used up no attempt"), "the task did not wait")
    finally:
        mock.ask("/__aimock/chaos", method="DELETE")
    detail = column.service.ended(task)
    expect(detail["result"] == SAID, f"the task is {detail['state']}: {detail['error']}")
    turns = detail["turns"]
    expect({turn["attempt"] for turn in turns} == {1}, f"attempts were used: {[turn['attempt'] for turn in turns]}")
    return f"{len(turns)} turns; {told}"


def waiting(column, task, words):
    """Returns the explanation of a task if it has these words."""
    told = column.service.explained(task)
    return words in told and told


def wait_for(condition, what, seconds=30):
    until = time.monotonic() + seconds
    while not (found := condition()):
        expect(time.monotonic() < until, what)
        time.sleep(0.1)
    return found


def a_task_survives_a_crash_of_its_server(column):
    task = column.add("[[babble]]")
    first_piece(column, task)
    # Behind a proxy, the server that answers crashes.
    server = column.server.mock or column.server
    server.crash()
    try:
        told = wait_for(lambda: waiting(column, task, "backoff"), "the turn did not fail")
    finally:
        server.start()
    detail = column.service.ended(task)
    expect(detail["state"] == "done", f"the task is {detail['state']}: {detail['error']}")
    n_words = len(detail["result"].split())
    # The mock server says 400 words, the model as many as its limit allows.
    expect(n_words == 400 if column.server.mock else n_words > 400, f"the answer has {n_words} words")
    errors = [turn["error"] for turn in detail["turns"] if turn["error"]]
    return f"{len(detail['turns'])} turns; {errors}; {told}"


def first_piece(column, task):
    if not next(pieces_of(column, task), None):
        raise Failed(f"no piece of the answer was seen: {column.service.ended(task)['error']}")


def pieces_of(column, task):
    """Yields the pieces of an answer as the service shows them."""
    for kind, event in column.service.events(task):
        if kind == "turn.progress" and event["data"].get("text"):
            yield event["data"]["text"]


def a_conversation_that_is_too_long_is_compacted(column):
    campaign = column.campaign()
    # An endpoint whose window is configured wider than it is: the server refuses, not the service.
    agent = "plain" if column.kind == "ollama" else "wide"
    filler = "The ship waits for the tide. " * 100
    for number in range(1, 13):
        task = column.run(f"[[too long]] {filler}", agent, campaign)
        errors = [turn["error"] for turn in task["turns"] if turn["error"]]
        if errors:
            session = column.service.call("GET", f"/v1/sessions/{task['turns'][-1]['session_id']}")
            states = [compaction["outcome"] for compaction in session["compactions"]]
            expect("applied" in states, f"the compactions are {session['compactions']}")
            return f"turn {number} was refused: {errors[0]}; compactions: {states}"
    raise Failed("12 turns were not refused")


def a_prompt_that_is_too_long_fails_with_the_reason(column):
    agent = "plain" if column.kind == "ollama" else "wide"
    task = column.service.ended(column.add("[[far too long]] " + "The ship waits for the tide. " * 1000, agent))
    expect(task["state"] == "failed", f"the task is {task['state']}")
    expect("window" in task["error"] or "fit" in task["error"], f"the error is {task['error']!r}")
    return task["error"]


def a_cancellation_closes_the_connection(column):
    task = column.add("[[babble]]")
    first_piece(column, task)
    before = connections(column)
    column.service.call("POST", f"/v1/tasks/{task}/cancel", {"reason": "no need"})
    detail = column.service.ended(task)
    expect(detail["state"] == "cancelled", f"the task is {detail['state']}")
    wait_for(lambda: connections(column) < before, f"{before} connections are still open", 5)
    return f"{before} connections, then {connections(column)}"


def connections(column):
    """Counts the open connections of the service to the server, from the kernel's tables."""
    own = set()
    for descriptor in pathlib.Path(f"/proc/{column.service.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(descriptor))
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in list(table)[1:]]
    to_server = [row for row in rows if int(row[2].rpartition(":")[2], 16) == column.server.port and row[3] == "01"]
    return sum(f"socket:[{row[9]}]" in own for row in to_server)


def the_doctor_finds_the_window_of_the_model(column):
    path = {"ollama": "/api/show"}.get(column.kind, "/v1/models")
    status, text = column.server.ask(path, {"model": "tiny"} if column.kind == "ollama" else None)
    listed = re.search(r'"(n_ctx|max_input_tokens|max_model_len|\w*context_length)": *(\d+)', text)
    if status != 200 or not listed:
        raise NotOffered("the server does not tell the window of a model")
    findings = json.loads(column.service.command("doctor", "--json"))
    texts = [finding["what"] for finding in findings if finding["what"].startswith(f"tiny of {column.provider}, ")]
    expect(
        len(texts) == 1 and f"window {listed[2]} tokens" in texts[0],
        f"the server lists {listed[0]}, and the doctor says {texts}",
    )
    return texts[0]


ALL = [
    an_answer_arrives_unchanged,
    an_answer_is_streamed,
    an_answer_that_fills_its_reserve_is_flagged,
    a_second_turn_continues_the_conversation,
    parallel_calls_of_tools_are_answered,
    thinking_is_kept_apart,
    a_structured_result_matches_its_schema,
    the_server_counts_the_tokens,
    cached_tokens_are_counted_apart,
    an_unknown_model_fails_with_its_name,
    a_wrong_key_fails_and_names_the_setting,
    a_wrong_address_fails_and_names_the_setting,
    a_busy_server_delays_the_task_without_an_attempt,
    a_task_survives_a_crash_of_its_server,
    a_conversation_that_is_too_long_is_compacted,
    a_prompt_that_is_too_long_fails_with_the_reason,
    a_cancellation_closes_the_connection,
    the_doctor_finds_the_window_of_the_model,
]
