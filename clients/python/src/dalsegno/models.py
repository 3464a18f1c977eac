"""Objects in answers of the service. Written by `python3 clients/generate`: do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from . import enums

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list. `Client.every` reads all pages."""

    items: list[T]
    next: str | None = None
    """The `cursor` of the next page; `None` on the last one."""


@dataclass(frozen=True, kw_only=True)
class AcceptedCompaction:
    generation: int
    """The compaction that the session has shown so far; 0: its whole transcript."""
    job_id: int
    session_id: str


@dataclass(frozen=True, kw_only=True)
class AcceptedRun:
    job_id: int
    schedule: str
    state: str
    """Of the job."""


@dataclass(frozen=True, kw_only=True)
class AddedMany:
    """In the order of the request."""

    created: int
    """Number of new tasks."""
    items: list[BulkAdded]


@dataclass(frozen=True, kw_only=True)
class Task:
    agent: str
    budget_micros: int | None = None
    budget_tokens: int | None = None
    campaign_id: str
    created_at: datetime
    ended_at: datetime | None = None
    error: str | None = None
    id: str
    instance: str
    job_id: int
    prompt: str
    result: str | None = None
    """The answer. Of a failed task: its last answer, which does not match the schema."""
    result_json: dict[str, Any] | None = None
    """The answer as JSON, if the task has a result schema and the answer matches it."""
    session_id: str | None = None
    session_mode: enums.SessionMode
    spent_micros: int
    spent_tokens: int
    started_at: datetime | None = None
    state: enums.TaskState
    turn: int | None = None


@dataclass(frozen=True, kw_only=True)
class AddedTask(Task):
    created: bool
    """False: an earlier call with the same idempotency key made it."""
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class AgentGrants:
    blackboard: BlackboardGrants
    disallowed_tools: list[str]
    """Rules of tools that are never allowed, even if another rule grants them."""
    flows: list[str] | None = None
    """Flow templates that the agent may start, if it may start any. Null: all."""
    max_turns: int | None = None
    """Maximum number of model calls in one turn."""
    mcp_servers: list[str]
    permission_mode: enums.PermissionMode
    tools: list[str]
    """Rules of allowed tools: `Read`, `Bash(git log:*)`, `mcp__board__post`. Other tools cannot be used."""
    workspace: bool
    """True: the agent works in a folder that it shares with the campaign's other agents of this setting."""


@dataclass(frozen=True, kw_only=True)
class Agent(AgentGrants):
    apply_percent: int | None = None
    budget: Limit
    """Budget of one task."""
    chain: list[AgentModel]
    """The models that may answer, in the order of preference: at least one."""
    description: str
    """The agent's purpose in one line, which other agents read in their roster."""
    history_window: int
    """Maximum number of posts of the board that a turn shows at once; 0 for none."""
    lead: bool
    """The lead answers posts without an addressee."""
    learns_facts: bool
    """True: requests to the agent are read for facts about the campaign's user."""
    mentions: bool
    """True: `@name` in its answers on the board creates tasks for others. Default: true for the lead only."""
    name: str
    on_limit: enums.OnLimit
    """Effect of that budget on a task that reaches it."""
    options: AgentOptions
    prepare_percent: int | None = None
    prompt_hash: str
    """SHA-256 of the prompt, in hex. A session made with another prompt is rebuilt; the lead's also when the
    roster changes.
    """
    reserve_tokens: int | None = None
    """Tokens of the window that are left for the answer."""
    result_schema: dict[str, Any] | None = None
    """The JSON Schema that answers to its tasks have to match. A task or a step of a flow may have another one."""
    rotate_at_tokens: int | None = None
    """A session whose context has this size is rebuilt before its next turn."""
    session: enums.SessionMode
    """Default session mode of its tasks."""
    skills: list[str]
    summariser: str | None = None
    """The model to ask for a summary when its own has failed twice."""
    told_facts: bool
    """True: the agent is told these facts with each task."""
    ttl_days: int | None = None
    warm: bool
    """On Claude: the CLI is started again after each turn, and waits for the next one."""
    window_tokens: int | None = None
    writes_facts: bool
    """True: the agent may write such facts, with the tool `facts_write`."""


@dataclass(frozen=True, kw_only=True)
class AgentFileProblem:
    file: str
    fix: str
    """The text to write instead."""
    key: str | None = None
    """The key of the front matter."""
    line: int | None = None
    """The line from 1. Null: the file as a whole."""
    message: str
    """The problem."""


@dataclass(frozen=True, kw_only=True)
class AgentModel:
    """A model that may answer, with the conditions under which a turn moves on to the next one."""

    errors: int | None = None
    """Consecutive failures. Null: `agents.fallback_after`."""
    latency_secs: float | None = None
    """Highest median time to the first token of recent calls. Null: no limit."""
    limit_secs: int | None = None
    """Longest wait for a rate limit, a paused credential or a busy model. Null: `agents.fallback_secs`."""
    max_charge_micros: int | None = None
    """Highest charge of the first call of a turn, in millionths of the currency. Null: no limit."""
    model: str | None = None
    """Null: the default model of the provider."""
    provider: str | None = None


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    seed: int | None = None
    temperature: float | None = None
    think: enums.Think | None = None
    top_p: float | None = None


@dataclass(frozen=True, kw_only=True)
class AgentPause:
    agent: str
    campaign_id: str | None = None
    """The campaign in which the pause holds; null: all campaigns."""
    id: str
    paused_at: datetime
    paused_by: str
    reason: str
    resumed_at: datetime | None = None
    """Null while the pause holds."""
    resumed_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class AgentPaused(AgentPause):
    changed: bool
    """False: the agent was paused there already, for the reason that is shown."""


@dataclass(frozen=True, kw_only=True)
class AgentPauses:
    items: list[AgentPause]


@dataclass(frozen=True, kw_only=True)
class AgentResumed(AgentPause):
    paused_everywhere_because: str | None = None
    """The reason of the pause in all campaigns that still holds."""
    paused_in: list[str] = field(default_factory=list)
    """After the end of a pause in all campaigns: the campaigns in which the agent is still paused."""
    released: int
    """Number of held tasks that are on the queue again."""


@dataclass(frozen=True, kw_only=True)
class AgentStatus:
    """Status of an agent or of one of its instances."""

    agent: str
    instance: str
    later: int | None = None
    """Number of tasks that are scheduled for later."""
    later_at: datetime | None = None
    """The time of the first of them."""
    session_id: str | None = None
    """The open session of its conversation."""
    state: enums.AgentState
    task_id: str | None = None
    """The running task."""
    tool: str | None = None
    """The tool that its turn is calling."""
    tool_since: datetime | None = None
    """Start of that call."""
    until: datetime | None = None
    """Expected end of the limit, if the agent is limited and the end is known."""
    waiting: int
    """Number of waiting tasks, without those scheduled for later."""


@dataclass(frozen=True, kw_only=True)
class AgentStanding(AgentStatus):
    also_paused: AgentPause | None = None
    pause: AgentPause | None = None
    wait: AgentWait | None = None


@dataclass(frozen=True, kw_only=True)
class AgentStatuses:
    items: list[AgentStanding]


@dataclass(frozen=True, kw_only=True)
class AgentWait:
    """The cause for which an agent is limited."""

    cause: enums.AgentWaitCause
    model: str | None = None
    """The model, if its provider is waited for."""
    subject: str | None = None
    """Name of the credential or the provider; of a budget, its owner and key: `agent/writer`, `campaign/` and an
    id, `day`.
    """


@dataclass(frozen=True, kw_only=True)
class Agents:
    default_model: str | None = None
    """The model of agents that name none, on the default provider. Empty: unknown."""
    default_provider: str
    """The provider of agents that name none."""
    items: list[Agent]
    nodes: list[Node]
    problems: list[AgentFileProblem]
    """Problems of files. The agents of these files are refused."""
    skills: list[Skill]


@dataclass(frozen=True, kw_only=True)
class AgentsReset:
    """The result of a reset."""

    agent: str | None = None
    """Null: all agents."""
    campaign_id: str
    fresh: bool
    """True: the successors remember nothing."""
    session_ids: list[str]
    """The sessions whose next tasks open successors."""


@dataclass(frozen=True, kw_only=True)
class AllTemplates:
    """All templates: there are a handful."""

    broken: list[BrokenTemplate]
    """Those that cannot be started, and why."""
    items: list[Template]


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Money is in micro-units: 1,000,000 are one unit of the configured currency."""

    micros: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class AnswerResult:
    """The result of an answer. It comes from a task, or from a rerun of a turn."""

    case: str
    failed_checks: int
    """Number of checks that it failed."""
    micros: int
    """Cost in millionths."""
    passed: bool | None = None
    """Null: it is missing, or not judged."""
    repetition: int
    """From 1."""
    session_id: str | None = None
    """The session of the turn that was made again."""
    task_id: str | None = None
    tokens: int
    took_ms: int | None = None
    turn: int | None = None
    variant: str


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    campaigns: list[str] | None = None
    """The campaigns that it is bound to; `null` for a key that reaches all."""
    created_at: datetime
    created_by: str
    """The creator, as the audit log names actors."""
    expires_at: datetime | None = None
    handle: str
    """The middle part of the key's text, which identifies a leaked key."""
    id: str
    last_used_at: datetime | None = None
    """Time of the last use, up to a minute late."""
    name: str
    replaced_by: str | None = None
    """The successor that a rotation has made."""
    revoked_at: datetime | None = None
    scopes: list[enums.Scope]


