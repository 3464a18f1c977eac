"""Fields of requests. Written by `python3 clients/generate`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Required, TypedDict
from uuid import UUID

from . import enums


class AddTask(TypedDict, total=False):
    """The task that is added each time. The agent is looked up at that time, because its file may have changed."""

    agent: Required[str]
    """Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`."""
    campaign_id: Required[str | UUID]
    instance: str
    prompt: Required[str]
    session: enums.SessionMode | None


class AnswerResult(TypedDict, total=False):
    """The result of an answer. It comes from a task, or from a rerun of a turn."""

    case: Required[str]
    failed_checks: Required[int]
    """Number of checks that it failed."""
    micros: Required[int]
    """Cost in millionths."""
    passed: bool | None
    """Null: it is missing, or not judged."""
    repetition: Required[int]
    """From 1."""
    session_id: str | UUID | None
    """The session of the turn that was made again."""
    task_id: str | UUID | None
    tokens: Required[int]
    took_ms: int | None
    turn: int | None
    variant: Required[str]


class BlackboardPatch(TypedDict, total=False):
    expected_version: int | None
    """The change is refused unless this is the current version."""
    patch: Required[Mapping[str, Any]]
    """A JSON Merge Patch (RFC 7396): null removes a key."""


class BlackboardSet(TypedDict, total=False):
    document: Required[Mapping[str, Any]]
    expected_version: Required[int]
    """The version that it replaces; 0 before the first one."""


class BudgetChange(TypedDict, total=False):
    key: str | None
    """The name of the agent or the user; none for the day."""
    micros: int | None
    on_limit: Literal["wait", "fail"] | None
    """Effect of the limits on tasks: they wait until there is space, or fail."""
    owner: Required[Literal["agent", "user", "day"]]
    """Kind of owner whose budget is set here."""
    soft_micros: int | None
    """Spending in money at which a warning is written, once per day for a day."""
    soft_tokens: int | None
    """Spending in tokens at which a warning is written, once per day for a day."""
    tokens: int | None


class BulkTask(TypedDict, total=False):
    """One task of a bulk request."""

    agent: Required[str]
    """Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`."""
    attachments: Sequence[NewAttachment]
    """Files that the task is given with its prompt: images, PDF or text, or files of other tasks of the
    campaign.
    """
    budget: Limit
    depends_on: Sequence[TaskLink]
    """Tasks to wait for. The task runs when all of them have ended, and gets their results."""
    flow_templates: Sequence[str] | None
    """The flow templates that the agent may start in the task; an empty list: none. By default those of the
    agent's file.
    """
    idempotency_key: str | None
    """Idempotency key: the same request under the same key returns the same task."""
    instance: str
    metadata: Mapping[str, Any]
    """Keys and values to find the task by; at most 4096 bytes of JSON."""
    node: str | None
    """Node that the task belongs to: the name of the node's file. By default the session stays at its node."""
    on_failure: enums.OnFailure
    """Reaction to a failed or cancelled task in `depends_on`."""
    parameters: Mapping[str, Any]
    """Named values that its calls contain, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON.
    They win over those of the campaign.
    """
    priority: int | None
    """Priority; 0 is the most urgent."""
    prompt: Required[str]
    result_schema: Mapping[str, Any] | None
    """JSON Schema that the answer has to match, at most 32768 bytes. The result is then JSON, too. By default
    that of the agent's file.
    """
    run_at: datetime | str | None
    session: enums.SessionMode | None
    tags: Sequence[str]
    within_secs: int | None
    """Seconds that the answer may take, from now, from `run_at` or from the end of the tasks that it waits for:
    3600 to 604800. Providers with a batch API are then asked for it at a lower price.
    """


class CampaignEdit(TypedDict, total=False):
    brief: str | None
    client_context: str | None
    """Null removes it."""
    expected_version: int | None
    """The edit is refused unless this is the current version."""
    parameters: Mapping[str, Any] | None
    """Parameters by name; null removes one, others stay."""


class CancelFlow(TypedDict, total=False):
    reason: str


class CancelJob(TypedDict, total=False):
    reason: str


class CancelTask(TypedDict, total=False):
    reason: str


class Continuation(TypedDict, total=False):
    """The question to the agent of the task, in its own conversation, when all children have ended."""

    prompt: Required[str]


