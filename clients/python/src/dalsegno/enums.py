"""Enumerations. Newer services may send further values. Written by `python3 clients/generate`: do not edit."""

from __future__ import annotations

from typing import Literal

AgentState = Literal[
    "idle",
    "working",
    "error",
    "waiting",
    "limited",
]

AgentWaitCause = Literal[
    "credential",
    "provider",
    "budget",
    "rate_limit",
    "other",
]

AttentionKind = Literal[
    "failed_task",
    "held_jobs",
    "paused_queue",
    "paused_campaign",
    "paused_agent",
    "paused_credential",
    "spent_budget",
    "spent_task_budget",
    "busy_model",
    "provider_wait",
    "held_lane",
    "deserted_queue",
    "dead_jobs",
    "broken_agent_files",
    "disabled_webhook",
    "failing_webhook",
    "failed_deliveries",
    "paused_cleanup",
    "overdue_cleanup",
    "old_transaction",
]

BlackboardChangeKind = Literal[
    "set",
    "patch",
]

# Kind of owner of a budget that is not that of a task.
BudgetOwner = Literal[
    "agent",
    "campaign",
    "day",
    "user",
]

BulkActionState = Literal[
    "queued",
    "running",
    "done",
    "cancelled",
    "failed",
]

CampaignStatus = Literal[
    "active",
    "paused",
    "closed",
]

# Reason for the removal of a session.
CleanupBecause = Literal[
    "expired",
    "closed",
]

# The cause of a compaction.
CompactionCause = Literal[
    "auto",
    "overflow",
    "manual",
    "inherited",
]

CompactionOutcome = Literal[
    "prepared",
    "applied",
    "stale",
    "refused",
]

ContextPartKind = Literal[
    "agent_prompt",
    "fence_rules",
    "skill",
    "campaign_brief",
    "client_context",
    "edict",
    "fact",
    "roster",
    "summary",
    "transcript",
    "synthetic_results",
    "notice",
    "posts",
    "statuses",
    "parameters",
    "blackboard",
    "result_schema",
    "results",
    "task",
    "attachment",
    "tools",
    "rounds",
]

ContextPartReason = Literal[
    "every_call",
    "stands_in",
    "recent_history",
    "completes_interrupted_call",
    "session_restored",
    "since_cursor",
    "this_turn",
    "waited_for",
    "folded",
    "not_inherited",
    "orphaned_result",
    "system_in_history",
    "empty",
    "is_the_task",
    "own_answer",
    "is_a_task",
    "shown_before",
    "beyond_window",
    "no_room",
    "shortened",
    "last_call",
    "correction",
    "placed_as_file",
    "file_not_accepted",
    "file_not_readable",
    "file_too_large",
    "too_many_files",
    "file_removed",
]

# Origin of the text of a part.
ContextPartTrust = Literal[
    "trusted",
    "untrusted",
]

# The result of comparing a stored context with the one that was sent.
ContextState = Literal[
    "exact",
    "no_request",
    "erased",
    "differs",
    "unknown_version",
]

# Order of the calls.
CostCallOrder = Literal[
    "newest",
    "costliest",
]

# A property of a call by which costs are added up.
CostDimension = Literal[
    "day",
    "campaign",
    "agent",
    "model",
    "provider",
    "purpose",
    "user",
]

# A figure of calls.
CostMeasure = Literal[
    "money",
    "tokens",
]

DeliveryState = Literal[
    "waiting",
    "delivered",
    "failed",
    "held",
]

# The reason why a fact has ended.
FactEnded = Literal[
    "contradicted",
    "edited",
    "revoked",
    "expired",
]

FactExtractionOutcome = Literal[
    "done",
    "refused",
]

FactSource = Literal[
    "extracted",
    "written",
    "stated",
    "edited",
]

# The reliability of a fact.
FactTrust = Literal[
    "operator",
    "agent",
]

# Origin of a file of a task.
FileDirection = Literal[
    "in",
    "out",
]

# The state, derived from the latest task at each place.
FlowState = Literal[
    "running",
    "paused",
    "done",
    "failed",
    "cancelled",
]

# The result of comparing the count of a turn's first prompt with the history that belongs to it.
HistoryCheck = Literal[
    "seen",
    "not_seen",
    "not_provable",
    "no_history",
]

# Urgency of an interrupt.
InterruptMode = Literal[
    "soft",
    "hard",
]