@dataclass(frozen=True, kw_only=True)
class AppliedMigration:
    """A migration that was applied."""

    description: str
    installed_on: datetime
    version: int


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The messages that one compaction has replaced."""

    compacted_at: datetime
    from_seq: int
    """First and last place of the replaced messages."""
    id: str
    node: str | None = None
    """The node of the session."""
    number: int
    """The generation of the compaction."""
    parent: int
    """The archive whose replacement stood in front of these messages and was replaced with them; 0: none."""
    summarised_from_seq: int | None = None
    """The first of these places that the summary covers; null: it covers all of them."""
    to_seq: int
    tokens_after: int | None = None
    tokens_before: int
    trigger: enums.CompactionCause
    undone_at: datetime | None = None
    """Time of an undo, after which the messages are shown again."""


@dataclass(frozen=True, kw_only=True)
class ArchivedSender:
    first_at: datetime
    last_at: datetime
    posts: int
    sender: str


@dataclass(frozen=True, kw_only=True)
class Archives:
    """Each is a compaction: all of them are one page."""

    items: list[Archive]


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A thing that waits for a person."""

    agent: str | None = None
    because: str
    """The reason. Of a failed task, its error."""
    budget: str | None = None
    """The budget that refuses a call, by its owner and key: `agent/writer`, `campaign/` and an id, `day`."""
    campaign_id: str | None = None
    command: str
    """The command that resolves it."""
    count: int | None = None
    """Number of jobs or tasks that are affected, where that is known."""
    flow_id: str | None = None
    """Of a failed step: the flow with which it is retried."""
    group: int | None = None
    """Of a failed task: number of its group in this list, from 1. Tasks with the same number failed with the
    same error, or at the same budget.
    """
    kind: enums.AttentionKind
    name: str
    """The subject in words: the beginning of the prompt, or a name."""
    present: str | None = None
    """Of a task that failed at a budget which would refuse a retry, too: the present amounts, if they are not
    those of the error.
    """
    refused_by: str | None = None
    """Of a task that failed at a budget of several tasks: that budget, like `budget`, even if it allows a retry
    now.
    """
    replay_since: datetime | None = None
    """Of deliveries that failed for good: the time of the oldest one, from which a replay sends them again."""
    since: datetime | None = None
    step: str | None = None
    """Of a failed step: its name, from which the flow is retried."""
    subject: str
    """Id of the task, the campaign or the webhook, or name of the queue, the lane, the agent, the credential,
    the model or the schedule.
    """
    then: str | None = None
    """The command that comes after it, if it takes two."""
    unlisted: int | None = None
    """Of the oldest listed task of those that failed with the same error, or at the same budget: number of older
    ones, which are not listed.
    """
    until: datetime | None = None
    """The end, if it resolves itself."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """A line of the audit log."""

    action: str
    """`campaign.create`, `task.cancel` and so on. Newer versions may add actions."""
    actor: str
    actor_id: str | None = None
    actor_kind: str
    """`key`, `admin_key`, `cli`, `agent`, `system` or `anonymous`."""
    at: datetime
    data: Any = None
    id: int
    peer: str | None = None
    subject: str
    subject_kind: str


@dataclass(frozen=True, kw_only=True)
class AwaitedModel:
    """A model whose provider is waited for."""

    model: str
    provider: str


@dataclass(frozen=True, kw_only=True)
class Blackboard:
    campaign_id: str
    changed_at: datetime | None = None
    document: dict[str, Any]
    version: int
    """Number of changes. 0: the blackboard is still empty."""


@dataclass(frozen=True, kw_only=True)
class BlackboardChange:
    """A change of a blackboard."""

    actor: str
    """An operator as in the audit log, or an agent as `agent/instance`."""
    agent: str | None = None
    bytes: int
    """Size of the patch, or of the document that was set."""
    changed_at: datetime
    kind: enums.BlackboardChangeKind
    patch: dict[str, Any] | None = None
    """The patch; null if it is long: then compare the versions before and after it."""
    paths: list[str]
    """Changed paths as JSON Pointers; at most 100."""
    task_id: str | None = None
    turn: int | None = None
    version: int
    """The version that the change made."""


@dataclass(frozen=True, kw_only=True)
class BlackboardGrants:
    """Paths that are not covered are neither shown nor changed. Permission to write a path does not include
    reading it.
    """

    read: list[str]
    """JSON Pointers; `/` is the whole document."""
    write: list[str]


@dataclass(frozen=True, kw_only=True)
class BlackboardWritten(Blackboard):
    changed: bool
    """False: the document was the same already, and keeps its version."""


@dataclass(frozen=True, kw_only=True)
class BoardArchive:
    """The archive of a board, as one reader sees it."""

    archived_at: datetime | None = None
    """Time of the last change. Null if nothing was archived."""
    archived_seq: int
    """The last archived place of the board; 0 if nothing was archived."""
    posts: int
    """Number of archived posts that the reader sees."""
    senders: list[ArchivedSender]
    """Their senders, by name."""


@dataclass(frozen=True, kw_only=True)
class BrokenTemplate:
    """A template that cannot be started."""

    built_in: bool
    """It comes with Dalsegno, and names agents that this installation does not have."""
    name: str
    problems: list[AgentFileProblem]
    steps: list[FlowStepOutline] = field(default_factory=list)
    """Its steps, as far as the file names them with their agents."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    experiments: ExperimentBudget | None = None
    """The budget that pays for reruns. The amounts above leave it out."""
    limit: Limit
    on_limit: enums.OnLimit | None = None
    """Effect of the limit on tasks: they wait until there is space, or fail."""
    reserved: Amount
    soft: Limit | None = None
    """Spending at which a warning is written, once."""
    spent: Amount


@dataclass(frozen=True, kw_only=True)
class BulkAction:
    action: enums.TaskAction
    created_at: datetime
    done: int
    """Tasks to which the action was applied."""
    ended_at: datetime | None = None
    error: str | None = None
    """The error, if the action has failed."""
    filter: TaskFilter
    id: str
    job_id: int
    """The job that carries the action out: `/v1/jobs/{id}` explains why it waits or failed."""
    matched: int
    """Tasks that matched at the request."""
    reason: str
    skipped: int
    """Skipped tasks: they had changed meanwhile."""
    started_at: datetime | None = None
    state: enums.BulkActionState


@dataclass(frozen=True, kw_only=True)
class BulkActionPreview:
    matched: int
    """Tasks that match now."""
    refused: list[RefusedRetry] = field(default_factory=list)
    """Those of `tasks` whose call their budget does not allow, so that they would fail again at once or wait for
    it, and those that the action leaves out, because they are steps of flows and are retried with these.
    Empty for a cancellation.
    """
    tasks: list[ListedTask]
    """The first of them, at most 20."""


@dataclass(frozen=True, kw_only=True)
class BulkAdded:
    """One of the added tasks, in the order of the request."""

    created: bool
    """False if an earlier call, or an earlier item of this one, created the task under the same idempotency key."""
    id: str


@dataclass(frozen=True, kw_only=True)
class CallContext:
    """The context of a call, as its manifest records it."""

    call: int
    """Number of the call in its turn, from 1."""
    counted_tokens: int | None = None
    """The provider's own count of the prompt. Null if it reports none."""
    created_at: datetime
    estimated_tokens: int
    """Estimate of the service before the call, for all parts that are sent."""
    parts: list[ContextPart]
    """In the order in which they are sent."""


@dataclass(frozen=True, kw_only=True)
class CalledAgent:
    agent: str
    instance: str
    task_id: str


@dataclass(frozen=True, kw_only=True)
class Campaign:
    brief: str
    client_context: str | None = None
    closed_at: datetime | None = None
    created_at: datetime
    id: str
    is_erased: bool | None = None
    """Its texts are erased, or an erasure was requested."""
    metadata: dict[str, Any]
    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    """Named values that each call contains."""
    status: enums.CampaignStatus
    tags: list[str]
    version: int | None = None
    """Number of the current version of brief and client context, from 1."""


@dataclass(frozen=True, kw_only=True)
class CampaignDiff:
    brief: list[WordChange]
    """The brief with its changes. Empty if both versions have the same."""
    campaign_id: str
    client_context: list[WordChange]
    """The same for the client context."""
    from_: int
    parameters: list[WordChange] = field(default_factory=list)
    """The same for the parameters as JSON."""
    to: int


@dataclass(frozen=True, kw_only=True)
class CampaignOverview(Campaign):
    budget: Budget | None = None
    pause_reason: str | None = None
    """Null unless the campaign is paused."""
    paused_at: datetime | None = None
    paused_by: str | None = None
    """The author of the pause, as in the audit log. Null unless the log has it."""
    sessions: list[Session]
    """Open sessions, the newest first, at most one page."""
    usage: list[UsageTotal]
    """The ledger, by agent, model and purpose."""


@dataclass(frozen=True, kw_only=True)
class CampaignUser:
    since: datetime
    """Requests before this time are not read for facts."""
    user: str


@dataclass(frozen=True, kw_only=True)
class CampaignVersion:
    """A version of the texts and parameters that all calls of a campaign contain."""

    brief: str
    campaign_id: str
    changed_at: datetime
    changed_by: str | None = None
    """The author, as the audit log names them. Null: the first version of a campaign that was created in SQL or
    by an older service.
    """
    client_context: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    version: int


@dataclass(frozen=True, kw_only=True)
class CampaignVersionSummary:
    """A version in a list, without its texts."""

    brief_bytes: int
    changed_at: datetime
    changed_by: str | None = None
    client_context_bytes: int | None = None
    """Null: it has no client context."""
    version: int


@dataclass(frozen=True, kw_only=True)
class CancelledBelow:
    """Number of tasks that were cancelled together with another task or with their flow."""

    cancelled: int
    """Tasks that did not run and have ended."""
    stopping: int
    """Tasks that run; their workers were asked to stop."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    added_by: str | None = None
    campaign_id: str
    cancelled: int
    created_at: datetime
    done: int
    ended_at: datetime | None = None
    failed: int
    id: str
    inputs: dict[str, Any]
    """The inputs of the start."""
    open: int
    """Tasks that have not ended."""
    paused_at: datetime | None = None
    state: enums.FlowState
    tasks: int
    template: str


@dataclass(frozen=True, kw_only=True)
class CancelledFlow(Flow):
    """A flow after its cancellation."""

    cancel: CancelledBelow
    """Counts of the cancelled tasks, including those that depend on them."""
    had_ended: int
    """Number of its tasks that had ended before."""


@dataclass(frozen=True, kw_only=True)
class CancelledJob:
    """Result of the cancellation of a job."""

    cancel: enums.JobCancelled
    id: int
    task: CancelledTask | None = None


@dataclass(frozen=True, kw_only=True)
class TaskCancellation:
    """Result of the cancellation of a task."""

    below: CancelledBelow
    """Results for its descendants: its children and continuations."""
    cancel: enums.TaskCancelled
    """Result for the named task."""


@dataclass(frozen=True, kw_only=True)
class CancelledTask(TaskCancellation):
    """Result of the cancellation of a task, with its id."""

    task_id: str


@dataclass(frozen=True, kw_only=True)
class ChainChoice:
    """The entry of its chain that a turn was given to, and the earlier ones that it has skipped."""

    entry: str
    """`provider/model`."""
    skipped: list[SkippedEntry]


@dataclass(frozen=True, kw_only=True)
class ChangedJob:
    id: int
    state: str
    """It is in this state now."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The charge of a turn."""

    cached_tokens: int
    """Of these, tokens that are read from a cache."""
    calls: int
    cost_micros: int | None = None
    """Null: the price is unknown."""
    input_tokens: int
    """Input of all calls, with the tokens that are read from a cache."""
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class ChargeRange:
    """The range of the charge of a turn. At least nine of ten turns are expected in it."""

    high: Charge
    likely: Charge
    low: Charge


@dataclass(frozen=True, kw_only=True)
class CheckCounts:
    """Turns by the proof that the model saw the history."""

    no_history: int
    not_checked: int
    """Turns without an answer, and those of earlier versions."""
    not_provable: int
    not_seen: int
    """Answers without the history: rejected, or flagged."""
    seen: int


@dataclass(frozen=True, kw_only=True)
class CheckedTurn:
    """A turn with the proof that the model saw the history."""

    agent: str
    counted_tokens: int | None = None
    """The provider's own count of it."""
    ended_at: datetime
    estimated_tokens: int | None = None
    """Tokens of the first prompt."""
    flags: list[str]
    history_check: enums.HistoryCheck | None = None
    instance: str
    model: str
    provider: str
    session_id: str
    state: enums.TurnState
    turn: int


@dataclass(frozen=True, kw_only=True)
class CleanupGroup:
    """Sessions of one provider that would be removed for one reason."""

    because: enums.CleanupBecause
    bytes: int
    messages: int
    oldest: datetime
    """The earliest expiry or closing."""
    provider: str
    sessions: int


@dataclass(frozen=True, kw_only=True)
class CleanupJob:
    job_id: int
    state: str
    """Of the job."""