class DisableWebhook(TypedDict, total=False):
    reason: str
    """Shown with the webhook while it is disabled."""


class EditFact(TypedDict, total=False):
    text: Required[str]


class EraseCampaign(TypedDict, total=False):
    reason: str
    """Stays in the receipt: it must not name what is erased."""


class EstimateSession(TypedDict, total=False):
    prompt: str | None
    """The prompt. Without it, `…` stands for it."""


class EstimateTask(TypedDict, total=False):
    agent: Required[str]
    """The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`."""
    attachments: Sequence[NewAttachment]
    """Files that the task is given with its prompt."""
    instance: str
    node: str | None
    """The node of the task: the name of a node file. By default the current node of the session."""
    prompt: str | None
    """The prompt. Without it, `…` stands for it."""
    session: enums.SessionMode | None


class FlowQuestion(TypedDict, total=False):
    inputs: Mapping[str, str | Sequence[str]]
    template: Required[str]


FlowRetry = TypedDict("FlowRetry", {"from": 'Required[str]'}, total=False)


class ForkSession(TypedDict, total=False):
    instance: str | None
    """Name of the new instance. Default: `main-fork-1` for a session of `main`, or the next free number, also if
    the turn is of another session.
    """
    turn: int | None
    """The last turn that the fork has, which must be done. Another session of the same conversation is searched
    for it, too: the numbers continue from session to session. A turn that a fork has taken over is forked
    from the session that ran it. Default: the last turn of the session that is done.
    """


class HoldJob(TypedDict, total=False):
    reason: str
    """Named in the explanation of the job while it is held."""


class HoldLane(TypedDict, total=False):
    reason: str
    """Shown with the lane while it is held."""


class ImportedMemoryItem(TypedDict, total=False):
    at: str | None
    """The name of the item in refusals and warnings, such as its file; `/items/0` without one."""
    body: Required[str]
    expires_at: datetime | str | None
    kind: Required[enums.MemoryKind]
    name: Required[str]
    owner: str | None
    title: Required[str]


class InterruptAgent(TypedDict, total=False):
    how: enums.InterruptMode
    reason: str


class InterruptSession(TypedDict, total=False):
    how: enums.InterruptMode
    reason: str


class KeyRotation(TypedDict, total=False):
    overlap_secs: int
    """Time for which the old key stays valid."""


class Limit(TypedDict, total=False):
    """Null: no limit."""

    micros: int | None
    tokens: int | None


class LimitChange(TypedDict, total=False):
    experiments_micros: int | None
    """Limit of the budget that pays for reruns of turns, in money. Without one, models with a price are not
    rerun.
    """
    micros: int | None
    on_limit: Literal["wait", "fail"] | None
    """Effect of the limits on tasks: they wait until there is space, or fail."""
    soft_micros: int | None
    """Spending in money at which a warning is written, once."""
    soft_tokens: int | None
    """Spending in tokens at which a warning is written, once."""
    tokens: int | None


class MemoryImport(TypedDict, total=False):
    items: Required[Sequence[ImportedMemoryItem]]
    replace: bool
    """True: items that exist with another text get a new version. Without it, they are refused."""


class NewAttachment(TypedDict, total=False):
    """A file for a task: its content, or a file of another task of the campaign."""

    content: str | None
    """The content in Base64: a PNG, JPEG, GIF or WebP image, a PDF, or text in UTF-8."""
    file: str | None
    """Name of an output file of that task, or of one of its attachments."""
    media_type: str | None
    """The type according to its sender. A content that contradicts it is refused."""
    name: str | None
    """Name that the model is told, without folders. By default that of `file`."""
    task: str | UUID | None
    """The task of the campaign that has the file. Together with `file`, in place of `content`."""


class NewBulkAction(TypedDict, total=False):
    action: Required[enums.TaskAction]
    expected_count: int | None
    """Nothing is done unless exactly so many tasks match."""
    filter: Required[TaskFilter]
    reason: str
    """Shown with the tasks that it cancels."""


