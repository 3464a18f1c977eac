"""Data of events, as it is sent. Newer services may send further kinds and fields. Written by `python3 clients/generate`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, overload


class AgentPausedData(TypedDict):
    """Data of `agent.paused`. A person has paused an agent: it begins no more turns in the campaign, or in all
    campaigns if `campaign_id` is null.
    """

    agent: str
    """Name of the agent."""
    reason: str
    """Reason of the pause, as the person gave it."""


class AgentResumedData(TypedDict):
    """Data of `agent.resumed`. A pause of an agent has ended: a person has resumed it."""

    agent: str
    """Name of the agent."""
    reason: str
    """Reason of the pause, as the person gave it."""


class BlackboardChangedData(TypedDict):
    """Data of `blackboard.changed`. A person or an agent has changed the blackboard. `task_id` is that of the
    turn that changed it.
    """

    agent: str | None
    """Agent that changed it. Null for people and programs."""
    paths: int
    """Number of places that changed."""
    version: int
    """Version of the document after the change."""


class BudgetRefusedData(TypedDict):
    """Data of `budget.refused`. A task has failed, because a budget has no space for its next call. If a turn
    was running, `turn.failed` comes before, and `session_id` is that of the turn.
    """

    error: str
    """Error of the task: the budget, its limit and what is left."""


class BudgetWarningDataLimit(TypedDict):
    """Limit. Null: none."""

    micros: int | None
    """Money in millionths of the currency."""
    tokens: int | None
    """Tokens."""


class BudgetWarningDataSoft(TypedDict):
    """Soft limit. Null: none."""

    micros: int | None
    """Money in millionths of the currency."""
    tokens: int | None
    """Tokens."""


class BudgetWarningDataSpent(TypedDict):
    """Amount that is spent."""

    micros: int | None
    """Money in millionths of the currency."""
    tokens: int | None
    """Tokens."""


class BudgetWarningData(TypedDict):
    """Data of `budget.warning`. A budget has reached its soft limit, once per period. `campaign_id` and
    `task_id` are those of the call that reached it.
    """

    key: str
    """Id of the campaign or task, name of the agent or user, empty for the budget of a day."""
    limit: BudgetWarningDataLimit
    """Limit. Null: none."""
    owner: Literal["agent", "campaign", "day", "task", "user"]
    """Owner of the budget."""
    period: str | None
    """Day of a budget that begins again each day; otherwise null."""
    soft: BudgetWarningDataSoft
    """Soft limit. Null: none."""
    spent: BudgetWarningDataSpent
    """Amount that is spent."""


class CampaignEditedData(TypedDict):
    """Data of `campaign.edited`. Brief, client context or parameters of a campaign have a new version."""

    version: int
    """Number of the new version."""


class CampaignErasingData(TypedDict):
    """Data of `campaign.erasing`. The erasure of a campaign has cancelled some of its open tasks. The erasure
    removes the event with the campaign.
    """

    cancelled_tasks: int
    """Tasks that were cancelled in this step."""
    open_tasks: int
    """Tasks that have not ended yet."""


class ConversationMovedDataSkipped(TypedDict):
    because: str
    """Reason in words."""
    entry: str
    """Entry of the chain: `provider/model`."""
    usable_at: str | None
    """Time from which it is tried again. Null: unknown, or only this turn skips it."""


class ConversationMovedData(TypedDict):
    """Data of `conversation.moved`. Another model of the agent's chain has taken over a conversation, or has
    given it back. `session.rebuilt` follows.
    """

    skipped: list[ConversationMovedDataSkipped]
    """Earlier entries of the chain that this turn has skipped."""
    to: str
    """New entry of the chain: `provider/model`."""


class FactsReadData(TypedDict):
    """Data of `facts.read`. A model has read new prompts of a session for facts about its user."""

    found: int
    """Facts in the answer of the model."""
    new: int
    """Facts that were not known before."""
    reason: str | None
    """Reason for which the answer was refused. Null if it was accepted."""
    requests: int
    """Prompts of the user that were read."""
    too_many: int
    """Facts that were not stored, because the user has as many as `facts.user_max` allows."""
    unsaid: int
    """Facts of the answer that were dropped, because the prompts do not say them."""


class FactsRefusedData(TypedDict):
    """Data of `facts.refused`. A model was asked for facts about the user of a session, and none of its answers
    was valid.
    """

    found: int
    """Facts in the answer of the model."""
    new: int
    """Facts that were not known before."""
    reason: str | None
    """Reason for which the answer was refused. Null if it was accepted."""
    requests: int
    """Prompts of the user that were read."""
    too_many: int
    """Facts that were not stored, because the user has as many as `facts.user_max` allows."""
    unsaid: int
    """Facts of the answer that were dropped, because the prompts do not say them."""


class FlowEndedData(TypedDict):
    """Data of `flow.ended`. The last open task of a flow has ended. After a retry the flow ends again."""

    cancelled: int
    """Tasks that were cancelled."""
    done: int
    """Tasks that are done."""
    failed: int
    """Tasks that have failed."""
    flow_id: str
    """Id of the flow."""
    state: Literal["done", "failed", "cancelled"]
    """State of the flow: `failed` if one of its tasks has failed, otherwise `cancelled` if one was cancelled."""
    template: str
    """Name of its template."""


class FlowPausedData(TypedDict):
    """Data of `flow.paused`. A person has paused a flow: none of its waiting tasks begins."""

    flow_id: str
    """Id of the flow."""
    template: str
    """Name of its template."""


class FlowResumedData(TypedDict):
    """Data of `flow.resumed`. A person has resumed a paused flow."""

    flow_id: str
    """Id of the flow."""
    template: str
    """Name of its template."""


# Data of `flow.retried`. A flow runs again from one of its steps.
FlowRetriedData = TypedDict("FlowRetriedData", {"flow_id": 'str', "from": 'str', "tasks": 'int', "template": 'str'})


class FlowStartedData(TypedDict):
    """Data of `flow.started`. A flow was started, and its tasks were added."""

    flow_id: str
    """Id of the flow."""
    tasks: int
    """Number of its tasks."""
    template: str
    """Name of its template."""


class MemoryPublishedData(TypedDict):
    """Data of `memory.published`. An edict, a record or an entry of a journal was written, or has a new version.
    `task_id` is that of the turn that wrote it.
    """

    author: str
    """Person, program or agent that made the change."""
    id: str
    """Id of the item."""
    kind: Literal["edict", "record", "journal"]
    """Kind of the item."""
    name: str
    """Name of the item."""
    origin: Literal["operator", "agent"]
    """A person or program (`operator`), or a turn of an agent."""
    owner: str | None
    """Owner of a journal, by its name on the board. Null for edicts and records."""
    version: int
    """Version of the item, counted from 1."""


class MemoryRevokedData(TypedDict):
    """Data of `memory.revoked`. An edict, a record or an entry of a journal was revoked, so that agents do not
    read it any more.
    """

    author: str
    """Person, program or agent that made the change."""
    id: str
    """Id of the item."""
    kind: Literal["edict", "record", "journal"]
    """Kind of the item."""
    name: str
    """Name of the item."""
    origin: Literal["operator", "agent"]
    """A person or program (`operator`), or a turn of an agent."""
    owner: str | None
    """Owner of a journal, by its name on the board. Null for edicts and records."""
    version: int
    """Version of the item, counted from 1."""


class NodeEnteredData(TypedDict):
    """Data of `node.entered`. A session has received the instructions of a node."""

    node: str
    """Name of the node."""
    said_again: bool
    """The session was at this node before, and its successor or its next turn gets the instructions again."""


class PostAddedData(TypedDict):
    """Data of `post.added`. A person, an agent or the service has posted on the board. `task_id` and
    `session_id` are those of the turn that posted.
    """

    audience: list[str]
    """Names that may read the post; `all` for everyone."""
    id: str
    """Id of the post."""
    origin: Literal["operator", "agent", "system"]
    """A person or program (`operator`), a turn of an agent, or the service itself."""
    reply_to: str | None
    """Id of the post that it answers."""
    sender: str
    """Name on the board: an agent, `operator` or `system`."""
    seq: int
    """Place on the board, counted from 1."""


class SessionCompactedDataPrompts(TypedDict):
    """Prompts of people that the context still has. Null: the compaction is older than this count."""

    archived: int
    """Prompts that are in the archive only."""
    kept: int
    """Prompts that are kept word for word."""
    sentences: int
    """Sentences of archived prompts that are kept word for word."""
    shortened: int
    """Kept prompts whose middle is in the archive only."""


class SessionCompactedData(TypedDict):
    """Data of `session.compacted`. The context of a session shows a summary in place of older messages from now
    on.
    """

    cause: Literal["auto", "overflow", "manual", "inherited"]
    """`auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
    `manual`: a person; `inherited`: of the predecessor.
    """
    generation: int
    """Number of the compaction in its session, counted from 1."""
    parent: int
    """Generation that it continues. 0: none."""
    prompts: SessionCompactedDataPrompts | None
    """Prompts of people that the context still has. Null: the compaction is older than this count."""
    rung: str | None
    """Step that wrote the summary: `first`, `retry`, `alternate` (another model) or `extract` (no model). Null:
    unknown.
    """
    tokens_after: int | None
    """Tokens after. Null: unknown."""
    tokens_before: int
    """Tokens of the history before."""


class SessionCompactionNotNeededData(TypedDict):
    """Data of `session.compaction_not_needed`. A person asked for a compaction, and the session has nothing to
    compact.
    """

    because: str
    """Reason in words."""
    cause: Literal["auto", "overflow", "manual", "inherited"]
    """`auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
    `manual`: a person; `inherited`: of the predecessor.
    """
    job_id: int
    """Job of the request."""


class SessionCompactionRefusedDataRefused(TypedDict):
    refusals: list[str]
    """Faults: `no_answer`, `empty`, `declined`, `missing_sections`, `lost_pins`, `too_long`."""
    rung: str
    """Step that wrote the summary: `first`, `retry`, `alternate` or `extract`."""


class SessionCompactionRefusedData(TypedDict):
    """Data of `session.compaction_refused`. At least one summary of a compaction was refused by the checks, also
    if another one was accepted.
    """

    accepted: str | None
    """Step whose summary was accepted. Null: none, and a person has to decide."""
    cause: Literal["auto", "overflow", "manual", "inherited"]
    """`auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
    `manual`: a person; `inherited`: of the predecessor.
    """
    generation: int
    """Number of the compaction in its session, counted from 1."""
    refused: list[SessionCompactionRefusedDataRefused]
    """The refused summaries."""


class SessionForkedData(TypedDict):
    """Data of `session.forked`. A new conversation has begun from a turn of another one."""

    agent: str
    """Agent of the new conversation."""
    forked_at_turn: int
    """Last turn that it has taken over."""
    forked_from_session: str
    """Session that it was made from."""
    inherited_messages: int
    """Messages that it has taken over."""
    inherited_summary: bool
    """It has taken over a summary."""
    instance: str
    """Its instance."""


class SessionOpenedData(TypedDict):
    """Data of `session.opened`. The turn that begins has opened the first session of its conversation, or a
    session that no later task continues.
    """

    ephemeral: bool
    """The session belongs to this task alone (`session_mode` `none`)."""


class SessionRebuiltDataLeftOut(TypedDict):
    """Older messages that were too long to be taken over. Null: none."""

    first_turn: int
    """First of their turns."""
    last_turn: int
    """Last of their turns."""
    messages: int
    """Number of messages."""


class SessionRebuiltData(TypedDict):
    """Data of `session.rebuilt`. The turn that begins has opened a new session for a conversation that had one
    before.
    """

    because: Literal["new", "prompt_changed", "model_changed", "provider_changed", "context_full", "expired", "reset", "lost", "poisoned", "fresh", "ended", "campaign_closed"]
    """Reason for the new session: `lost`: the provider no longer has the old one; `poisoned`: it rejects the old
    conversation; `ended`: the old one was made for one task.
    """
    inherited_messages: int
    """Messages that the new session has taken over."""
    inherited_summary: bool
    """It has taken over a summary."""
    left_out: SessionRebuiltDataLeftOut | None
    """Older messages that were too long to be taken over. Null: none."""


class SessionResetData(TypedDict):
    """Data of `session.reset`. A person has requested that the next task of a session opens a successor."""

    fresh: bool
    """The successor begins empty."""


class SessionUncompactedData(TypedDict):
    """Data of `session.uncompacted`. A person has undone the compaction that a session shows."""

    generation: int
    """Generation that the session shows now. 0: none."""


class TaskCancelledData(TypedDict):
    """Data of `task.cancelled`. A task was cancelled while no turn of it ran."""

    because: NotRequired[str]
    """In place of `reason`: a worker found the task cancelled, or its job had ended."""
    reason: NotRequired[str]
    """Reason of the cancellation by a person, a program or another task."""


class TaskFailedData(TypedDict):
    """Data of `task.failed`. A task has failed outside of a turn: no turn of it can begin, or its worker was
    lost in the last attempt.
    """

    because: NotRequired[str]
    """In place of `error`: error of the job that was lost."""
    error: NotRequired[str]
    """Error of the task, if its turn could not begin."""


class TaskInterruptedData(TypedDict):
    """Data of `task.interrupted`. A person has interrupted the running turn of a task. `turn.interrupted` or
    another end follows.
    """

    how: Literal["soft", "hard"]
    """`hard`: at once; `soft`: at the next point at which nothing is cut in two."""
    reason: str
    """Reason, as the person gave it."""


class TaskQueuedData(TypedDict):
    """Data of `task.queued`. A task was added, in any way, or was put on the queue again."""

    again: NotRequired[bool]
    """`true`: the task had ended and is retried. Missing for a new task."""
    agent: NotRequired[str]
    """Agent of a new task. Missing if it was put on the queue again."""
    instance: NotRequired[str]
    """Its instance, with the agent."""


class TaskWaitingData(TypedDict):
    """Data of `task.waiting`. The turn of a task may not begin yet: its agent or flow is paused, its provider is
    busy, or a budget or rate limit has no space. Written once, until the turn begins or the task ends. Also
    written once for a turn that has begun, when it waits for a message batch.
    """

    because: str
    """Reason in words."""


class TurnDoneData(TypedDict):
    """Data of `turn.done`. A turn has ended with an answer, and its task is done."""

    ahead: bool | None
    """On Claude: the CLI was started before the turn. Null elsewhere."""
    began: Literal["new", "resumed", "restored", "rewritten"] | None
    """On Claude: state of the transcript at the begin. `restored`: it was missing or damaged; `rewritten`: it
    was lost and made again from the messages. Null elsewhere.
    """
    calls: int | None
    """Calls of the provider. Null on Claude, whose CLI makes them itself."""
    files: NotRequired[int]
    """Number of output files, if there are any."""
    input_tokens: int | None
    """Tokens of all prompts of the turn, cached ones included. Null: the provider reported none."""
    output_tokens: int | None
    """Tokens of all answers of the turn. Null: the provider reported none."""
    result_json: NotRequired[Any]
    """Structured result of a task with a result schema."""
    tools: int | None
    """Tool calls that the service ran. Null on Claude."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class TurnFailedData(TypedDict):
    """Data of `turn.failed`. A turn has failed. With `again` the task continues; otherwise it has failed."""

    again: bool
    """The task gets another turn: a retry, a correction of its structured result, or a turn with a smaller
    context.
    """
    error: str
    """Error, with its causes."""
    rebuild: NotRequired[str | None]
    """Reason for which the next turn opens a new session; null if it continues this one. Only of retries."""
    rejected: NotRequired[bool]
    """The provider rejects the prompt, so the next task is told that it was not answered. Only without `again`."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class TurnInterruptedData(TypedDict):
    """Data of `turn.interrupted`. A running turn was stopped: its task was cancelled, its worker shuts down, or
    an attempt was cut off.
    """

    again: bool
    """The task gets another turn. `false`: it was cancelled."""
    because: str
    """Reason in words."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class TurnProgressDataEndedTools(TypedDict):
    is_error: bool
    """It has answered with an error."""
    name: str
    """Name of the tool."""
    took_ms: int
    """Its duration in milliseconds."""


class TurnProgressData(TypedDict):
    """Data of `turn.progress`. A running turn has more text, another state or an ended tool. Written about once
    a second at most, and at the end of each tool. The whole answer is the `result` of the task.
    """

    bytes: int
    """Size of the answer so far, in bytes. Begins again with each call of the turn."""
    cut: bool
    """`text` lacks the end of the new text: it has at most 2,000 characters."""
    ended_tools: list[TurnProgressDataEndedTools]
    """Tools that have ended since the last event, in this order."""
    status: Literal["thinking", "answering"] | None
    """State of the model, as far as the provider tells it."""
    text: str
    """New text of the answer since the last event."""
    tool: str | None
    """Tool that the model is calling. Null: none."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class TurnSnoozedData(TypedDict):
    """Data of `turn.snoozed`. A turn has ended without an answer and is tried again later, without using up an
    attempt.
    """

    again_after_secs: NotRequired[float]
    """Seconds until then. Missing if a budget has to have space first."""
    because: str
    """Reason in words."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class TurnStartedData(TypedDict):
    """Data of `turn.started`. A turn has begun: its session is locked, its budget is reserved, and the call of
    the provider follows.
    """

    model: str
    """Name of the model."""
    provider: str
    """Name of the provider."""
    turn: int
    """Number of the turn in its session, counted from 1."""


class EventData:
    """The data of an event, by its kind."""

    kind: str

    @property
    def data(self) -> dict[str, Any]:
        raise NotImplementedError

    @overload
    def data_of(self, kind: Literal["agent.paused"]) -> AgentPausedData | None: ...

    @overload
    def data_of(self, kind: Literal["agent.resumed"]) -> AgentResumedData | None: ...

    @overload
    def data_of(self, kind: Literal["blackboard.changed"]) -> BlackboardChangedData | None: ...

    @overload
    def data_of(self, kind: Literal["budget.refused"]) -> BudgetRefusedData | None: ...

    @overload
    def data_of(self, kind: Literal["budget.warning"]) -> BudgetWarningData | None: ...

    @overload
    def data_of(self, kind: Literal["campaign.edited"]) -> CampaignEditedData | None: ...

    @overload
    def data_of(self, kind: Literal["campaign.erasing"]) -> CampaignErasingData | None: ...

    @overload
    def data_of(self, kind: Literal["conversation.moved"]) -> ConversationMovedData | None: ...

    @overload
    def data_of(self, kind: Literal["facts.read"]) -> FactsReadData | None: ...

    @overload
    def data_of(self, kind: Literal["facts.refused"]) -> FactsRefusedData | None: ...

    @overload
    def data_of(self, kind: Literal["flow.ended"]) -> FlowEndedData | None: ...

    @overload
    def data_of(self, kind: Literal["flow.paused"]) -> FlowPausedData | None: ...

    @overload
    def data_of(self, kind: Literal["flow.resumed"]) -> FlowResumedData | None: ...

    @overload
    def data_of(self, kind: Literal["flow.retried"]) -> FlowRetriedData | None: ...

    @overload
    def data_of(self, kind: Literal["flow.started"]) -> FlowStartedData | None: ...

    @overload
    def data_of(self, kind: Literal["memory.published"]) -> MemoryPublishedData | None: ...

    @overload
    def data_of(self, kind: Literal["memory.revoked"]) -> MemoryRevokedData | None: ...

    @overload
    def data_of(self, kind: Literal["node.entered"]) -> NodeEnteredData | None: ...

    @overload
    def data_of(self, kind: Literal["post.added"]) -> PostAddedData | None: ...

    @overload
    def data_of(self, kind: Literal["session.compacted"]) -> SessionCompactedData | None: ...

    @overload
    def data_of(self, kind: Literal["session.compaction_not_needed"]) -> SessionCompactionNotNeededData | None: ...

    @overload
    def data_of(self, kind: Literal["session.compaction_refused"]) -> SessionCompactionRefusedData | None: ...

    @overload
    def data_of(self, kind: Literal["session.forked"]) -> SessionForkedData | None: ...

    @overload
    def data_of(self, kind: Literal["session.opened"]) -> SessionOpenedData | None: ...

    @overload
    def data_of(self, kind: Literal["session.rebuilt"]) -> SessionRebuiltData | None: ...

    @overload
    def data_of(self, kind: Literal["session.reset"]) -> SessionResetData | None: ...

    @overload
    def data_of(self, kind: Literal["session.uncompacted"]) -> SessionUncompactedData | None: ...

    @overload
    def data_of(self, kind: Literal["task.cancelled"]) -> TaskCancelledData | None: ...

    @overload
    def data_of(self, kind: Literal["task.failed"]) -> TaskFailedData | None: ...

    @overload
    def data_of(self, kind: Literal["task.interrupted"]) -> TaskInterruptedData | None: ...

    @overload
    def data_of(self, kind: Literal["task.queued"]) -> TaskQueuedData | None: ...

    @overload
    def data_of(self, kind: Literal["task.waiting"]) -> TaskWaitingData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.done"]) -> TurnDoneData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.failed"]) -> TurnFailedData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.interrupted"]) -> TurnInterruptedData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.progress"]) -> TurnProgressData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.snoozed"]) -> TurnSnoozedData | None: ...

    @overload
    def data_of(self, kind: Literal["turn.started"]) -> TurnStartedData | None: ...

    @overload
    def data_of(self, kind: str) -> Mapping[str, Any] | None: ...

    def data_of(self, kind: str) -> Any:
        """Returns the data if the event is of this kind, and `None` for events of other kinds."""
        return self.data if self.kind == kind else None