@dataclass(frozen=True, kw_only=True)
class CleanupPreview:
    bytes: int
    """Bytes of texts and stored transcripts."""
    events: int
    """Events of the feed that are old enough."""
    groups: list[CleanupGroup]
    keep_days: KeepDays
    kept: dict[str, int]
    """Due sessions that would be kept, by reason."""
    memory_items: int
    """Items of memories that were revoked or have expired long enough ago."""
    messages: int
    posts_archived: int | None = None
    """Old posts of boards that would be archived."""
    posts_held: int | None = None
    """Old posts that would stay on their boards: an agent has not seen them or one before them, or an open task
    answers one.
    """
    sessions: int
    summaries_kept: int
    """Expired sessions whose summary would be kept for their successors."""
    summaries_removed: int
    """Kept summaries that would be removed, because no task has used them in time."""


@dataclass(frozen=True, kw_only=True)
class CleanupRun:
    bytes: int
    duration_secs: float | None = None
    ended_at: datetime | None = None
    """Null while it runs."""
    events: int
    """Removed events of the feed."""
    folders: int
    host: str
    id: int
    job_id: int | None = None
    kept: Any = None
    """Due sessions that were kept, by reason."""
    kind: str
    """`sessions`, or `folders` of one host."""
    memory_items: int
    """Removed items of memories, which were revoked or had expired long enough ago."""
    messages: int
    outcome: str | None = None
    posts_archived: int
    """Archived posts of boards."""
    removed: Any = None
    """Removed sessions by provider and reason."""
    requested_by: str | None = None
    """The caller who asked for it: `cli:ann@vm`, `key:ci:3f0c2a9be1d4`, or `schedule` if its schedule ran it.
    Null: unknown, as in some runs of older versions, or a removal of folders.
    """
    sessions: int
    started_at: datetime
    summaries_kept: int
    """Expired sessions whose summary was kept for their successors."""
    summaries_removed: int
    """Removed summaries, which no task had used in time."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    applied_at: datetime | None = None
    cause: enums.CompactionCause
    created_at: datetime
    from_seq: int
    generation: int
    model: str | None = None
    node: str | None = None
    """The node of the session, if it stood at one: the summary then covers only the exchanges there."""
    outcome: enums.CompactionOutcome
    parent: int
    """The generation whose view was compacted; 0 is the whole transcript."""
    pins: Any = None
    prompts: dict[str, Any] | None = None
    """Texts of people in the compacted turns that are kept word for word: whole prompts, sentences of others,
    and the number of prompts that are only in the archive. Null for compactions of earlier versions.
    """
    refusals: Any = None
    rung: str | None = None
    """The way in which the summary was made: first, retry, alternate, extract."""
    summary: str | None = None
    to_seq: int
    tokens_after: int | None = None
    tokens_before: int
    turn: int
    undone_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class CompactionAnswer:
    answer: CompactionResult | None = None
    job_id: int
    session_id: str


@dataclass(frozen=True, kw_only=True)
class CompactionComparison:
    """A compaction, with the places of all that it replaced."""

    attempts: list[RejectedAttempt]
    """Summaries that were rejected before."""
    compaction: Compaction
    earlier_summary: str | None = None
    """The summary that was replaced together with the messages."""
    is_current: bool
    """True if the session uses it now."""
    messages: list[ReplacedMessage]
    """Prompts that the earlier compaction had kept, and the replaced messages, in order. Empty without an
    accepted summary.
    """
    more_values: int
    """Number of values that are not in the list."""
    session_id: str
    values: list[ExactValue]
    """Exact values of what was replaced, such as names and amounts, the most important first. Empty without an
    accepted summary.
    """


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    generation: int | None = None
    outcome: Literal["compacted", "nothing", "failed"]
    because: str | None = None


@dataclass(frozen=True, kw_only=True)
class ComparedContext:
    counted_tokens: int | None = None
    """The provider's own count of the prompt. Null if it reports none."""
    estimated_tokens: int
    model: str
    provider: str
    session_id: str
    turn: int


@dataclass(frozen=True, kw_only=True)
class ContextDiff:
    """The difference between the first calls of two turns."""

    from_: ComparedContext
    parts: list[PartDiff]
    """Parts that differ, in the order of `to`, then those that are gone."""
    shared_bytes: int | None = None
    """Bytes at the beginning of system text, tools and messages that both have: a provider can reuse its cache
    of them. 0 if the models differ. Null if one of the two cannot be assembled.
    """
    to: ComparedContext
    to_bytes: int | None = None
    """Bytes of system text, tools and messages of `to`."""


@dataclass(frozen=True, kw_only=True)
class ContextPart:
    """A part of a context, sent or left out."""

    by_trust: dict[str, int] = field(default_factory=dict)
    """Of posts: the number of posts of each trust level."""
    id: str | None = None
    """The row, file or version that the part was made from."""
    kind: enums.ContextPartKind
    reason: str
    """The same in words."""
    sent: bool
    sha256: str | None = None
    """SHA-256 of the text. Null if the text was not loaded because it is not sent."""
    span: ContextPartSpan | None = None
    tokens: int
    """Estimated tokens."""
    trust: enums.ContextPartTrust
    why: enums.ContextPartReason
    """The reason why the part is sent or left out."""


@dataclass(frozen=True, kw_only=True)
class ContextPartSpan:
    """The messages of the session, or the posts of the board, that a part consists of."""

    count: int | None = None
    """Number of messages or posts. Null if they were not loaded."""
    from_seq: int
    to_seq: int


@dataclass(frozen=True, kw_only=True)
class ContextPreview:
    """The context that a turn would be sent if it began now."""

    agent: str
    estimated_tokens: int
    instance: str
    messages: list[Message]
    model: str
    notes: list[str]
    """Reasons why the turn would be sent something else, or not at once."""
    parts: list[ContextPart]
    """Each part with its source, and the reason why it would be sent or left out."""
    problem: str | None = None
    """The reason why the request cannot be built."""
    provider: str
    request: ProviderRequest | None = None
    session_id: str | None = None
    """The session that the turn would continue. Null: it would open a new one."""
    system: str
    task_id: str | None = None
    """Null for a preview without a task."""
    tools: list[ToolSpec]
    turn: int
    """Number of the turn."""


@dataclass(frozen=True, kw_only=True)
class LedgerCall:
    """A call as the ledger records it. Unknown token counts are null."""

    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    called_at: datetime
    cost_micros: int
    first_byte_ms: int | None = None
    has_price: bool | None = None
    """False: no price was set for the model, so the cost is 0 or the one that the provider reports."""
    id: int
    """Number of the row in the ledger."""
    input_tokens: int | None = None
    model: str
    outcome: enums.UsageOutcome
    output_tokens: int | None = None
    provider: str
    provider_message_id: str | None = None
    """The provider's id of its answer. Calls of batches, summaries, facts and reruns may have an id of the
    service instead.
    """
    purpose: enums.UsagePurpose
    total_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class CostCall(LedgerCall):
    """A call of the ledger with what it was made for. The ledger outlives campaigns, tasks and sessions."""

    agent: str
    campaign_id: str
    session_id: str | None = None
    task_id: str | None = None
    turn: int | None = None
    """The turn that it is charged to."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The sums of some calls."""

    cache_creation_tokens: int
    cache_read_tokens: int
    calls: int
    calls_without_price: int | None = None
    """Calls that used tokens and count as 0, because no price was set for their model. Older versions do not
    send it. Calls that a scheduler of an older version added to the sums of their days, during an upgrade,
    are not counted.
    """
    cost_micros: int
    """In millionths of the currency."""
    input_tokens: int
    """Counts that the provider did not report are 0."""
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class CostLine(Costs):
    """The costs of one value, or of one pair of values."""

    second: str | None = None
    """The value of the second dimension."""
    value: str | None = None
    """The value of the dimension. Null: the calls have none, such as the user of a campaign without one."""


@dataclass(frozen=True, kw_only=True)
class CostReport:
    """The answer to a [`Question`]."""

    and_: enums.CostDimension | None = None
    by: enums.CostDimension
    campaign_names: dict[str, str]
    """Names of the campaigns in the lines, by id. Those of erased campaigns are missing."""
    currency: str
    """The label of the currency. Nothing is converted."""
    lines: list[CostLine]
    """By their costs, then by their tokens, the highest first; with days in the order of their values."""
    n_others: int | None = None
    """The number of values that `others` adds up."""
    others: list[CostLine] = field(default_factory=list)
    """The sums of all values that are not among the `top`, for each value of the first of two dimensions."""
    since: datetime | None = None
    time_zone: str
    total: Costs
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class CredentialStatus:
    """A credential of a provider."""

    is_configured: bool
    """True: the configuration of the process that answers has it."""
    name: str
    paused_until: datetime | None = None
    """End of the pause, while it is paused."""
    provider: str
    sessions: int
    """Open sessions that began with this credential and stay with it."""
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """All credentials, in one page: an installation has a handful."""

    items: list[CredentialStatus]


@dataclass(frozen=True, kw_only=True)
class DatabaseSize:
    """The database as its server sees it."""

    bytes: int
    """Of the whole database, with other schemas."""
    server_version: str
    """Of the server."""
    statistics_since: datetime | None = None
    """The beginning of the statistics. Null: since the creation of the database."""


@dataclass(frozen=True, kw_only=True)
class DaySize:
    """The size of a table on a day, with indexes and long texts."""

    bytes: int
    day: str


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One message to a webhook."""

    attempts: int
    """Number of attempts since it was last put on the queue."""
    campaign_id: str | None = None
    """The campaign whose call reached a soft limit. Null for other kinds."""
    created_at: datetime
    """Time at which the task ended."""
    ended_at: datetime | None = None
    id: str
    """The id, which the receiver gets as `webhook-id`."""
    job_id: int | None = None
    kind: str
    last_error: str | None = None
    last_status: int | None = None
    next_at: datetime | None = None
    state: enums.DeliveryState
    task_id: str | None = None
    """The task that ended, or whose call reached a soft limit. Null for a test, and for a call without a task."""
    webhook_id: str


@dataclass(frozen=True, kw_only=True)
class EditedCampaign(CampaignVersion):
    changed: bool
    """False: the texts were the same already, and keep their version."""


@dataclass(frozen=True, kw_only=True)
class ErasedContents:
    """Rows of one kind before the removal."""

    rows: int
    sha256: str
    """Hash over the texts of the rows: `dalsegno.contents_of_campaign` in SQL."""


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """The receipt of an erasure."""

    asked_at: datetime
    campaign_id: str
    contents: dict[str, ErasedContents] | None = None
    """Contents at the beginning of the removal by kind, counted by the database. All are removed when the
    erasure has ended. Null before the removal, and if a worker of an earlier version has ended it.
    """
    ended_at: datetime | None = None
    """Time when the database held no more rows of the campaign that the worker knew of. Null also if that worker
    was too old to tell its schema: a newer worker then repeats the erasure.
    """
    hosts: list[str]
    """Hosts that have checked their folders since."""
    id: str
    open_tasks: int
    """Tasks that still have to be cancelled or to end."""
    reason: str
    removed: dict[str, int]
    """Counts of removed rows so far, by kind. The worker counts them, and they are not signed."""
    rewritten_at: datetime | None = None
    """Time when all tables had been rewritten after the removal: `dalsegno erasure vacuum --full`."""
    signed: ErasureSignature | None = None
    step: str | None = None
    """The current step: `cancel` for tasks, then the rows that are removed. Null before a worker has begun, and
    after the end.
    """
    vacuumed_at: datetime | None = None
    """Time when all tables had been vacuumed after the removal. Null: not yet, or the role of the service may
    not do it.
    """


@dataclass(frozen=True, kw_only=True)
class ErasureSignature:
    """The signature of a receipt."""

    public_key: str
    """The public key in base64. `dalsegno doctor` shows the one of the installation."""
    signature: str
    """Ed25519 over the bytes of the statement, in base64."""
    statement: str
    """The text that is signed: JSON with the fields of the receipt."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The tokens and the cost of the next turn of a conversation, in each way in which it could begin."""

    agent: str
    cache: PromptCache
    campaign_id: str
    currency: str
    """The label of all costs. Nothing is converted."""
    history: EstimateHistory
    instance: str
    model: str
    notes: list[str]
    price: EstimatePrice | None = None
    provider: str
    session_id: str | None = None
    """The session that the turn would continue. Null: it would open a new one."""
    turn: int
    """Number of the turn."""
    ways: list[WayEstimate]
    """All ways, also those that are not possible now."""