class NewCampaign(TypedDict, total=False):
    brief: str
    budget: Limit
    client_context: str | None
    metadata: Mapping[str, Any]
    """Keys and values to find it by; at most 4096 bytes of JSON."""
    name: Required[str]
    on_limit: Literal["wait", "fail"] | None
    """Effect of the budget on tasks at its limit: they wait until there is space, or fail."""
    parameters: Mapping[str, Any]
    """Named values that each call contains, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON."""
    tags: Sequence[str]


class NewChildren(TypedDict, total=False):
    children: Required[Sequence[BulkTask]]
    continuation: Required[Continuation]


class NewEvalRun(TypedDict, total=False):
    answers: Required[Sequence[AnswerResult]]
    began_at: Required[datetime | str]
    """The moment at which the first answer was requested."""
    eval: Required[str]
    judge_micros: Required[int]
    """Cost of the judge, in millionths."""
    run: Required[str]
    unfinished: Required[int]
    """Answers that are missing or not judged yet."""
    variants: Required[Sequence[VariantResult]]


class NewFact(TypedDict, total=False):
    attribute: Required[str]
    """The aspect of the user that it is about: one fact of each is valid at a time."""
    expires_at: datetime | str | None
    """The moment at which it ends."""
    text: Required[str]


class NewFlow(TypedDict, total=False):
    inputs: Mapping[str, str | Sequence[str]]
    """Texts, and lists of texts for the inputs that are lists. One text for a list is its only item."""
    template: Required[str]


class NewKey(TypedDict, total=False):
    campaigns: Sequence[str | UUID] | None
    """The campaigns that it is bound to, at most 100: it reaches nothing else. All, if they are left out."""
    expires_in_secs: int | None
    """Never, if it is left out."""
    name: Required[str]
    scopes: Required[Sequence[enums.Scope]]


class NewMemoryItem(TypedDict, total=False):
    body: Required[str]
    expected_version: int | None
    """The version to replace; 0 for an item that does not exist yet."""
    expires_at: datetime | str | None
    """The moment from which agents no longer see it."""
    kind: Required[enums.MemoryKind]
    name: str | None
    """A name in the form of agent names: `tone-of-voice`. Optional for entries of a journal only."""
    owner: str | None
    """The agent of a journal; edicts and records have none."""
    title: Required[str]


class NewPost(TypedDict, total=False):
    audience: Sequence[str] | None
    """Its readers beside those that the text mentions: agents, their other instances as `curator_2` or
    `curator/2`, `operator`, or `all`. Without it and without a mention, the lead is asked.
    """
    reply_to: str | UUID | None
    """The post that it answers."""
    text: Required[str]


class NewTask(TypedDict, total=False):
    agent: Required[str]
    """The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`."""
    attachments: Sequence[NewAttachment]
    """Files that the task is given with its prompt: images, PDF or text, or files of other tasks of the
    campaign.
    """
    budget: Limit
    depends_on: Sequence[TaskLink]
    """It runs when all of these tasks have ended, with their results in its prompt."""
    flow_templates: Sequence[str] | None
    """The flow templates that the agent may start in the task; an empty list: none. By default those of the
    agent's file.
    """
    instance: str
    metadata: Mapping[str, Any]
    """Keys and values to find it by; at most 4096 bytes of JSON. An idempotency key does not compare them."""
    node: str | None
    """The node of the task: the name of a node file. By default the current node of the session."""
    on_failure: enums.OnFailure
    """If one of those has failed or was cancelled."""
    parameters: Mapping[str, Any]
    """Named values that its calls contain, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON.
    They win over those of the campaign.
    """
    priority: int | None
    prompt: Required[str]
    result_schema: Mapping[str, Any] | None
    """JSON Schema that the answer has to match, at most 32768 bytes. The result is then JSON, too. By default
    that of the agent's file.
    """
    run_at: datetime | str | None
    session: enums.SessionMode | None
    tags: Sequence[str]
    within_secs: int | None
    """Seconds that the answer may take, from now, from `run_at` or from the end of the tasks that it waits for:
    3600 to 604800. Providers with a batch API are then asked for it at a lower price.
    """


class NewWebhook(TypedDict, total=False):
    campaign_id: str | UUID | None
    kinds: Sequence[enums.WebhookKind]
    url: Required[str]


class Nothing(TypedDict, total=False):
    """Takes no fields."""


class PauseAgent(TypedDict, total=False):
    reason: str


class PauseAgentEverywhere(TypedDict, total=False):
    reason: str