# Effect of a cancellation.
JobCancelled = Literal[
    "at_once",
    "requested",
    "already_dead",
    "already_ended",
]

MemoryKind = Literal[
    "edict",
    "record",
    "journal",
]

MemoryOrigin = Literal[
    "operator",
    "agent",
]

# Trust level of an item.
MemoryTrust = Literal[
    "operator",
    "agent",
    "imported",
]

# The place of a replaced message in the new context. All of them are in the archive, too.
MessagePlace = Literal[
    "kept",
    "shortened",
    "sentences",
    "summary",
    "archive",
]

# Reaction to the failure or cancellation of a task that this one waits for.
OnFailure = Literal[
    "run",
    "cancel",
]

# Effect of a hard limit on the tasks that reach it.
OnLimit = Literal[
    "wait",
    "fail",
]

PartChange = Literal[
    "added",
    "removed",
    "changed",
]

# The treatment of calls that no rule names. No user is there to be asked.
PermissionMode = Literal[
    "dontAsk",
    "acceptEdits",
    "plan",
    "bypassPermissions",
]

PostOrigin = Literal[
    "operator",
    "agent",
    "system",
]

# Trust level of a post.
PostTrust = Literal[
    "operator",
    "key",
    "agent",
    "system",
]

PriceOrigin = Literal[
    "configured",
    "published",
    "charged",
]

PromptCacheState = Literal[
    "none",
    "empty",
    "valid",
    "expired",
    "changed",
]

# The result of comparing a provider's transcript with the stored messages.
ProviderTranscriptState = Literal[
    "equal",
    "differs",
    "not_compared",
]

RerunState = Literal[
    "queued",
    "done",
    "failed",
]

Role = Literal[
    "system",
    "user",
    "assistant",
    "tool",
    "notice",
    "posts",
]

# The origin of a schedule's timetable.
ScheduleSource = Literal[
    "built_in",
    "user",
]

Scope = Literal[
    "read",
    "enqueue",
    "operate",
    "admin",
    "mcp",
]

# The session that a task asks for.
SessionMode = Literal[
    "continue",
    "fresh",
    "none",
]

# Reason why a session was opened, is to be rebuilt, or was closed.
SessionReason = Literal[
    "new",
    "prompt_changed",
    "model_changed",
    "provider_changed",
    "context_full",
    "expired",
    "reset",
    "lost",
    "poisoned",
    "fresh",
    "ended",
    "campaign_closed",
]

SessionState = Literal[
    "idle",
    "running",
    "interrupted",
    "error",
    "closed",
]

TaskAction = Literal[
    "cancel",
    "retry",
]

TaskCancelled = Literal[
    "at_once",
    "requested",
    "at_safe_point",
    "had_ended",
]

TaskState = Literal[
    "queued",
    "running",
    "done",
    "failed",
    "cancelled",
]

TextKind = Literal[
    "task",
    "post",
    "memory",
    "message",
    "summary",
    "brief",
    "blackboard",
    "fact",
]

Think = Literal[
    "off",
    "on",
    "low",
    "medium",
    "high",
]

# A part of a turn, as far as its cost goes.
TurnPart = Literal[
    "compaction",
    "provider",
    "tools",
    "system",
    "summary",
    "messages",
    "posts",
    "state",
    "prompt",
    "further_calls",
    "answer",
]

TurnState = Literal[
    "running",
    "done",
    "interrupted",
    "failed",
]

UsageOutcome = Literal[
    "done",
    "failed",
    "interrupted",
]

UsagePurpose = Literal[
    "turn",
    "summary",
    "facts",
    "rerun",
]

# The place of an exact value in the new context, word for word.
ValuePlace = Literal[
    "summary",
    "kept_text",
    "archive",
]

# A reason for which a job waits.
WaitReason = Literal[
    "slot",
    "pause",
    "lane",
    "lane_hold",
    "later",
    "retry",
    "snooze",
    "provider",
    "batch",
    "condition",
    "crash",
    "signal",
    "person",
    "failure",
]

# A way in which the turn could begin.
Way = Literal[
    "resume",
    "compact_first",
    "new_session",
]

# Kind of message that a webhook subscribes to.
WebhookKind = Literal[
    "task.done",
    "task.failed",
    "task.cancelled",
    "budget.warning",
]

WordChangeKind = Literal[
    "same",
    "added",
    "removed",
]