@dataclass(frozen=True, kw_only=True)
class EstimateErrors:
    """The estimated tokens of prompts divided by the provider's counts. Null without counts."""

    counted_calls: int
    """Calls that the provider has counted."""
    largest: float | None = None
    median: float | None = None
    smallest: float | None = None


@dataclass(frozen=True, kw_only=True)
class EstimateHistory:
    """The earlier turns from which calls and lengths of answers were learnt."""

    agent_turns: int
    """Earlier turns of the agent in other conversations, on this model."""
    assumed_output_tokens: int | None = None
    """Length of an answer that is assumed because there are no earlier turns."""
    conversation_turns: int
    """Earlier turns of the conversation on this model."""
    turns_wanted: int
    """With fewer turns, an assumption widens the range."""


@dataclass(frozen=True, kw_only=True)
class EstimatePrice:
    """The price of an estimate, in millionths of the currency per million tokens."""

    cache_creation: int
    cache_read: int
    checked: str | None = None
    """Day on which that source was read."""
    factor: float
    """Charged costs of earlier turns in relation to the price. 1 for configured prices, which are charged
    exactly.
    """
    input: int
    model: str
    """The model as the price list names it."""
    origin: enums.PriceOrigin
    output: int
    source: str | None = None
    """Source of a published price."""


@dataclass(frozen=True, kw_only=True)
class EvalAnswers:
    """The answers of a run: all of them are one page."""

    items: list[AnswerResult]


@dataclass(frozen=True, kw_only=True)
class EvalRun:
    """The results of a run, without its answers."""

    began_at: datetime
    """The moment at which its first answer was requested."""
    campaign_id: str
    eval: str
    id: int
    judge_micros: int
    """Cost of the judge, in millionths."""
    recorded_at: datetime
    run: str
    unfinished: int
    """Answers that were missing or not judged when it was recorded."""
    variants: list[VariantResult]
    variants_without_price: list[str] = field(default_factory=list)
    """Names of the variants with answers that cost 0 only because no price was set for their model."""


@dataclass(frozen=True, kw_only=True)
class ExactValue:
    is_pinned: bool
    """True if the summary had to contain it."""
    kind: str
    place: enums.ValuePlace
    text: str


@dataclass(frozen=True, kw_only=True)
class ExperimentBudget:
    """The budget of a campaign that pays for reruns of its turns."""

    limit_micros: int | None = None
    """Null: there is none, so models with a price are not called."""
    spent_micros: int


@dataclass(frozen=True, kw_only=True)
class Fact:
    attribute: str
    """The attribute of the user that the fact is about."""
    author: str
    """The agent of the session in which it was said or written, or a person as in the audit log."""
    campaign_id: str | None = None
    """The campaign in which it was said."""
    ended_because: enums.FactEnded | None = None
    expires_at: datetime | None = None
    """Time when it ends in any case."""
    id: str
    recorded_at: datetime
    replaced_by: str | None = None
    """The fact that ended it."""
    session_id: str | None = None
    source: enums.FactSource
    task_id: str | None = None
    """The task whose prompt said it."""
    text: str
    """The text of the fact."""
    trust: enums.FactTrust
    turn: int | None = None
    user: str
    """The user whom the fact is about."""
    valid_from: datetime
    """Time when it was said."""
    valid_until: datetime | None = None
    """Time when it was contradicted, edited or revoked."""


@dataclass(frozen=True, kw_only=True)
class FactExtraction:
    """A stretch of a transcript that was read."""

    agent: str
    campaign_id: str
    ended_at: datetime
    found: int
    """Facts in the model's answer."""
    from_seq: int
    """The place before the first one of the stretch."""
    new: int
    """New facts among these."""
    outcome: enums.FactExtractionOutcome
    reason: str | None = None
    """The reason of a refusal."""
    requests: int
    """Number of people's requests in the stretch."""
    session_id: str
    to_seq: int
    """The last place of the stretch."""


@dataclass(frozen=True, kw_only=True)
class FactHit(Fact):
    """A fact that was found."""

    rank: float
    """Larger is better; only to be compared within one answer."""


@dataclass(frozen=True, kw_only=True)
class FactUse:
    """A session that was shown a fact."""

    agent: str | None = None
    """Null: the session was removed."""
    campaign_id: str
    instance: str | None = None
    """Null: the session was removed."""
    last_at: datetime
    """Time of the newest of these calls; without one the time of the showing, to a day."""
    session_id: str
    turns: list[int]
    """Turns with a call that contained the fact in its system part, the newest first; among the last 50 calls of
    the session. If empty, the fact may be in its transcript: the agent read it with `recall` or wrote it, or
    the session continues one that was shown it.
    """


@dataclass(frozen=True, kw_only=True)
class FactUses:
    """The sessions that were shown a fact."""

    has_more: bool
    """True if more sessions were shown it."""
    items: list[FactUse]
    """The 20 sessions that were shown it last, to a day, among the 10,000 records that are read at most; the
    newest use first.
    """


@dataclass(frozen=True, kw_only=True)
class FactsForgotten:
    """The facts that were removed about a user."""

    facts: int
    sessions: list[str]
    """Sessions in which facts were said or shown: their transcripts and summaries stay. The newest 10,000; some
    may be removed already.
    """


@dataclass(frozen=True, kw_only=True)
class FailureTotals:
    """The failed tasks that were read for a list."""

    groups: int
    """Number of different failures among them. The list has the newest 20."""
    is_cut: bool
    """True if older ones of the period may not have been read: numbers of equal failures are lower bounds."""
    read: int
    """Number of failed tasks that were read, also of erased campaigns."""


@dataclass(frozen=True, kw_only=True)
class FeedEvent:
    agent: str | None = None
    """The agent that the event is about."""
    campaign_id: str | None = None
    created_at: datetime
    data: dict[str, Any]
    """An object whose fields depend on the kind. Newer versions may add fields."""
    id: int
    instance: str | None = None
    """Its instance. Null: all instances of the agent."""
    kind: str
    """`task.queued`, `turn.done` and so on. Newer versions may add kinds."""
    session_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class FidelityReport:
    """The fidelity of the conversations of a campaign."""

    estimates: EstimateErrors
    is_limited: bool | None = None
    """True if the campaign has 10,000 ended turns or more. The numbers are then those of the newest 10,000, with
    their calls and sessions.
    """
    lost_sessions: int
    """Sessions that were replaced because their provider had lost the conversation."""
    rejected: list[RejectedSummaries]
    """Compactions with rejected summaries, the newest first, at most 100."""
    summaries: SummaryCounts
    turns: CheckCounts


@dataclass(frozen=True, kw_only=True)
class FieldError:
    """One part of a request that is wrong."""

    code: str | None = None
    """Of one among many, as that of a problem."""
    detail: str
    pointer: str
    """A JSON Pointer into the body."""


@dataclass(frozen=True, kw_only=True)
class Files:
    items: list[SourceFile]
    problems: list[AgentFileProblem]
    """Problems of folders: the files in use are those before the problem."""
    warnings: list[AgentFileProblem] = field(default_factory=list)
    """Keys with which agents cannot work as their files say: rules for unknown tools, windows and budgets that
    are too small. The files are in use.
    """


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A result of a check."""

    check: str
    """The part that was checked, such as `database`."""
    fix: str
    """The command, or the sentence, that solves the problem. Empty without a problem."""
    status: Literal["ok", "warn", "fail", "skipped"]
    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Findings in the order of the checks."""

    items: list[Finding]


@dataclass(frozen=True, kw_only=True)
class FlowDetail(Flow):
    """A flow with its tasks."""

    steps: list[FlowStepTask]
    """The latest task at each place, in order."""


@dataclass(frozen=True, kw_only=True)
class FlowEstimate:
    """The tokens and the cost that a flow would have."""

    charge: ChargeRange
    """The sum of the steps. Its lows and highs are those of all steps at once, so the range is wider than that
    of a turn. With a step that has no charge, the costs are null.
    """
    currency: str
    """The label of all costs."""
    steps: list[StepEstimate]
    """The steps in the order of the template."""
    tasks: int
    template: str


@dataclass(frozen=True, kw_only=True)
class FlowImprovement:
    agent: str
    """The agent that combines the results of the roles, in a fresh session."""
    prompt: str
    """The prompt of that agent."""
    reflection: str
    """The prompt of each role."""


@dataclass(frozen=True, kw_only=True)
class FlowInput:
    """An input that has to be given when a flow is started."""

    about: str
    """Description of the input, for the person who starts a flow."""
    is_list: bool
    """True: the input is a list, and a step is repeated for each of its items."""
    name: str


@dataclass(frozen=True, kw_only=True)
class FlowStep:
    after: list[str]
    """The steps that it waits for."""
    agent: str
    each: str | None = None
    """The list for whose items it is repeated."""
    instance: str
    """The agent's instance. Of a repeated step: the beginning of its name, before the number."""
    name: str
    node: str | None = None
    """The node of its tasks; null: sessions stay at their node."""
    on_failure: enums.OnFailure
    prompt: str
    """The prompt with `{{input}}`, `{{steps.plan.result.title}}` for a field of an earlier result, and in a
    repeated step `{{item}}` and `{{number}}`.
    """
    result_schema: dict[str, Any] | None = None
    """The JSON Schema of its results; null: that of the agent's file, if it has one."""
    session: enums.SessionMode | None = None
    within_secs: int | None = None
    """Seconds that the answers to its tasks may take, from the end of the steps that they wait for."""


@dataclass(frozen=True, kw_only=True)
class FlowStepOutline:
    """A step of a broken template, as far as the file names it."""

    agent: str
    name: str
    node: str | None = None


@dataclass(frozen=True, kw_only=True)
class FlowStepTask:
    after: list[str]
    """The tasks that it waits for, or has waited for."""
    agent: str
    ended_at: datetime | None = None
    instance: str
    node: str | None = None
    """The node of the task. Null: the session stays at its node."""
    started_at: datetime | None = None
    state: enums.TaskState
    step: str
    task_id: str


@dataclass(frozen=True, kw_only=True)
class FoundId:
    id: str


@dataclass(frozen=True, kw_only=True)
class HandedOut:
    children: list[BulkAdded]
    """In the order of the request."""
    continuation: BulkAdded


@dataclass(frozen=True, kw_only=True)
class HeldLane:
    held: str