class PauseCampaign(TypedDict, total=False):
    reason: str
    """Shown with the campaign's tasks while it is paused."""


class PauseGroup(TypedDict, total=False):
    reason: str
    """Named in the explanation of each job that waits for the end of the pause."""


class PauseQueue(TypedDict, total=False):
    reason: str
    """Shown with the queue while it is paused."""


class PauseSchedule(TypedDict, total=False):
    reason: str
    """Shown with the schedule while it is paused."""


class PreviewAgentContext(TypedDict, total=False):
    agent: Required[str]
    """The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`."""
    instance: str
    prompt: str | None
    """The prompt. Without it, `…` stands for it."""


class PreviewedBulkAction(TypedDict, total=False):
    action: Required[enums.TaskAction]
    filter: Required[TaskFilter]


class PriorityChange(TypedDict, total=False):
    priority: Required[int]
    """0 is the most urgent; 100 is the default."""


class PutCampaignUser(TypedDict, total=False):
    user: str | None
    """English letters, digits, and `. _ @ + -` behind the first; null: no user in particular."""


class RecurringTask(TypedDict, total=False):
    catch_up_secs: int
    """Seconds after a missed moment during which the task is still added."""
    cron: Required[str]
    """Second, minute, hour, day of month, month, day of week."""
    task: Required[AddTask]
    time_zone: str


class ReplaySince(TypedDict, total=False):
    since: Required[datetime | str]


class RerunTurn(TypedDict, total=False):
    agent_file: str | None
    """The text of an agent file: its prompt, skills, tools, model and options replace those of the call."""
    call: int | None
    """Number of the call in its turn, from 1. Without it, the first."""
    metadata: Mapping[str, Any]
    """Your own words, to find the rerun by: a JSON object of at most 4096 bytes."""
    model: str | None
    """The model, of the same provider unless the agent file names another one."""
    temperature: float | None
    times: int | None
    """Number of reruns. Without it, one."""


class ResetAgent(TypedDict, total=False):
    fresh: bool
    """True: the successors remember nothing."""


class ResetAgents(TypedDict, total=False):
    fresh: bool
    """True: the successors remember nothing."""


class ResetSession(TypedDict, total=False):
    fresh: bool
    """True: the successor remembers nothing."""


class ResumeCredential(TypedDict, total=False):
    provider: str | None
    """Its provider. Required if credentials of several providers with this name are paused."""


class SecretRotation(TypedDict, total=False):
    overlap_secs: int
    """Seconds during which the previous secret signs too: at most 30 days."""


class TaskFilter(TypedDict, total=False):
    """A filter for tasks. Absent keys match everything."""

    agent: str | None
    campaign_id: str | UUID | None
    created_after: datetime | str | None
    created_before: datetime | str | None
    ended_after: datetime | str | None
    """Tasks that ended at this moment or later."""
    except_campaign_id: str | UUID | None
    """All campaigns but this one."""
    instance: str | None
    metadata: Mapping[str, Any] | None
    """All of these keys with these values."""
    state: enums.TaskState | None
    tags: Sequence[str]
    """All of these."""
    text: str | None
    """In the prompt, whether in capitals or not."""


class TaskLimitChange(TypedDict, total=False):
    micros: int | None
    soft_micros: int | None
    """Spending in money at which a warning is written, once."""
    soft_tokens: int | None
    """Spending in tokens at which a warning is written, once."""
    tokens: int | None


class TaskLinkItem(TypedDict, total=False):
    """A task that comes before this one in the same request, by its index from 0."""

    item: Required[int]


class TaskLinkKey(TypedDict, total=False):
    """A task that the same caller added under this idempotency key, earlier or before this one in the same
    request.
    """

    key: Required[str]


# A task that another one waits for.
TaskLink = str | UUID | TaskLinkItem | TaskLinkKey


class VariantResult(TypedDict, total=False):
    """The results of a variant in a run."""

    agent: Required[str]
    answers: Required[int]
    """Finished answers."""
    median_ms: int | None
    """Median time from the start of a task or of a call to its end."""
    micros: Required[int]
    """Cost in millionths, without the judge."""
    passed: Required[int]
    """Answers that passed all checks."""
    tokens: Required[int]
    variant: Required[str]