@dataclass(frozen=True, kw_only=True)
class HiddenPost:
    """A post that an agent does not see, because it is addressed to others."""

    audience: list[str]
    sender: str
    seq: int


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The installation, as the process that answers sees it."""

    created_at: datetime
    database: DatabaseSize
    id: str
    migrations: list[AppliedMigration]
    """The newest first."""
    settings: list[Setting]
    """Of the process, without secrets."""
    tables: list[TableSize]
    """The largest first."""
    version: str
    """Of the process."""


@dataclass(frozen=True, kw_only=True)
class InstallationOverview:
    """Open matters of a person, running tasks, and the last hours."""

    attention: list[Attention]
    """The most urgent kind first; at most 20 of each kind. Of failed tasks the newest 20 groups with the same
    error or at the same budget, of each at most its newest 20 tasks, and in all at most 100.
    """
    failures: FailureTotals | None = None
    """The failed tasks that were read for `attention`: at most the newest 1,000 of the last 7 days."""
    running: list[TaskLine]
    """Running tasks, those that started last first; at most 20."""
    runs: list[RunMinute]
    """Runs of turns that have ended, by step; the newest 10,000."""
    runs_are_cut: bool | None = None
    """True if older runs of these hours were not read: the numbers are lower bounds, and steps before the last
    one of `runs` are unknown.
    """
    waits: list[WaitMinute]
    """The longest waits of tasks for their start, by the step in which they were added; the newest 5,000 tasks."""
    waits_are_cut: bool | None = None
    """True if older tasks of these hours were not read, which may have waited longer."""


@dataclass(frozen=True, kw_only=True)
class InterruptResult:
    cancel: enums.TaskCancelled
    session_id: str
    task_id: str


@dataclass(frozen=True, kw_only=True)
class InterruptedTasks:
    """The cancelled tasks; empty where nothing ran."""

    items: list[InterruptResult]


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """One line of `job ls`."""

    attempt: int
    """Attempts so far, with the one that runs."""
    enqueued_at: datetime
    """When it was put on the queue."""
    group_key: str | None = None
    """The group."""
    id: int
    """The id."""
    kind: str
    """The kind."""
    lane: str | None = None
    """The lane."""
    max_attempts: int
    """After how many failures it is dead."""
    priority: int
    """0 is the most urgent."""
    queue: str
    """The queue."""
    reason: str | None = None
    """Reason of the person who held it, or the error of a dead letter."""
    run_at: datetime
    """When it is due, or since when it is ready."""
    state: str
    """The state; `dead` for a dead letter."""
    wait_reason: str | None = None
    """Why it waits, in the words of the counts by reason."""


@dataclass(frozen=True, kw_only=True)
class JobDetail(JobSummary):
    """A job with everything known about it."""

    headers: Any = None
    """Names and values beside the payload."""
    payload: Any = None
    """Input of the job."""
    running: PresentRun | None = None
    runs: list[RunRecord]
    """Its ended attempts, the newest first."""


@dataclass(frozen=True, kw_only=True)
class JobExplanation:
    """The explanation of a job's state."""

    because: str
    """Why it is in this state."""
    job_id: int
    """The job."""
    next: str
    """The next step, and who takes it."""
    runs: list[RunRecord] = field(default_factory=list)
    """Its ended runs that are still kept, the newest first. A caller adds them."""
    state: str
    """Its state: one of the live states, or dead, ended, unknown."""


@dataclass(frozen=True, kw_only=True)
class KeepDays:
    """Days for which things are kept after they have ended or expired."""

    closed_sessions: int
    events: int
    memory_items: int
    summaries: int


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A lane with its first members."""

    held: str | None = None
    """Why it is held, if it is."""
    held_at: datetime | None = None
    """Since when it is held."""
    is_cut: bool | None = None
    """True if it has more members."""
    lane: str
    """The name."""
    members: list[LaneMember]
    """Its members in order, at most a hundred."""
    on_failure: str
    """Effect of a dead head on the lane: `continue` or `hold`."""


@dataclass(frozen=True, kw_only=True)
class LaneMember:
    """A job in a lane."""

    id: int
    """The job."""
    is_paused: bool | None = None
    """True if it could run, but its queue or its group is paused."""
    kind: str
    """Its kind."""
    lane_seq: int | None = None
    """Its place; none while it is scheduled for later."""
    run_at: datetime
    """When it is due, or since when it is ready."""
    state: str
    """Its state."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Null: no limit."""

    micros: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class ListedJob(JobSummary):
    """A job, with its task if it has one."""

    awaited_model: AwaitedModel | None = None
    budget: str | None = None
    """The budget that its task waits for, by owner and key: `agent/writer`, `campaign/` and an id, `day`. The
    reason of the wait is then `condition`.
    """
    task: TaskLine | None = None


@dataclass(frozen=True, kw_only=True)
class ListedTask(Task):
    is_unpriced: bool | None = None
    """True if the cost is 0 only because no price was set for the model of its last turn."""
    metadata: dict[str, Any]
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class Turn:
    attempt: int
    cache_creation_tokens: int
    cache_read_tokens: int
    calls: int
    chain: ChainChoice | None = None
    cost_micros: int
    ended_at: datetime | None = None
    error: str | None = None
    flags: list[str]
    """Notes for people. `put_off`: the turn failed only because its provider is busy, or its budget has no
    space.
    """
    history_check: enums.HistoryCheck | None = None
    input_tokens: int
    job_id: int
    lease: int
    number: int
    output_tokens: int
    session_id: str
    started_at: datetime
    state: enums.TurnState
    task_id: str


@dataclass(frozen=True, kw_only=True)
class ListedTurn(Turn):
    """A turn, with the agent and the model of its session."""

    agent: str
    instance: str
    is_unpriced: bool | None = None
    """True if the cost is 0 only because no price was set for the model."""
    model: str
    prompt_hash: str | None = None
    """The version of the agent's prompt: the hash with which the session was made. Empty if an older version has
    answered.
    """
    provider: str


@dataclass(frozen=True, kw_only=True)
class ManualRun:
    """A run of a schedule in addition to its times."""

    actor: str
    """The caller who has started it, as in the audit log."""
    at: datetime
    job_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryItem:
    """An edict, a record or an entry of a journal, in its current version or an earlier one."""

    author: str
    """The author: an operator's label as in the audit log, or an agent's name on the board."""
    body: str | None = None
    """The text. Left out of lists and search results."""
    bytes: int
    """Size of title and body, in bytes."""
    campaign_id: str
    created_at: datetime
    expires_at: datetime | None = None
    """Time from which the item is hidden from agents."""
    id: str
    kind: enums.MemoryKind
    name: str
    origin: enums.MemoryOrigin
    owner: str | None = None
    """The owner of a journal, by its name on the board. Null for edicts and records."""
    revoked_at: datetime | None = None
    """Time at which the item was revoked."""
    revoked_by: str | None = None
    task_id: str | None = None
    """The task in whose turn an agent wrote the item."""
    title: str
    trust: enums.MemoryTrust
    turn: int | None = None
    version: int
    """Counts from 1."""
    written_at: datetime
    """Time at which this version was written."""


@dataclass(frozen=True, kw_only=True)
class MemoryHit(MemoryItem):
    """An item that was found."""

    rank: float
    """Score; larger is better. Comparable only within one answer."""
    snippet: str
    """The matching passages, with matches between `**` and `**`. The beginning of the text if only its meaning
    matched.
    """


@dataclass(frozen=True, kw_only=True)
class MemoryImported:
    created: int
    replaced: int
    """Number of items that got a new version."""
    unchanged: int
    """Number of items that were identical already."""
    warnings: list[str]
    """Limits that are nearly used up."""


@dataclass(frozen=True, kw_only=True)
class MemoryVersion:
    """A current or earlier version of an item."""

    author: str
    bytes: int
    origin: enums.MemoryOrigin
    task_id: str | None = None
    title: str
    trust: enums.MemoryTrust
    turn: int | None = None
    version: int
    written_at: datetime


@dataclass(frozen=True, kw_only=True)
class MemoryWritten(MemoryItem):
    changed: bool
    """False if the item had this content already; its version stays the same."""
    warning: str | None = None
    """A limit that is nearly used up."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One entry of a session's transcript."""

    role: enums.Role
    text: str
    tool_call_id: str | None = None
    """The call a `Tool` message answers."""
    tool_calls: list[ToolCall] = field(default_factory=list)
    """Calls an assistant message makes; empty for every other role."""
    tool_name: str | None = None
    """The tool a `Tool` message comes from; of a `User` message, the agent that asked it on the board."""


@dataclass(frozen=True, kw_only=True)
class MigrationState:
    """State of the schema, compared with this binary."""

    state: Literal["current", "newer", "pending"]
    n_pending: int | None = None


@dataclass(frozen=True, kw_only=True)
class Node:
    description: str
    name: str
    readings: list[str]
    """Required readings: paths as the node's file names them."""


@dataclass(frozen=True, kw_only=True)
class NodeStay:
    """The stay of a session at a node."""

    agent: str
    entered_at: datetime
    first_seq: int
    """First place of the stay in the transcript."""
    instance: str
    last_seq: int | None = None
    left_at: datetime | None = None
    """End of the stay. Null while the session is at the node."""
    node: str
    ordinal: int
    """Number of the stay within its session, from 1."""
    task_id: str
    """The task whose turn entered the node."""


@dataclass(frozen=True, kw_only=True)
class OpenedArchive(Archive):
    """An archive with its messages."""

    messages: list[StoredMessage]
    """A page of the replaced messages, in order."""
    next: str | None = None
    """The cursor of the next page; null on the last one."""
    replacement: Replacement


@dataclass(frozen=True, kw_only=True)
class OriginalCall:
    """A call of a turn as it was made in the turn."""

    answer: str | None = None
    """The text of its answer. Null: it has none, or the messages were removed."""
    call: int
    """Number of the call in its turn, from 1."""
    cost_micros: int
    input_tokens: int | None = None
    is_unpriced: bool | None = None
    """True if the cost is 0 only because no price was set for the model."""
    is_whole_turn: bool
    """True if tokens, cost and time are those of the whole turn, because the calls of the provider cannot be
    told apart.
    """
    model: str
    output_tokens: int | None = None
    provider: str
    session_id: str
    took_ms: int | None = None
    tool_calls: list[ToolCall]
    turn: int


@dataclass(frozen=True, kw_only=True)
class OwnedBudget:
    """A budget with its amounts. That of a day has those of the present day; all others count all calls of all
    time.
    """

    ends_at: datetime | None = None
    """The end of the period."""
    has_campaign: bool | None = None
    """False for a user for whom no campaign works now. Null for other owners, and from older versions."""
    key: str
    """The name of the agent or the user, or the id of the campaign; empty for a day."""
    limit: Limit
    name: str | None = None
    """The name of the campaign."""
    on_limit: enums.OnLimit
    owner: enums.BudgetOwner
    period: str | None = None
    """The present day."""
    reserved: Amount
    soft: Limit
    """Spending at which a warning is written."""
    spent: Amount
    time_zone: str | None = None
    waiting_tasks: int
    """Number of tasks that wait for the budget."""
    warned_at: datetime | None = None
    """The moment of the warning in this period."""


@dataclass(frozen=True, kw_only=True)
class PartDiff:
    change: enums.PartChange
    id: str | None = None
    kind: str
    reason: str
    """The reason why the part is sent or left out, after the change; before it for a removed part."""
    span_after: dict[str, Any] | None = None
    span_before: dict[str, Any] | None = None
    """The messages or posts that it had before and has after, if it is made of those."""
    tokens_after: int
    tokens_before: int
    """Estimated tokens before and after; 0 if it was not sent."""
    words: list[WordChange]
    """The text with its changes, word by word. Empty if the texts are not stored, or the part has none of its
    own.
    """


@dataclass(frozen=True, kw_only=True)
class PartEstimate:
    """The tokens of a part of the turn."""

    cost_micros: int | None = None
    """Likely cost. Null: the price is unknown."""
    high: int
    likely: int
    low: int
    part: enums.TurnPart


@dataclass(frozen=True, kw_only=True)
class PauseOutcome:
    paused: str
    """The name of the queue or the group."""


@dataclass(frozen=True, kw_only=True)
class Post:
    audience: list[str]
    """Addressees: names as in `sender`, or `all`."""
    author: str | None = None
    """The person or the API key that posted, as in the audit log. Null for posts of agents and of the service,
    and for older ones.
    """
    id: str
    origin: enums.PostOrigin
    posted_at: datetime
    reply_to: str | None = None
    """The post that this one answers."""
    sender: str
    """`operator`, `system`, or the name of the agent: `<agent>`, or `<agent>/<instance>` for an instance other
    than `main`.
    """
    seq: int
    """Number of the post on the board, from 1, in the order of commits."""
    session_id: str | None = None
    task_id: str | None = None
    """The task whose turn wrote the post, or that the post is about."""
    text: str
    trust: enums.PostTrust
    turn: int | None = None


@dataclass(frozen=True, kw_only=True)
class PostResult(Post):
    """A post and the tasks that it led to."""

    created: bool
    """False if an earlier call with the same idempotency key created the post."""
    notes: list[str]
    """Calls that were not made, each with the reason."""
    tasks: list[CalledAgent]
    """The agents that were called, each with its task."""
    unknown: list[UnknownName]
    """Mentioned names that no agent has."""


@dataclass(frozen=True, kw_only=True)
class PresentRun:
    """The present run of a job."""

    claimed_at: datetime
    """When it was claimed."""
    host: str | None = None
    """The host of the worker."""
    lease: int
    """The lease that it holds."""
    lease_until: datetime | None = None
    """When its worker has to have renewed the lease."""
    pid: int | None = None
    """The process of the worker."""
    worker_id: str
    """The worker of the run."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    code: str
    """Stable: programs decide by it."""
    detail: str
    """For people: what happened here, and what to do next."""
    errors: list[FieldError] = field(default_factory=list)
    """The parts of the request that are wrong, where that can be said."""
    request_id: str | None = None
    """The id in the header `X-Request-Id` of the answer and in the log of the service."""
    retryable: bool
    """True if the same request can succeed later."""
    status: int
    title: str
    type: str
    """No page says more than `code` and `detail` do (RFC 9457)."""


@dataclass(frozen=True, kw_only=True)
class PromptCache:
    """The prompt cache of the provider, as far as the turn would read from it."""

    state: enums.PromptCacheState
    tokens: int
    """Tokens at the beginning of the resumed conversation that are probably still cached."""
    until: datetime | None = None
    """The moment at which the cache expires or has expired."""


@dataclass(frozen=True, kw_only=True)
class PromptText:
    """The text of a version of an agent's prompt."""

    is_current: bool
    """True: sessions that open now are made with it."""
    prompt_hash: str
    """The hash of the version."""
    text: str | None = None
    """Null: no context of a call with this version is stored."""


@dataclass(frozen=True, kw_only=True)
class PromptVersion:
    """A version of an agent's prompt that sessions were made with. Versions end with the last of their sessions."""

    first_used_at: datetime
    """The opening of its first session."""
    is_current: bool
    """True: sessions that open now are made with it."""
    last_session_id: str
    """The session that was used last."""
    last_session_turns: int
    """Number of the last turn of that session."""
    last_used_at: datetime
    """The last use of one of its sessions."""
    prompt_hash: str
    """SHA-256 of the prompt; for the lead's main instance of prompt and roster."""
    sessions: int
    stored_session_id: str | None = None
    """The session that was used last of those with a stored context. Null: no call has one, or an older version
    has answered.
    """
    stored_turn: int | None = None
    """Number of its newest turn with a stored context."""
    turns: int


@dataclass(frozen=True, kw_only=True)
class PromptVersions:
    """At most 100 versions."""

    items: list[PromptVersion]


@dataclass(frozen=True, kw_only=True)
class ProviderRequest:
    """A request to a provider. For Claude it is what the CLI is given."""

    body: str
    headers: list[str] = field(default_factory=list)
    """Further headers that the server requires."""
    key_header: str | None = None
    """Header with the key, in which `$KEY` stands for the key; null if the request has none."""
    sha256: str
    """SHA-256 of the body."""
    url: str | None = None
    """Address; null for a program."""


@dataclass(frozen=True, kw_only=True)
class ProviderTranscript:
    """The part of a provider's own transcript that leads to the answer of a turn."""

    entries: list[TranscriptEntry]
    """Entries in order, ending with the answer."""
    file: str
    """Name of the provider's file."""
    model: str
    problem: str | None = None
    """The first difference, or the reason why there is no comparison."""
    provider: str
    session_id: str
    state: enums.ProviderTranscriptState
    turn: int


@dataclass(frozen=True, kw_only=True)
class Queue:
    """One queue, as `queue ls` shows it."""

    blocked: int
    """Jobs behind the head of their lane."""
    dead: int
    """Dead letters."""
    held: int
    """Jobs that wait for a person."""
    oldest_ready_secs: float | None = None
    """Waiting time of the oldest ready job, in seconds."""
    pause_reason: str | None = None
    """Why it is paused."""
    paused_at: datetime | None = None
    """Since when nothing is claimed from it, if it is paused."""
    queue: str
    """The name."""
    ready: int
    """Jobs that a free slot would take now."""
    running: int
    """Jobs in a worker."""
    scheduled: int
    """Jobs that wait for a time."""
    workers: int
    """Live workers that serve it."""


@dataclass(frozen=True, kw_only=True)
class Queues:
    """All queues: there are a handful."""

    items: list[Queue]


@dataclass(frozen=True, kw_only=True)
class Ready:
    migrations: MigrationState
    status: str


@dataclass(frozen=True, kw_only=True)
class RefusedRetry:
    """A task that failed at a budget and whose call the budget still does not allow: a retry would fail again,
    or wait. Or a step, which only its flow retries.
    """

    because: str
    """The present amounts of the budget. Of a step, the reason for the retry of its flow."""
    budget: str | None = None
    """The budget by its owner and key: `agent/writer`, `campaign/` and an id, `day`. Null for the budget in an
    agent's file.
    """
    command: str
    """The command that raises the limit, alike for all tasks of the budget: the limit is enough for each of
    their calls alone. For a step, the retry of its flow, which also reads the budget in the agent's file
    again.
    """
    flow_id: str | None = None
    """The flow of which the task is a step. Bulk actions leave steps out."""
    task_id: str
    waits: bool | None = None
    """The task would wait for space in the budget, and not fail."""


@dataclass(frozen=True, kw_only=True)
class RejectedAttempt:
    faults: list[str]
    step: str
    """The author: the model at `first` and `retry`, another one at `alternate`, none at `extract`."""


@dataclass(frozen=True, kw_only=True)
class RejectedSummaries:
    """The rejected summaries of a compaction."""

    attempts: list[RejectedAttempt]
    created_at: datetime
    generation: int
    """The number of the compaction in its session."""
    is_extract: bool | None = None
    """True if what passed is an extract, without a model."""
    session_id: str
    turn: int
    was_accepted_later: bool
    """True if a later attempt passed the checks."""


@dataclass(frozen=True, kw_only=True)
class ReleasedLane:
    released: str


@dataclass(frozen=True, kw_only=True)
class ReplacedMessage:
    beginning: str
    """The first 200 characters."""
    place: enums.MessagePlace
    role: str
    seq: int
    values: int | None = None
    """Number of its exact values, such as names and amounts."""
    values_shown: int | None = None
    """Number of those that the new context has word for word, in the summary or in kept texts."""


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """The text that replaces the messages."""

    flow: dict[str, Any] | None = None
    """The position in the work, from rows: ids, hand-offs, the node's instructions, the waiting message."""
    prompts: dict[str, Any] | None = None
    """Texts of people, word for word: whole prompts, and sentences of others."""
    summary: str


@dataclass(frozen=True, kw_only=True)
class ReplayedMany:
    replayed: int
    webhook_id: str


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """A call of a turn that was made again, or will be."""

    agent_file: str | None = None
    """The text of the agent file that replaced the agent's own. Null: none."""
    answer: str | None = None
    """The text of the answer; empty if it has only tool calls."""
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    call: int
    """The call of the turn, from 1."""
    cost_micros: int
    created_at: datetime
    ended_at: datetime | None = None
    error: str | None = None
    """The reason why there is no answer."""
    id: str
    input_tokens: int | None = None
    """Unknown token counts are null."""
    is_same_request: bool | None = None
    """True if the request had the same bytes as that of the turn. Null: one of the two was not sent."""
    is_unpriced: bool | None = None
    """True if the cost is 0 only because no price was set for the model."""
    ledger_id: int | None = None
    """Number of the row in the ledger."""
    metadata: dict[str, Any]
    """The words of the one who asked."""
    model: str
    number: int
    """Number of the rerun among those of the turn, from 1."""
    output_tokens: int | None = None
    partial: bool
    """True if the answer broke off at the limit for its length."""
    provider: str
    session_id: str
    state: enums.RerunState
    temperature: float | None = None
    """The temperature that replaced the one of the call. Null: it was not replaced."""
    took_ms: int | None = None
    """Milliseconds until the end of the answer."""
    tool_calls: list[ToolCall]
    """Tool calls of the answer. They are not executed."""
    turn: int


@dataclass(frozen=True, kw_only=True)
class ResumeOutcome:
    resumed: str
    """The name of the queue or the group."""
    was_paused: bool


@dataclass(frozen=True, kw_only=True)
class ResumedCredential:
    name: str
    woken_tasks: int


@dataclass(frozen=True, kw_only=True)
class RetriedJob:
    """Result of retrying a job."""

    id: int
    """The job that was named."""
    job_id: int | None = None
    """The job that runs the task now."""
    state: str
    """State of the job that runs now. `removed`: the task has moved on, nothing runs, and the dead letter is
    deleted.
    """
    task_id: str | None = None
    """The task that the job runs or ran."""
    task_state: enums.TaskState | None = None


@dataclass(frozen=True, kw_only=True)
class RunMinute:
    """Ended runs of one step of a chart: a minute, if it shows one hour."""

    done: int
    """Runs that were done."""
    failed: int
    """Runs whose job is a dead letter."""
    minutes_ago: int
    """Age of the step: 0 is the one that ends now."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One ended attempt."""

    attempt: int
    """Its number."""
    ended_at: datetime
    """When it ended."""
    error: str | None = None
    """Error of the run."""
    host: str | None = None
    """The host of the worker, as long as the worker is kept."""
    lease: int
    """The lease it held."""
    outcome: str
    """Outcome of the run."""
    pid: int | None = None
    """The process of the worker."""
    started_at: datetime | None = None
    """When it was claimed."""
    worker_id: str | None = None
    """The worker of the run."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    catch_up_secs: int
    created_at: datetime
    cron: str
    kind: str
    lane: str | None = None
    last_fired_at: datetime | None = None
    last_job_id: int | None = None
    last_slot: datetime | None = None
    """The latest slot that has fired; `last_fired_at` and `last_job_id` belong to it."""
    name: str
    next_slot: datetime | None = None
    """The next slot. Null while the schedule is paused."""
    pause_reason: str | None = None
    paused_at: datetime | None = None
    payload: Any = None
    queue: str
    source: enums.ScheduleSource
    time_zone: str


@dataclass(frozen=True, kw_only=True)
class ScheduleDetail(Schedule):
    """A schedule with its latest run by hand."""

    last_manual_run: ManualRun | None = None


@dataclass(frozen=True, kw_only=True)
class Schedules:
    """All schedules: there are a handful."""

    items: list[Schedule]


@dataclass(frozen=True, kw_only=True)
class SentContext:
    """The context of a call, as it was sent."""

    call: int | None = None
    """Number of the call in its turn, from 1. Null for calls for summaries and facts."""
    calls: int | None = None
    """Number of calls of the turn with a stored context. Null for calls for summaries and facts."""
    counted_tokens: int | None = None
    """The provider's own count of the prompt. Null if it reports none."""
    created_at: datetime
    estimated_tokens: int
    ledger_id: int | None = None
    """Number of the row in the ledger of a call for a summary or for facts."""
    messages: list[Message]
    model: str
    parts: list[ContextPart]
    """Each part with its source, and the reason why it was sent or left out. Calls for summaries and facts have
    no parts.
    """
    problem: str | None = None
    """The reason why the context cannot be shown exactly."""
    provider: str
    purpose: enums.UsagePurpose
    request: ProviderRequest | None = None
    session_id: str
    state: enums.ContextState
    system: str | None = None
    tools: list[ToolSpec]
    turn: int
    """The turn. Calls for summaries and facts are charged to the turn before them."""


@dataclass(frozen=True, kw_only=True)
class Session:
    agent: str
    campaign_id: str
    closed_at: datetime | None = None
    closed_because: enums.SessionReason | None = None
    context_tokens: int
    cost_micros: int | None = None
    """Cost of all calls of the session, also for summaries, facts and reruns, as the ledger records it. In
    millionths of the currency.
    """
    created_at: datetime
    ephemeral: bool
    expires_at: datetime
    external_session_id: str | None = None
    forked_at_turn: int | None = None
    forked_from_session: str | None = None
    """The session of which this one is a fork: it began with the messages up to `forked_at_turn`. That session
    may be gone.
    """
    generation: int
    id: str
    instance: str
    model: str
    opened_because: enums.SessionReason
    predecessor_id: str | None = None
    """The session that this one continues. Null also if that one was removed."""
    prompt_hash: str | None = None
    """SHA-256 of the prompt of the agent's file, for the lead together with the roster. Another one opens
    another session.
    """
    provider: str
    rebuild_because: enums.SessionReason | None = None
    rejected_turns: list[int]
    """Turns whose messages are not sent again. The provider has rejected their prompt, or a later prompt before
    it had answered anything.
    """
    state: enums.SessionState
    successor_id: str | None = None
    token_count: int
    turns: int
    used_at: datetime


@dataclass(frozen=True, kw_only=True)
class SessionDetail(Session):
    compactions: list[Compaction]
    """Compactions in the order of their creation, including refused ones."""
    last_turns: list[Turn]
    """The newest first."""
    nodes: list[NodeStay]
    """The nodes of the session, in order."""
    unpriced_turns: list[int] = field(default_factory=list)
    """Numbers of those whose cost is 0 only because no price was set for their model."""


@dataclass(frozen=True, kw_only=True)
class SessionExplanation:
    """The explanation of a session's state."""

    because: str
    """The reason of the state."""
    next: str
    """The next step, and who takes it."""
    session_id: str
    state: enums.SessionState


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of the process with its origin. Secrets are not shown."""

    is_default: bool | None = None
    """True if the value is the built-in default."""
    key: str
    origin: str
    """The built-in defaults, a file, a variable or a flag, in words."""
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class ShownKey(ApiKey):
    """A key with its text, which no other answer has."""

    secret: str


@dataclass(frozen=True, kw_only=True)
class SignIn:
    browser: str | None = None
    """The name that the browser gave."""
    created_at: datetime
    ended_at: datetime | None = None
    expires_at: datetime
    id: str
    key_id: str | None = None
    """The API key that was exchanged. Null: the key of the configuration."""
    peer: str | None = None
    """The address that signed in."""


@dataclass(frozen=True, kw_only=True)
class Skill:
    description: str
    name: str


@dataclass(frozen=True, kw_only=True)
class SkippedEntry:
    """An entry that a turn has skipped."""

    because: str
    entry: str
    """`provider/model`."""
    usable_at: datetime | None = None
    """Null: unknown, or only this turn skips it."""


@dataclass(frozen=True, kw_only=True)
class SnippetPart:
    """A part of a snippet."""

    is_match: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of an agent, a skill, a node or a flow template."""

    is_built_in: bool
    """True: the file comes with Dalsegno. A folder of the installation replaces all files of its kind."""
    kind: Literal["agent", "skill", "node", "flow"]
    """The object that a file describes."""
    name: str
    path: str
    """The path on the host of the service."""
    problems: list[AgentFileProblem]
    """A file with problems is refused."""


@dataclass(frozen=True, kw_only=True)
class SourceText(SourceFile):
    """A file with its text."""

    text: str | None = None
    """Null: the file cannot be read."""


@dataclass(frozen=True, kw_only=True)
class StepEstimate:
    agent: str
    charge: ChargeRange | None = None
    model: str
    provider: str
    step: str
    tasks: int


@dataclass(frozen=True, kw_only=True)
class StoredMessage(Message):
    """One row of a transcript."""

    created_at: datetime
    id: str
    partial: bool
    """True if the answer broke off when its turn was interrupted."""
    rejected: bool
    """True if the message is not sent again. The provider has rejected the prompt of its task, or a later prompt
    before it had answered anything.
    """
    seq: int
    turn: int


@dataclass(frozen=True, kw_only=True)
class SummaryCounts:
    applied: int
    refused: int
    """Compactions without any summary that passed the checks."""
    rejected_attempts: int
    """Attempts that failed a check. A better one may have followed."""
    undone: int
    """Applied ones whose messages are shown again."""


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """A table with its size."""

    added: int
    """Rows that were added since the statistics began."""
    bytes: int
    """With indexes and long texts."""
    days: list[DaySize] = field(default_factory=list)
    """Its sizes on days of the last month on which a cleanup ran, the earliest first."""
    index_bytes: int
    removed: int
    """Rows that were removed since then."""
    rows: int
    """As the statistics of the server estimate them."""
    table: str


@dataclass(frozen=True, kw_only=True)
class TaskBatch:
    """The wait of a task for a batch."""

    answer_by: datetime
    """The task waits for the batch until then, and then makes an ordinary call."""
    batch_id: str | None = None
    """The provider's id. Null: it is unknown if the provider has received the request."""
    cancelled_at: datetime | None = None
    """The time at which the batch was cancelled, because that moment has passed."""
    model: str
    problem: str | None = None
    """The error of the last look at the batch."""
    provider: str
    sent_at: datetime


@dataclass(frozen=True, kw_only=True)
class TaskDetail(Task):
    added_by: str | None = None
    """The author, as in the audit log. Null if the task was added neither through the API nor the command line."""
    batch: TaskBatch | None = None
    cancelled_because: str | None = None
    """The reason of the cancellation, from the caller or from the task that it waited for."""
    children: list[WaitedFor] = field(default_factory=list)
    """The tasks that it has added as children, in order, at most 200."""
    continues_id: str | None = None
    """The task that this one continues."""
    files: list[TaskFile] = field(default_factory=list)
    """The output files: those that its agent has written, and those that could not be stored."""
    flow_id: str | None = None
    """The flow that it is a part of."""
    flow_templates: list[str] | None = None
    """The flow templates that the agent may start in the task. Null: those of the agent's file."""
    metadata: dict[str, Any]
    node: str | None = None
    """The node that the task belongs to. Null: the session stays at its node."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Named values that its calls contain."""
    parent_id: str | None = None
    """The parent: the task that added this one as a child."""
    priority: int | None = None
    """0 is the most urgent; 100 is the default."""
    prompt_hash: str | None = None
    """The version of the agent's prompt that its last attempt used: the hash with which the session was made.
    Null: no attempt has reached a session, the session was removed, or an older version has answered.
    """
    result_fault: str | None = None
    """The fault of the last answer, while the task waits for a corrected one."""
    result_schema: dict[str, Any] | None = None
    """The JSON Schema that the answer has to match. Null: that of the agent's file, if it has one."""
    run_at: datetime | None = None
    """The earliest start. Null: at once."""
    step: str | None = None
    """Its step in the flow."""
    tags: list[str]
    turns: list[Turn]
    """The attempts that reached a session, in order."""
    unpriced_calls: list[UnpricedCalls] = field(default_factory=list)
    """The calls of its attempts for whose model no price was set: their cost counts as 0."""
    waiting: TaskWaiting | None = None
    within_secs: int | None = None
    """Seconds that the answer may take. Null: no time was given."""


@dataclass(frozen=True, kw_only=True)
class TaskExplanation:
    """The explanation of a task's state."""

    because: str
    """The reason of the state."""
    next: str
    """The next step, and who has to take it."""
    state: enums.TaskState
    task_id: str


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """A file of a task, or one that could not be stored."""

    direction: enums.FileDirection | None = None
    media_type: str | None = None
    """By its content. Null: it is not stored."""
    n_bytes: int | None = None
    name: str
    """A relative path, with `/` between its parts."""
    problem: str | None = None
    """The reason why it is not stored."""
    sha256: str | None = None
    """In hexadecimal."""
    stored_at: datetime
    turn: int | None = None
    """The turn that has written it last. Null: it is an attachment."""


@dataclass(frozen=True, kw_only=True)
class TaskFiles:
    items: list[TaskFile]


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """A filter for tasks. Absent keys match everything."""

    agent: str | None = None
    campaign_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    ended_after: datetime | None = None
    """Tasks that ended at this moment or later."""
    except_campaign_id: str | None = None
    """All campaigns but this one."""
    instance: str | None = None
    metadata: dict[str, Any] | None = None
    """All of these keys with these values."""
    state: enums.TaskState | None = None
    tags: list[str] = field(default_factory=list)
    """All of these."""
    text: str | None = None
    """In the prompt, whether in capitals or not."""


@dataclass(frozen=True, kw_only=True)
class TaskLine:
    """A task in one line."""

    agent: str
    campaign_id: str
    ended_at: datetime | None = None
    error: str | None = None
    """The beginning of the error."""
    id: str
    instance: str
    job_id: int | None = None
    """Its last job; beside the runs of a worker the job of the run, after which a retried task has others."""
    prompt: str
    """The beginning of the prompt, or of its line that mentions the agent."""
    session_id: str | None = None
    started_at: datetime | None = None
    turn: int | None = None


@dataclass(frozen=True, kw_only=True)
class TaskPriority:
    """A waiting task after a change of its priority."""

    before: int
    """The priority before the change."""
    priority: int
    task_id: str


@dataclass(frozen=True, kw_only=True)
class TaskWaiting:
    """The tasks that a task waits for or has waited for, without their results."""

    depends_on: list[WaitedFor]
    """In the order in which the task gets their results."""
    on_failure: enums.OnFailure
    waits: bool
    """True while the task waits."""


@dataclass(frozen=True, kw_only=True)
class Template:
    description: str
    improvement: FlowImprovement | None = None
    inputs: list[FlowInput]
    name: str
    steps: list[FlowStep]
    """Steps in an order in which each waits only for earlier ones."""


@dataclass(frozen=True, kw_only=True)
class TextHit:
    """A text that was found."""

    at: datetime
    """When it was written; of a task: when it was added."""
    author: str
    """The agent of a task, a message or a summary; the user that a fact is about; the sender or author of the
    others. Empty if no author is known.
    """
    campaign_id: str | None = None
    """Null for a fact that was stated outside of campaigns."""
    id: str
    """Id of the task, the post, the item, the fact or the message; of the session for a summary, of the campaign
    for a brief or a blackboard.
    """
    kind: enums.TextKind
    seq: int | None = None
    """The place of a message in its transcript, or of a post on its board; the generation of a summary; the
    version of a brief or a blackboard.
    """
    session_id: str | None = None
    """The session of a message or a summary."""
    snippet: list[SnippetPart]
    """The passages that match."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    arguments: Any = None
    id: str
    name: str
    thinking: Any = None
    """Thinking before the call, in the form of the provider that made it. Only that provider reads it, and sends
    it back unchanged.
    """


@dataclass(frozen=True, kw_only=True)
class ToolRun:
    """A tool that the service ran for a turn, as the progress of the turn tells."""

    ended_at: datetime
    """Time of the event that reported the end, which may be about a second late."""
    is_error: bool
    took_ms: int
    tool: str


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool that a model may call, as described to the model."""

    description: str
    input_schema: Any = None
    """JSON schema of its arguments, which are an object."""
    name: str


@dataclass(frozen=True, kw_only=True)
class TranscriptEntry(Message):
    """A message in the provider's transcript."""

    added: bool
    """True if the provider's program has added it in the user's name."""
    line_id: str
    """Id of its first line."""


@dataclass(frozen=True, kw_only=True)
class TurnDetail(ListedTurn):
    """A turn with its calls, and what each of them was sent."""

    claimed_at: datetime | None = None
    """Time at which the worker claimed the job for this run. Null while it runs, and after
    `queue.keep.runs_days`.
    """
    contexts: list[CallContext]
    """The contexts of the calls for the answer, stored with the end of the turn. Empty while it runs, and if its
    worker was lost.
    """
    hidden_posts: list[HiddenPost] = field(default_factory=list)
    """Posts since the turn before that the agent did not see, because they are addressed to others: the newest
    20.
    """
    ledger: list[LedgerCall]
    """The rows of the ledger. Calls for summaries and facts are charged to the turn before them, and are not
    part of its counters.
    """
    prompt_seq: int | None = None
    """Place of the prompt in the transcript of the session. Null if the turn ended before it was stored."""
    prompt_turn: int | None = None
    """The turn that stored the prompt. It is earlier if the turn repeats a task."""
    tools: list[ToolRun] = field(default_factory=list)
    """The tools that the service ran, in the order of their ends, at most 200. Empty if the provider ran its own
    tools, and after the events of the turn were removed from the feed.
    """


@dataclass(frozen=True, kw_only=True)
class TurnReruns:
    """Reruns of a call of a turn, in order."""

    fixed_temperature: str | None = None
    """The reason why reruns with another temperature are refused. Null: the temperature can be set."""
    original: OriginalCall
    reruns: list[Rerun]


@dataclass(frozen=True, kw_only=True)
class UnknownName:
    """A mentioned name that no agent has."""

    name: str
    nearest: str | None = None
    """The closest known name."""


@dataclass(frozen=True, kw_only=True)
class UnpricedCalls:
    """Calls of a turn for whose model no price was set, and for which the provider reports no cost."""

    model: str
    provider: str
    session_id: str
    turn: int


@dataclass(frozen=True, kw_only=True)
class UsageTotal:
    """Cost of all calls of one agent, model and purpose."""

    agent: str
    cache_creation_tokens: int
    cache_read_tokens: int
    calls: int
    cost_micros: int
    input_tokens: int
    model: str
    output_tokens: int
    provider: str
    purpose: enums.UsagePurpose


@dataclass(frozen=True, kw_only=True)
class UsedRateLimit:
    """A rate limit that workers use, and the tasks that wait for it."""

    amount: float
    """Per minute; of concurrent calls, at once."""
    available: float
    """Neither used nor leased by a worker. Negative: a debt, which flows off before a further call begins."""
    campaign_id: str | None = None
    """The campaign, if it limits the calls of one."""
    key: str
    """Its identity: provider, model, credential, campaign and measure, with `*` for all."""
    measure: Literal["requests", "input_tokens", "output_tokens", "concurrent_calls"]
    """The amount that a limit counts."""
    subject: str
    """The calls that it limits, in words."""
    waiting_since: datetime | None = None
    """The time from which the first of them has waited."""
    waiting_tasks: int


@dataclass(frozen=True, kw_only=True)
class UsedRateLimits:
    """All limits, in one page: rules make a few, and one per campaign at most."""

    items: list[UsedRateLimit]


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """The results of a variant in a run."""

    agent: str
    answers: int
    """Finished answers."""
    median_ms: int | None = None
    """Median time from the start of a task or of a call to its end."""
    micros: int
    """Cost in millionths, without the judge."""
    passed: int
    """Answers that passed all checks."""
    tokens: int
    variant: str


@dataclass(frozen=True, kw_only=True)
class VerifiedCall:
    """The result of assembling a stored call again."""

    call: int | None = None
    """Number of the call in its turn, from 1. Null for calls for summaries and facts."""
    ledger_id: int | None = None
    """Number of the row in the ledger of a call for a summary or for facts."""
    problem: str | None = None
    """The reason why the context cannot be shown exactly."""
    purpose: enums.UsagePurpose
    state: enums.ContextState
    turn: int
    """The turn. Calls for summaries and facts are charged to the turn before them."""


@dataclass(frozen=True, kw_only=True)
class WaitCount:
    """The waiting jobs of a queue with one reason."""

    jobs: int
    """Number of jobs."""
    next_at: datetime | None = None
    """When the first of them is due, if they wait for a time."""
    oldest_at: datetime
    """When the oldest of them was put on the queue."""
    queue: str
    """The queue."""
    ready_at: datetime | None = None
    """Since when the first of them is ready, if they wait for a slot or for the end of a pause."""
    reason: enums.WaitReason
    """The reason."""


@dataclass(frozen=True, kw_only=True)
class WaitMinute:
    """The longest wait for a start among the tasks that were added in one step of a chart: in a minute, if it
    shows one hour.
    """

    longest_secs: float
    minutes_ago: int
    """Age of the step: 0 is the one that ends now."""


@dataclass(frozen=True, kw_only=True)
class WaitedFor:
    agent: str
    instance: str
    state: enums.TaskState
    task_id: str


@dataclass(frozen=True, kw_only=True)
class WaitingJobs:
    """Waiting jobs by queue and reason."""

    items: list[WaitCount]
    waiting_for_budget: int | None = None
    """Tasks that wait for space in a budget; their jobs have the reason `condition`."""
    waiting_for_rate_limit: int | None = None
    """Tasks that wait for a rate limit; their jobs have the reason `condition`, too."""


@dataclass(frozen=True, kw_only=True)
class WayEstimate:
    """The estimate of one way."""

    charge: ChargeRange | None = None
    first_call_tokens: int | None = None
    """Likely input of each call of the turn."""
    further_call_tokens: int | None = None
    """Tokens by which the input of each further call is likely to grow."""
    impossible: str | None = None
    """The reason why the way is not possible now. All numbers are then null."""
    is_next: bool
    """True for the way that the next turn takes by itself."""
    parts: list[PartEstimate]
    """The parts of the turn, in the order in which they are sent. Each range stands for itself: lows and highs
    do not add up to those of the turn.
    """
    way: enums.Way


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A webhook, without its secrets."""

    campaign_id: str | None = None
    """Limits the webhook to the tasks of this campaign. Null: all campaigns."""
    created_at: datetime
    disabled_because: str | None = None
    enabled: bool
    failing_since: datetime | None = None
    id: str
    kinds: list[str]
    rotates_until: datetime | None = None
    """Time until which two secrets sign side by side."""
    url: str


@dataclass(frozen=True, kw_only=True)
class WebhookMessage:
    """The message about the end of a task, as a delivery sends it."""

    body: str
    """The body, byte for byte: a JSON object."""
    kind: str
    """`task.done`, `task.failed` or `task.cancelled`."""
    task_id: str


@dataclass(frozen=True, kw_only=True)
class WebhookWithSecret(Webhook):
    """A webhook with its secret, which no other answer has."""

    secret: str


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """All webhooks: there are a handful."""

    items: list[Webhook]


@dataclass(frozen=True, kw_only=True)
class WordChange:
    """A stretch of a text."""

    kind: enums.WordChangeKind
    text: str


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One incarnation of a worker process."""

    gone_at: datetime | None = None
    """When it stopped, or was declared lost."""
    gone_reason: str | None = None
    """`stopped` or `lost`."""
    host: str
    """The host of the process."""
    id: str
    """Made when it started; never used again."""
    pid: int
    """Its process there."""
    queues: list[str]
    """Queues that it serves."""
    started_at: datetime
    """When it started."""


@dataclass(frozen=True, kw_only=True)
class WorkerActivity:
    """Workers with their runs, over the last minutes."""

    runs: list[WorkerRun]
    """Running ones first; at most 500, and at most 500 that have ended."""
    since: datetime
    tasks: list[TaskLine] = field(default_factory=list)
    """The tasks of the runs of one worker, by the job of the run: also those that were retried as another job
    since, if the run had a turn or was the first one.
    """
    workers: list[WorkerLoad]
    """Live workers first, those that started last first; at most 50."""


@dataclass(frozen=True, kw_only=True)
class WorkerLoad:
    """A worker process with what it runs and what it has run."""

    draining: bool
    """True: it takes no more jobs, and ends."""
    gone_at: datetime | None = None
    """When it stopped, or was declared lost."""
    gone_reason: str | None = None
    """`stopped` or `lost`."""
    host: str
    """Its host."""
    id: str
    """The process."""
    lease_until: datetime
    """Its jobs are given to others after this time, unless it renews its lease."""
    pid: int
    """Its process there."""
    queues: list[str]
    """Queues that it serves."""
    slots: int
    """Jobs that it runs at once."""
    started_at: datetime
    """When it started."""
    version: str
    """Its version."""


@dataclass(frozen=True, kw_only=True)
class WorkerRun:
    """A run of a job, which may not have ended yet."""

    ended_at: datetime | None = None
    """When it ended. Null while it runs."""
    job_id: int
    """The job."""
    kind: str
    """Its kind."""
    lane: str | None = None
    """Its lane."""
    outcome: str | None = None
    """`done`, `retry`, `failed` and so on. Null while it runs."""
    started_at: datetime
    """When it was claimed."""
    worker_id: str
    """The worker."""
