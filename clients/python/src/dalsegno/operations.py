"""Methods for each operation of the API. Written by `python3 clients/generate`: do not edit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack
from uuid import UUID

from . import enums, models, params
from .events import Event
from .models import Page
from .request import Request, segment

T = TypeVar("T")


class Operations:
    """Each method is the operation of the same name in the API document."""

    @abstractmethod
    def _call(self, request: Request, answer: Any) -> Any: ...

    @abstractmethod
    def _stream(self, request: Request) -> Iterator[Event]: ...

    def add_many_tasks(
        self,
        campaign_id: str | UUID,
        items: Sequence[params.BulkTask],
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.AddedMany:
        """Adds up to 10,000 tasks in one transaction: all or none.

        The body is a JSON array, or one object per line (NDJSON). With an Idempotency-Key the same request
        can be sent again: a task without an idempotency_key of its own gets that key and its number in the
        body, such as `import/1` for the first. Where tasks are refused, `errors` points at each of them, up
        to a hundred. Idempotency keys and predecessors are looked up when everything else is right.
        """
        answer: models.AddedMany = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/tasks/bulk", body=items, takes_key=True, key=idempotency_key), models.AddedMany)
        return answer

    def add_post(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewPost],
    ) -> models.PostResult:
        """Posts as the operator.

        Each agent that the text mentions as `@name` gets a task, `@all` means all of them; its answer is a
        post that answers. The agents that a post is addressed to see it with their next turn; the operator
        and the lead see everything. The same Idempotency-Key and question give the same post again, with 200,
        as long as the campaign exists; another question under the key is a conflict.
        """
        answer: models.PostResult = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/posts", body=body, takes_key=True, key=idempotency_key), models.PostResult)
        return answer

    def add_task(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewTask],
    ) -> models.AddedTask:
        """Adds a task for an agent.

        The same Idempotency-Key and question give the same task again, with 200; another question under the
        key is a conflict. Keys belong to a campaign and an API key, by its name; everything without an API
        key is one caller.
        """
        answer: models.AddedTask = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/tasks", body=body, takes_key=True, key=idempotency_key), models.AddedTask)
        return answer

    def add_webhook(self, **body: Unpack[params.NewWebhook]) -> models.WebhookWithSecret:
        """Adds a webhook for the ends of tasks. Only this response contains its secret."""
        answer: models.WebhookWithSecret = self._call(Request("POST", "/v1/webhooks", body=body), models.WebhookWithSecret)
        return answer

    def cancel_flow(
        self,
        flow_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.CancelFlow],
    ) -> models.CancelledFlow:
        """Cancels all open tasks of a flow: waiting tasks at once, running tasks through their workers."""
        answer: models.CancelledFlow = self._call(Request("POST", f"/v1/flows/{segment(flow_id)}/cancel", body=body or None, takes_key=True, key=idempotency_key), models.CancelledFlow)
        return answer

    def cancel_job(
        self,
        job_id: int,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.CancelJob],
    ) -> models.CancelledJob:
        """Cancels a job: at once if it waits, through its worker if it runs.

        Cancelling the job of a task cancels the task, with its children. Cancelling the job of a webhook
        delivery gives the delivery up; a replay sends it again.
        """
        answer: models.CancelledJob = self._call(Request("POST", f"/v1/jobs/{segment(job_id)}/cancel", body=body or None, takes_key=True, key=idempotency_key), models.CancelledJob)
        return answer

    def cancel_task(
        self,
        task_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.CancelTask],
    ) -> models.CancelledTask:
        """Cancels a task: at once if it waits, through its worker if it runs.

        The tasks that depend on it are cancelled, too, even if the task itself had ended.
        """
        answer: models.CancelledTask = self._call(Request("POST", f"/v1/tasks/{segment(task_id)}/cancel", body=body or None, takes_key=True, key=idempotency_key), models.CancelledTask)
        return answer

    def change_budget(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.LimitChange],
    ) -> models.Budget:
        """Changes the limits of a campaign. A limit that is not named stays; null removes it.

        Waiting tasks for which there is space now continue.
        """
        answer: models.Budget = self._call(Request("PATCH", f"/v1/campaigns/{segment(campaign_id)}/budget", body=body or None, takes_key=True, key=idempotency_key), models.Budget)
        return answer

    def change_task_budget(
        self,
        task_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.TaskLimitChange],
    ) -> models.Task:
        """Changes the budget of a task. A limit that is not named stays; null removes it.

        If the task waits for its budget and the next call fits now, it continues.
        """
        answer: models.Task = self._call(Request("PATCH", f"/v1/tasks/{segment(task_id)}/budget", body=body or None, takes_key=True, key=idempotency_key), models.Task)
        return answer

    def change_task_priority(
        self,
        task_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PriorityChange],
    ) -> models.TaskPriority:
        """Changes the priority of a waiting task. The tasks of a conversation keep their order.

        Retries keep the new priority.
        """
        answer: models.TaskPriority = self._call(Request("PATCH", f"/v1/tasks/{segment(task_id)}/priority", body=body, takes_key=True, key=idempotency_key), models.TaskPriority)
        return answer

    def close_campaign(self, campaign_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Campaign:
        """Closes a campaign: it takes no more tasks. Waiting tasks still run."""
        answer: models.Campaign = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/close", takes_key=True, key=idempotency_key), models.Campaign)
        return answer

    def compact_session(
        self,
        session_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.AcceptedCompaction:
        """Compacts a session: a summary replaces its older messages.

        A worker compacts it; `GET /v1/sessions/{id}/compaction` shows the outcome, and the session lists its
        compactions.
        """
        answer: models.AcceptedCompaction = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/compact", takes_key=True, key=idempotency_key), models.AcceptedCompaction)
        return answer

    def compare_campaign_versions(
        self,
        campaign_id: str | UUID,
        /,
        *,
        from_: int,
        to: int | None = None,
    ) -> models.CampaignDiff:
        """Compares two versions of a campaign's brief, client context and parameters, word by word.

        - `to`: Without it, the current version.
        """
        answer: models.CampaignDiff = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/version-diff", query={"from": from_, "to": to}), models.CampaignDiff)
        return answer

    def compare_compaction(self, session_id: str | UUID, compaction_number: int, /) -> models.CompactionComparison:
        """Compares a session before and after a compaction: the place of each replaced message and value, and
        the rejected summaries.
        """
        answer: models.CompactionComparison = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/compactions/{segment(compaction_number)}"), models.CompactionComparison)
        return answer

    def compare_contexts(
        self,
        session_id: str | UUID,
        /,
        *,
        from_: int,
        to: int,
        to_session: str | UUID | None = None,
    ) -> models.ContextDiff:
        """Compares what two turns were sent, in one session or in two: which parts came, went and changed.

        - `to_session`: Session of the turn `to`. Without it, the same session.
        """
        answer: models.ContextDiff = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/context-diff", query={"from": from_, "to": to, "to_session": to_session}), models.ContextDiff)
        return answer

    def create_bulk_action(
        self,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewBulkAction],
    ) -> models.BulkAction:
        """Cancels or retries all tasks that match a filter, on a worker.

        Tasks that are added later are not affected. Tasks whose state changes before the worker reaches them
        are skipped.
        """
        answer: models.BulkAction = self._call(Request("POST", "/v1/bulk-actions", body=body, takes_key=True, key=idempotency_key), models.BulkAction)
        return answer

    def create_campaign(
        self,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewCampaign],
    ) -> models.CampaignOverview:
        """Creates a campaign."""
        answer: models.CampaignOverview = self._call(Request("POST", "/v1/campaigns", body=body, takes_key=True, key=idempotency_key), models.CampaignOverview)
        return answer

    def create_key(self, **body: Unpack[params.NewKey]) -> models.ShownKey:
        """Creates an API key. Only this response contains its text."""
        answer: models.ShownKey = self._call(Request("POST", "/v1/keys", body=body), models.ShownKey)
        return answer

    def disable_webhook(
        self,
        webhook_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.DisableWebhook],
    ) -> models.Webhook:
        """Disables a webhook. Deliveries are held until it is enabled."""
        answer: models.Webhook = self._call(Request("POST", f"/v1/webhooks/{segment(webhook_id)}/disable", body=body or None, takes_key=True, key=idempotency_key), models.Webhook)
        return answer

    def download_task_file(
        self,
        task_id: str | UUID,
        file_name: str,
        /,
        *,
        direction: enums.FileDirection | None = None,
    ) -> bytes:
        """Returns a file of a task.

        Its type follows from its content; texts of all kinds are `text/plain`. A `/` in the name is written
        as `%2F` in the path.
        """
        answer: bytes = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}/files/{segment(file_name)}", query={"direction": direction}), bytes)
        return answer

    def edit_campaign(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.CampaignEdit],
    ) -> models.EditedCampaign:
        """Changes the brief, the client context or parameters of a campaign, from the next call on. No session
        is rebuilt.

        Each edit makes a version. The record of each call names the version that it contains.
        """
        answer: models.EditedCampaign = self._call(Request("PATCH", f"/v1/campaigns/{segment(campaign_id)}", body=body or None, takes_key=True, key=idempotency_key), models.EditedCampaign)
        return answer

    def edit_fact(
        self,
        user_name: str,
        fact: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.EditFact],
    ) -> models.Fact:
        """Replaces the text of a valid fact. The older text stays in the history."""
        answer: models.Fact = self._call(Request("POST", f"/v1/users/{segment(user_name)}/facts/{segment(fact)}/edit", body=body, takes_key=True, key=idempotency_key), models.Fact)
        return answer

    def enable_webhook(self, webhook_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Webhook:
        """Enables a webhook again. Deliveries held meanwhile can be replayed."""
        answer: models.Webhook = self._call(Request("POST", f"/v1/webhooks/{segment(webhook_id)}/enable", takes_key=True, key=idempotency_key), models.Webhook)
        return answer

    def end_sign_in(self, sign_in_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.SignIn:
        """Ends a sign-in: the browser has to sign in again with a key."""
        answer: models.SignIn = self._call(Request("POST", f"/v1/sign-ins/{segment(sign_in_id)}/end", takes_key=True, key=idempotency_key), models.SignIn)
        return answer

    def erase_campaign(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.EraseCampaign],
    ) -> models.Erasure:
        """Erases the conversations, prompts, results and brief of a campaign permanently; its costs stay.

        A worker erases them. A repeated request returns the same receipt.
        """
        answer: models.Erasure = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/erasure", body=body or None, takes_key=True, key=idempotency_key), models.Erasure)
        return answer

    def estimate_flow(
        self,
        campaign_id: str | UUID,
        /,
        **body: Unpack[params.FlowQuestion],
    ) -> models.FlowEstimate:
        """Estimates tokens and cost of a flow that is not started: the sums of its steps.

        Calls no model and changes nothing. Results of earlier steps are unknown, so the input of later steps
        is larger than estimated. Of the tasks of a step for each item, the first one is estimated and
        multiplied.
        """
        answer: models.FlowEstimate = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/flows/estimate", body=body), models.FlowEstimate)
        return answer

    def estimate_session(
        self,
        session_id: str | UUID,
        /,
        **body: Unpack[params.EstimateSession],
    ) -> models.Estimate:
        """Estimates tokens and cost of the next turn of a session's conversation.

        Calls no model and changes nothing.
        """
        answer: models.Estimate = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/estimate", body=body or None), models.Estimate)
        return answer

    def estimate_task(self, campaign_id: str | UUID, /, **body: Unpack[params.EstimateTask]) -> models.Estimate:
        """Estimates tokens and cost of a task that is not added.

        Calls no model and changes nothing. The input of the first call is drafted as a turn would draft it;
        further calls, and the length of the answer, are those of earlier turns of the agent. Compares
        resuming the session, a compaction before it, and a new session.
        """
        answer: models.Estimate = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/estimate", body=body), models.Estimate)
        return answer

    def explain_job(self, job_id: int, /) -> models.JobExplanation:
        """Explains why a job is in its state, and what has to happen next."""
        answer: models.JobExplanation = self._call(Request("GET", f"/v1/jobs/{segment(job_id)}/explain"), models.JobExplanation)
        return answer

    def explain_session(self, session_id: str | UUID, /) -> models.SessionExplanation:
        """Explains the state of a session: the reason, and what happens next."""
        answer: models.SessionExplanation = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/explain"), models.SessionExplanation)
        return answer

    def explain_task(self, task_id: str | UUID, /) -> models.TaskExplanation:
        """Explains why a task is in its state, and what has to happen next."""
        answer: models.TaskExplanation = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}/explain"), models.TaskExplanation)
        return answer

    def export_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: str | UUID | None = None,
        limit: int | None = None,
    ) -> Page[models.MemoryItem]:
        """Exports items with their texts, in the order in which they were first written.

        - `cursor`: The id of the last item that was read.
        """
        answer: Page[models.MemoryItem] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory/export", query={"cursor": cursor, "limit": limit}), Page[models.MemoryItem])
        return answer

    def find_id(
        self,
        *,
        noun: Literal["bulk_action", "campaign", "fact", "flow", "memory_item", "post", "session", "task", "webhook", "webhook_delivery"],
        text: str,
        newest: int | None = None,
    ) -> models.FoundId:
        """Finds the id with a beginning or end; that of a campaign also by its name.

        A key with the scope `enqueue` finds campaigns only.

        - `newest`: Looks for last digits among this many of the newest ids only. No index has the ends of ids, so a
          search of all reads the whole table.
        - `text`: The id, its beginning, eight or more of its last digits, or the name of a campaign.
        """
        answer: models.FoundId = self._call(Request("GET", "/v1/ids", query={"newest": newest, "noun": noun, "text": text}), models.FoundId)
        return answer

    def find_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        kind: Literal["edict", "record", "journal"],
        name: str,
        owner: str | None = None,
    ) -> models.MemoryItem:
        """Finds the item with this kind, owner and name, also a revoked or expired one.

        - `owner`: The agent of a journal; edicts and records have none.
        """
        answer: models.MemoryItem = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory/find", query={"kind": kind, "name": name, "owner": owner}), models.MemoryItem)
        return answer

    def follow_feed(
        self,
        *,
        after: int | None = None,
        agent: str | None = None,
        campaign_id: str | UUID | None = None,
        kinds: str | None = None,
        session_id: str | UUID | None = None,
        last_event_id: str | None = None,
    ) -> Iterator[Event]:
        """Streams all events as server-sent events, without an end.

        The data of an event is a `FeedEvent`. A client that names no place, or one that this database has not
        reached (it was restored, or a standby has taken over), gets an event `begin` first, whose id is where
        the stream begins.

        - `after`: The id of the last event that was received; 0 for all stored events. The header Last-Event-ID
          takes precedence.
        - `agent`: An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
        - `kinds`: Only these, with commas between them: `turn.done,turn.failed`.
        """
        return self._stream(Request("GET", "/v1/feed", query={"after": after, "agent": agent, "campaign_id": campaign_id, "kinds": kinds, "session_id": session_id}, last_event_id=last_event_id))

    def follow_task(self, task_id: str | UUID, /, *, last_event_id: str | None = None) -> Iterator[Event]:
        """Streams the events of a task as server-sent events; the last one is `end`, with the task as its data.

        The data of `end` also has `rest`: the part of the result that no `turn.progress` had. It is the whole
        result if their texts are not its begin: a turn was repeated, has used tools, or a text was cut.
        """
        return self._stream(Request("GET", f"/v1/tasks/{segment(task_id)}/events", last_event_id=last_event_id))

    def forget_user(self, user_name: str, /, *, idempotency_key: str | None = None) -> models.FactsForgotten:
        """Removes all facts about a user permanently, including ended ones.

        Earlier prompts are not read for facts any more. Later ones are, in campaigns that go on working for
        this user. Prompts, transcripts, summaries and records stay. `sessions` says where to look; erasing a
        campaign removes them.
        """
        answer: models.FactsForgotten = self._call(Request("POST", f"/v1/users/{segment(user_name)}/forget", takes_key=True, key=idempotency_key), models.FactsForgotten)
        return answer

    def fork_session(
        self,
        session_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ForkSession],
    ) -> models.Session:
        """Forks a session: a new conversation of its agent begins as this one was after a turn.

        The fork has copies of the summary and the messages up to that turn, and is a new instance of the
        agent. Tasks of that instance continue it. The session and its conversation are not changed.
        """
        answer: models.Session = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/forks", body=body or None, takes_key=True, key=idempotency_key), models.Session)
        return answer

    def hand_out(
        self,
        task_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewChildren],
    ) -> models.HandedOut:
        """Adds children to a task; its agent continues when all of them have ended.

        All of it is added or nothing. The continuation is a task of the same agent and instance; it is told
        what each child came to, failures included, in the order of the request. Cancelling the task cancels
        its children and its continuation. The same Idempotency-Key and question give the same tasks again,
        with 200; a child without a key of its own gets one of that. An API key with the scope `enqueue` alone
        hands out from tasks that keys of its name have added.
        """
        answer: models.HandedOut = self._call(Request("POST", f"/v1/tasks/{segment(task_id)}/children", body=body, takes_key=True, key=idempotency_key), models.HandedOut)
        return answer

    def hold_job(
        self,
        job_id: int,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.HoldJob],
    ) -> models.ChangedJob:
        """Prevents a job from running until it is released; a blocked job is held when its turn comes."""
        answer: models.ChangedJob = self._call(Request("POST", f"/v1/jobs/{segment(job_id)}/hold", body=body or None, takes_key=True, key=idempotency_key), models.ChangedJob)
        return answer

    def hold_lane(
        self,
        lane_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.HoldLane],
    ) -> models.HeldLane:
        """Stops a lane after its running job."""
        answer: models.HeldLane = self._call(Request("POST", f"/v1/lanes/{segment(lane_name)}/hold", body=body or None, takes_key=True, key=idempotency_key), models.HeldLane)
        return answer

    def import_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.MemoryImport],
    ) -> models.MemoryImported:
        """Imports many items: all of them, or none and a list of all problems."""
        answer: models.MemoryImported = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/memory/import", body=body, takes_key=True, key=idempotency_key), models.MemoryImported)
        return answer

    def interrupt_agent(
        self,
        campaign_id: str | UUID,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.InterruptAgent],
    ) -> models.InterruptedTasks:
        """Stops the running turns of an agent and all its instances in a campaign, and cancels their tasks.

        Its other tasks go on, unless it is paused first.
        """
        answer: models.InterruptedTasks = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/agents/{segment(agent_name)}/interrupt", body=body or None, takes_key=True, key=idempotency_key), models.InterruptedTasks)
        return answer

    def interrupt_session(
        self,
        session_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.InterruptSession],
    ) -> models.InterruptResult:
        """Stops the running turn of a session by cancelling its task."""
        answer: models.InterruptResult = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/interrupt", body=body or None, takes_key=True, key=idempotency_key), models.InterruptResult)
        return answer

    def list_agent_pauses(self) -> models.AgentPauses:
        """Lists the pauses of agents: in one campaign, or in all of them."""
        answer: models.AgentPauses = self._call(Request("GET", "/v1/agents/pauses"), models.AgentPauses)
        return answer

    def list_agent_statuses(self, campaign_id: str | UUID, /) -> models.AgentStatuses:
        """Lists the agents of a campaign with their states and pauses."""
        answer: models.AgentStatuses = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/agents"), models.AgentStatuses)
        return answer

    def list_agents(self) -> models.Agents:
        """Lists all agents, skills and nodes, and the problems of their files."""
        answer: models.Agents = self._call(Request("GET", "/v1/agents"), models.Agents)
        return answer

    def list_archives(self, session_id: str | UUID, /) -> models.Archives:
        """Lists the archives of a session: the messages that its compactions have replaced."""
        answer: models.Archives = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/archives"), models.Archives)
        return answer

    def list_audit(
        self,
        *,
        action: str | None = None,
        actor: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        cursor: int | str | None = None,
        limit: int | None = None,
        subject: str | None = None,
    ) -> Page[models.AuditEntry]:
        """Lists the audit log, the newest first.

        Filters by caller, action and the name of a subject check each line. A page checks at most 100,000
        lines: it may have fewer items than `limit`, or none, and a `next`.

        - `action`: `task.cancel`, or `task` for everything that was done to tasks.
        - `actor`: A name, a kind, or the id of a key.
        - `created_after`: Only lines that were written at this moment or later.
        - `created_before`: Only lines that were written earlier.
        - `subject`: An id; eight or more of its last digits, if one of the newest 100,000 lines has it; or the name
          of a campaign, an agent, a user, an API key, a schedule, or another thing that has one; or the URL or the
          host of a webhook.
        """
        answer: Page[models.AuditEntry] = self._call(Request("GET", "/v1/audit", query={"action": action, "actor": actor, "created_after": created_after, "created_before": created_before, "cursor": cursor, "limit": limit, "subject": subject}), Page[models.AuditEntry])
        return answer

    def list_blackboard_changes(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.BlackboardChange]:
        """Lists the changes of a blackboard, the newest first.

        - `cursor`: A version.
        """
        answer: Page[models.BlackboardChange] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/blackboard/history", query={"cursor": cursor, "limit": limit}), Page[models.BlackboardChange])
        return answer

    def list_budgets(
        self,
        *,
        cursor: str | None = None,
        key: str | None = None,
        limit: int | None = None,
        owner: Literal["agent", "campaign", "day", "user"] | None = None,
    ) -> Page[models.OwnedBudget]:
        """Lists the budgets of agents, users and the day, and those of open campaigns, with what is spent and
        how many tasks wait.

        - `cursor`: Owner and key of the last budget of the previous page, with a `/` between them.
        - `key`: The name of an agent or a user, or the id of a campaign.
        """
        answer: Page[models.OwnedBudget] = self._call(Request("GET", "/v1/budgets", query={"cursor": cursor, "key": key, "limit": limit, "owner": owner}), Page[models.OwnedBudget])
        return answer

    def list_bulk_actions(
        self,
        *,
        cursor: str | UUID | None = None,
        limit: int | None = None,
    ) -> Page[models.BulkAction]:
        """Lists bulk actions, the newest first."""
        answer: Page[models.BulkAction] = self._call(Request("GET", "/v1/bulk-actions", query={"cursor": cursor, "limit": limit}), Page[models.BulkAction])
        return answer

    def list_calls(
        self,
        *,
        agent: str | None = None,
        campaign_id: str | UUID | None = None,
        cursor: int | str | None = None,
        limit: int | None = None,
        model: str | None = None,
        order: enums.CostCallOrder | None = None,
        provider: str | None = None,
        purpose: Literal["turn", "summary", "facts", "rerun"] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        user: str | None = None,
        without_reruns: bool | None = None,
    ) -> Page[models.CostCall]:
        """Lists calls of the ledger with their costs: those behind a line of a cost report.

        - `cursor`: The last call of the previous page, if the newest come first.
        - `order`: Without it, the newest first.
        - `since`: Only calls at this moment or later. A day such as `2026-11-23`, `today` and `yesterday` stand for
          its begin.
        - `until`: Only earlier calls: before a moment, or before the begin of a day.
        - `user`: The user for whom the campaign works now; an empty text for campaigns without one.
        - `without_reruns`: True: only calls that the budgets of campaigns, agents, users and days pay for. Reruns
          have a budget of their own.
        """
        answer: Page[models.CostCall] = self._call(Request("GET", "/v1/costs/calls", query={"agent": agent, "campaign_id": campaign_id, "cursor": cursor, "limit": limit, "model": model, "order": order, "provider": provider, "purpose": purpose, "since": since, "until": until, "user": user, "without_reruns": without_reruns}), Page[models.CostCall])
        return answer

    def list_campaign_versions(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.CampaignVersionSummary]:
        """Lists the versions of a campaign's brief, client context and parameters, the newest first, without the
        texts.

        - `cursor`: A version.
        """
        answer: Page[models.CampaignVersionSummary] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/versions", query={"cursor": cursor, "limit": limit}), Page[models.CampaignVersionSummary])
        return answer

    def list_campaigns(
        self,
        *,
        cursor: str | UUID | None = None,
        limit: int | None = None,
        metadata: str | None = None,
        tags: str | None = None,
    ) -> Page[models.Campaign]:
        """Lists campaigns, the newest first.

        - `metadata`: Only those with all of these keys and values: a JSON object, such as `{"customer":"acme"}`.
        - `tags`: Only those with all of these tags; commas between them.
        """
        answer: Page[models.Campaign] = self._call(Request("GET", "/v1/campaigns", query={"cursor": cursor, "limit": limit, "metadata": metadata, "tags": tags}), Page[models.Campaign])
        return answer

    def list_checked_turns(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: str | None = None,
        history: enums.HistoryCheck | None = None,
        limit: int | None = None,
    ) -> Page[models.CheckedTurn]:
        """Lists the ended turns of a campaign, each with the proof that the model saw the history.

        The newest session comes first, and its last turn first. With `history`, a page checks at most 10,000
        turns: it may have fewer items than `limit`, or none, and a `next`.
        """
        answer: Page[models.CheckedTurn] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/fidelity/turns", query={"cursor": cursor, "history": history, "limit": limit}), Page[models.CheckedTurn])
        return answer

    def list_cleanup_runs(
        self,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.CleanupRun]:
        """Lists past cleanups, the newest first."""
        answer: Page[models.CleanupRun] = self._call(Request("GET", "/v1/cleanup/runs", query={"cursor": cursor, "limit": limit}), Page[models.CleanupRun])
        return answer

    def list_credentials(self) -> models.Credentials:
        """Lists the credentials of providers, and their pauses."""
        answer: models.Credentials = self._call(Request("GET", "/v1/credentials"), models.Credentials)
        return answer

    def list_deliveries(
        self,
        *,
        cursor: str | UUID | None = None,
        limit: int | None = None,
        state: Literal["waiting", "delivered", "failed", "held"] | None = None,
        task_id: str | UUID | None = None,
        webhook_id: str | UUID | None = None,
    ) -> Page[models.Delivery]:
        """Lists deliveries, the newest first."""
        answer: Page[models.Delivery] = self._call(Request("GET", "/v1/webhook-deliveries", query={"cursor": cursor, "limit": limit, "state": state, "task_id": task_id, "webhook_id": webhook_id}), Page[models.Delivery])
        return answer

    def list_erasures(self, *, cursor: str | UUID | None = None, limit: int | None = None) -> Page[models.Erasure]:
        """Lists erasures with their receipts, those that were requested last first.

        - `cursor`: The campaign of the last erasure of the page before.
        """
        answer: Page[models.Erasure] = self._call(Request("GET", "/v1/erasures", query={"cursor": cursor, "limit": limit}), Page[models.Erasure])
        return answer

    def list_eval_runs(
        self,
        *,
        campaign_id: str | UUID | None = None,
        cursor: int | str | None = None,
        eval: str | None = None,
        limit: int | None = None,
    ) -> Page[models.EvalRun]:
        """Lists recorded eval runs, those that were recorded last first.

        - `cursor`: The id of the last run that was read.
        - `eval`: Only the runs of this eval.
        """
        answer: Page[models.EvalRun] = self._call(Request("GET", "/v1/evals", query={"campaign_id": campaign_id, "cursor": cursor, "eval": eval, "limit": limit}), Page[models.EvalRun])
        return answer

    def list_extractions(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[models.FactExtraction]:
        """Lists the parts of sessions of a campaign that were read for facts, with the results, the newest
        first.
        """
        answer: Page[models.FactExtraction] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/extractions", query={"cursor": cursor, "limit": limit}), Page[models.FactExtraction])
        return answer

    def list_fact_uses(self, user_name: str, fact: str | UUID, /) -> models.FactUses:
        """Lists the sessions that were shown a fact, the newest use first, with the turns whose calls contained
        it.

        Records of showings are kept as long as ended facts (`memory.keep_days`). Of a fact with more than
        10,000 records, only 10,000 are read: the list may then lack the newest sessions.
        """
        answer: models.FactUses = self._call(Request("GET", f"/v1/users/{segment(user_name)}/facts/{segment(fact)}/uses"), models.FactUses)
        return answer

    def list_facts(
        self,
        user_name: str,
        /,
        *,
        cursor: str | UUID | None = None,
        ended: bool | None = None,
        limit: int | None = None,
    ) -> Page[models.Fact]:
        """Lists the facts about a user, the newest first.

        - `cursor`: The id of the last fact that was read.
        - `ended`: Ended facts, too.
        """
        answer: Page[models.Fact] = self._call(Request("GET", f"/v1/users/{segment(user_name)}/facts", query={"cursor": cursor, "ended": ended, "limit": limit}), Page[models.Fact])
        return answer

    def list_files(self) -> models.Files:
        """Lists the files of agents, skills, nodes and flow templates with their problems."""
        answer: models.Files = self._call(Request("GET", "/v1/files"), models.Files)
        return answer

    def list_flow_templates(self) -> models.AllTemplates:
        """Lists the flow templates with their inputs and steps."""
        answer: models.AllTemplates = self._call(Request("GET", "/v1/flow-templates"), models.AllTemplates)
        return answer

    def list_flows(
        self,
        *,
        campaign_id: str | UUID | None = None,
        cursor: str | UUID | None = None,
        limit: int | None = None,
        state: Literal["running", "paused", "done", "failed", "cancelled"] | None = None,
    ) -> Page[models.Flow]:
        """Lists flows, the newest first."""
        answer: Page[models.Flow] = self._call(Request("GET", "/v1/flows", query={"campaign_id": campaign_id, "cursor": cursor, "limit": limit, "state": state}), Page[models.Flow])
        return answer

    def list_jobs(
        self,
        *,
        campaign_id: str | UUID | None = None,
        cursor: int | str | None = None,
        kind: str | None = None,
        lane: str | None = None,
        limit: int | None = None,
        queue: str | None = None,
        state: Literal["scheduled", "ready", "blocked", "held", "running", "dead"] | None = None,
        waits_for: Literal["slot", "pause", "lane", "lane_hold", "later", "retry", "snooze", "provider", "batch", "condition", "crash", "signal", "person", "failure"] | None = None,
    ) -> Page[models.ListedJob]:
        """Lists jobs by id. Jobs of tasks name their task.

        - `campaign_id`: Only jobs of this campaign.
        - `waits_for`: Only jobs that wait for this reason, as the counts of waiting jobs name it.
        """
        answer: Page[models.ListedJob] = self._call(Request("GET", "/v1/jobs", query={"campaign_id": campaign_id, "cursor": cursor, "kind": kind, "lane": lane, "limit": limit, "queue": queue, "state": state, "waits_for": waits_for}), Page[models.ListedJob])
        return answer

    def list_keys(
        self,
        *,
        cursor: str | UUID | None = None,
        limit: int | None = None,
        named: str | None = None,
    ) -> Page[models.ApiKey]:
        """Lists the API keys, the newest first.

        - `named`: Only keys with this name that are not revoked, with this handle, or with an id that begins or
          ends so; all of them, on one page.
        """
        answer: Page[models.ApiKey] = self._call(Request("GET", "/v1/keys", query={"cursor": cursor, "limit": limit, "named": named}), Page[models.ApiKey])
        return answer

    def list_lanes(
        self,
        *,
        cursor: str | None = None,
        held: bool | None = None,
        limit: int | None = None,
    ) -> Page[str]:
        """Lists the names of the lanes that have jobs, the oldest lane first.

        - `held`: Only lanes that are held.
        """
        answer: Page[str] = self._call(Request("GET", "/v1/lanes", query={"cursor": cursor, "held": held, "limit": limit}), Page[str])
        return answer

    def list_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: str | UUID | None = None,
        ended: bool | None = None,
        kind: Literal["edict", "record", "journal"] | None = None,
        limit: int | None = None,
        owner: str | None = None,
    ) -> Page[models.MemoryItem]:
        """Lists the items in the memory of a campaign, the newest first, without their texts.

        - `cursor`: The id of the last item that was read.
        - `ended`: Revoked and expired items, too.
        - `owner`: Only the journal of this agent; `curator_2` and `curator/2` are instance 2 of curator.
        """
        answer: Page[models.MemoryItem] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory", query={"cursor": cursor, "ended": ended, "kind": kind, "limit": limit, "owner": owner}), Page[models.MemoryItem])
        return answer

    def list_memory_versions(self, campaign_id: str | UUID, item: str | UUID, /) -> Page[models.MemoryVersion]:
        """Lists all versions of an item, the newest first."""
        answer: Page[models.MemoryVersion] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory/{segment(item)}/versions"), Page[models.MemoryVersion])
        return answer

    def list_posts(
        self,
        campaign_id: str | UUID,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
        order: Literal["newest", "oldest"] | None = None,
        viewer: str | None = None,
    ) -> Page[models.Post]:
        """Lists the posts of a campaign, the newest first.

        - `cursor`: The `seq` of the last post that was read.
        - `order`: The newest first, unless this says otherwise.
        - `viewer`: Only what this agent sees: its name; `curator_2` and `curator/2` are another instance of
          `curator`.
        """
        answer: Page[models.Post] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/posts", query={"cursor": cursor, "limit": limit, "order": order, "viewer": viewer}), Page[models.Post])
        return answer

    def list_prompt_versions(self, agent_name: str, /) -> models.PromptVersions:
        """Lists the versions of an agent's prompt that sessions were made with, the last used first.

        `show_prompt_version` has the text of a version.
        """
        answer: models.PromptVersions = self._call(Request("GET", f"/v1/agents/{segment(agent_name)}/versions"), models.PromptVersions)
        return answer

    def list_queues(self) -> models.Queues:
        """Lists the queues with their counters."""
        answer: models.Queues = self._call(Request("GET", "/v1/queues"), models.Queues)
        return answer

    def list_rate_limits(self) -> models.UsedRateLimits:
        """Lists the rate limits that workers have used in the last hour, and the tasks that wait for them."""
        answer: models.UsedRateLimits = self._call(Request("GET", "/v1/rate-limits"), models.UsedRateLimits)
        return answer

    def list_reruns(
        self,
        session_id: str | UUID,
        turn_number: int,
        /,
        *,
        call: int | None = None,
    ) -> models.TurnReruns:
        """Lists the reruns of a call of a turn, with the call as it was made in the turn.

        - `call`: Number of the call in its turn, from 1. Without it, the call of the newest rerun.
        """
        answer: models.TurnReruns = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/turns/{segment(turn_number)}/reruns", query={"call": call}), models.TurnReruns)
        return answer

    def list_schedules(self) -> models.Schedules:
        """Lists the schedules."""
        answer: models.Schedules = self._call(Request("GET", "/v1/schedules"), models.Schedules)
        return answer

    def list_sessions(
        self,
        *,
        agent: str | None = None,
        campaign_id: str | UUID | None = None,
        created_after: datetime | str | None = None,
        cursor: str | UUID | None = None,
        limit: int | None = None,
        open: bool | None = None,
    ) -> Page[models.Session]:
        """Lists sessions, the newest first.

        - `agent`: An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
        - `created_after`: Only those that began at this moment or later.
        - `open`: Only those that are not closed.
        """
        answer: Page[models.Session] = self._call(Request("GET", "/v1/sessions", query={"agent": agent, "campaign_id": campaign_id, "created_after": created_after, "cursor": cursor, "limit": limit, "open": open}), Page[models.Session])
        return answer

    def list_sign_ins(self, *, cursor: str | UUID | None = None, limit: int | None = None) -> Page[models.SignIn]:
        """Lists the sign-ins to the console, the newest first.

        Those that have ended or expired are listed for 30 days.
        """
        answer: Page[models.SignIn] = self._call(Request("GET", "/v1/sign-ins", query={"cursor": cursor, "limit": limit}), Page[models.SignIn])
        return answer

    def list_task_files(self, task_id: str | UUID, /) -> models.TaskFiles:
        """Lists the files of a task: its attachments, then the output files that its agent has written, and
        those that could not be stored.
        """
        answer: models.TaskFiles = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}/files"), models.TaskFiles)
        return answer

    def list_tasks(
        self,
        *,
        agent: str | None = None,
        campaign_id: str | UUID | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        cursor: str | UUID | None = None,
        ended_after: datetime | str | None = None,
        instance: str | None = None,
        limit: int | None = None,
        metadata: str | None = None,
        state: Literal["queued", "running", "done", "failed", "cancelled"] | None = None,
        tags: str | None = None,
        text: str | None = None,
    ) -> Page[models.ListedTask]:
        """Lists tasks, the newest first.

        Filters by agent, time, text and the state `done` check each task. A page checks at most 2,000 tasks
        that match otherwise: it may have fewer items than `limit`, or none, and a `next`.

        - `agent`: An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
        - `created_after`: Only those that were added at this moment or later.
        - `created_before`: Only those that were added earlier.
        - `ended_after`: Only those that ended at this moment or later.
        - `metadata`: Only those with all of these keys and values: a JSON object, such as `{"customer":"acme"}`.
        - `tags`: Only those with all of these tags; commas between them.
        - `text`: Only those whose prompt contains this text, whether in capitals or not.
        """
        answer: Page[models.ListedTask] = self._call(Request("GET", "/v1/tasks", query={"agent": agent, "campaign_id": campaign_id, "created_after": created_after, "created_before": created_before, "cursor": cursor, "ended_after": ended_after, "instance": instance, "limit": limit, "metadata": metadata, "state": state, "tags": tags, "text": text}), Page[models.ListedTask])
        return answer

    def list_turns(
        self,
        session_id: str | UUID,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.ListedTurn]:
        """Lists the turns of a session, the newest first.

        - `cursor`: The number of a turn.
        """
        answer: Page[models.ListedTurn] = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/turns", query={"cursor": cursor, "limit": limit}), Page[models.ListedTurn])
        return answer

    def list_waits(self) -> models.WaitingJobs:
        """Counts waiting jobs by the reason for which they wait. Reads the 10000 oldest live jobs only."""
        answer: models.WaitingJobs = self._call(Request("GET", "/v1/waits"), models.WaitingJobs)
        return answer

    def list_webhooks(self) -> models.Webhooks:
        """Lists all webhooks, without their secrets."""
        answer: models.Webhooks = self._call(Request("GET", "/v1/webhooks"), models.Webhooks)
        return answer

    def list_workers(self, *, cursor: str | UUID | None = None, limit: int | None = None) -> Page[models.Worker]:
        """Lists worker processes, the newest first. Ended ones are listed for queue.keep.workers_days."""
        answer: Page[models.Worker] = self._call(Request("GET", "/v1/workers", query={"cursor": cursor, "limit": limit}), Page[models.Worker])
        return answer

    def livez(self) -> str:
        """Reports that the process is alive. Does not use the database."""
        answer: str = self._call(Request("GET", "/livez"), str)
        return answer

    def metrics(self) -> str:
        """Metrics of this process, for Prometheus."""
        answer: str = self._call(Request("GET", "/metrics"), str)
        return answer

    def openapi(self) -> dict[str, Any]:
        """This document."""
        answer: dict[str, Any] = self._call(Request("GET", "/v1/openapi.json"), dict[str, Any])
        return answer

    def patch_blackboard(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.BlackboardPatch],
    ) -> models.BlackboardWritten:
        """Merges a JSON Merge Patch (RFC 7396) into the document."""
        answer: models.BlackboardWritten = self._call(Request("PATCH", f"/v1/campaigns/{segment(campaign_id)}/blackboard", body=body, takes_key=True, key=idempotency_key), models.BlackboardWritten)
        return answer

    def pause_agent(
        self,
        campaign_id: str | UUID,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseAgent],
    ) -> models.AgentPaused:
        """Pauses an agent in a campaign: no turn starts until it is resumed.

        Running turns go on. Its tasks wait, including new ones.
        """
        answer: models.AgentPaused = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/agents/{segment(agent_name)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.AgentPaused)
        return answer

    def pause_agent_everywhere(
        self,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseAgentEverywhere],
    ) -> models.AgentPaused:
        """Pauses an agent in all campaigns: no turn starts until it is resumed."""
        answer: models.AgentPaused = self._call(Request("POST", f"/v1/agents/{segment(agent_name)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.AgentPaused)
        return answer

    def pause_campaign(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseCampaign],
    ) -> models.Campaign:
        """Pauses a campaign: no turn starts until it is resumed.

        Running turns go on. New tasks are accepted and wait.
        """
        answer: models.Campaign = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.Campaign)
        return answer

    def pause_flow(self, flow_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Flow:
        """Pauses a flow: no task starts until it is resumed. Running turns go on."""
        answer: models.Flow = self._call(Request("POST", f"/v1/flows/{segment(flow_id)}/pause", takes_key=True, key=idempotency_key), models.Flow)
        return answer

    def pause_group(
        self,
        group_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseGroup],
    ) -> models.PauseOutcome:
        """Pauses a group: workers claim none of its jobs until it is resumed. The tasks of a campaign are a
        group with its id as the name.
        """
        answer: models.PauseOutcome = self._call(Request("POST", f"/v1/groups/{segment(group_name)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.PauseOutcome)
        return answer

    def pause_queue(
        self,
        queue_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseQueue],
    ) -> models.PauseOutcome:
        """Pauses a queue: workers claim none of its jobs until it is resumed. Running jobs continue.

        The queue has had a job, has a worker, or is one of the service's own.
        """
        answer: models.PauseOutcome = self._call(Request("POST", f"/v1/queues/{segment(queue_name)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.PauseOutcome)
        return answer

    def pause_schedule(
        self,
        schedule_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PauseSchedule],
    ) -> models.Schedule:
        """Skips the moments of a schedule until it is resumed."""
        answer: models.Schedule = self._call(Request("POST", f"/v1/schedules/{segment(schedule_name)}/pause", body=body or None, takes_key=True, key=idempotency_key), models.Schedule)
        return answer

    def preview_agent_context(
        self,
        campaign_id: str | UUID,
        /,
        **body: Unpack[params.PreviewAgentContext],
    ) -> models.ContextPreview:
        """Shows what an agent would be sent now for a prompt, without a task.

        Nothing is sent and nothing changes.
        """
        answer: models.ContextPreview = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/context/preview", body=body), models.ContextPreview)
        return answer

    def preview_bulk_action(self, **body: Unpack[params.PreviewedBulkAction]) -> models.BulkActionPreview:
        """Lists the tasks that a bulk action would match, and changes nothing."""
        answer: models.BulkActionPreview = self._call(Request("POST", "/v1/bulk-actions/preview", body=body), models.BulkActionPreview)
        return answer

    def preview_cleanup(self, *, at: datetime | str | None = None) -> models.CleanupPreview:
        """Shows what a cleanup would remove. Reads all expired rows, which can take some time.

        - `at`: Time of the cleanup. Default: now.
        """
        answer: models.CleanupPreview = self._call(Request("GET", "/v1/cleanup/preview", query={"at": at}), models.CleanupPreview)
        return answer

    def preview_task_context(self, task_id: str | UUID, /) -> models.ContextPreview:
        """Shows what the next turn of a task would be sent now: its texts, and the request byte for byte.

        Nothing is sent and nothing changes.
        """
        answer: models.ContextPreview = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}/context/preview"), models.ContextPreview)
        return answer

    def publish_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewMemoryItem],
    ) -> models.MemoryWritten:
        """Publishes an item, or the next version of the item with the same kind, owner and name.

        If the item already has this content, nothing changes. Journal entries cannot be replaced.
        """
        answer: models.MemoryWritten = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/memory", body=body, takes_key=True, key=idempotency_key), models.MemoryWritten)
        return answer

    def put_campaign_user(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.PutCampaignUser],
    ) -> models.CampaignUser | None:
        """Sets the user for whom a campaign works. Earlier prompts are not read for facts about them."""
        answer: models.CampaignUser | None = self._call(Request("PUT", f"/v1/campaigns/{segment(campaign_id)}/user", body=body or None, takes_key=True, key=idempotency_key), models.CampaignUser | None)
        return answer

    def put_schedule(
        self,
        schedule_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.RecurringTask],
    ) -> models.Schedule:
        """Adds or changes a schedule that adds a task at each of its times."""
        answer: models.Schedule = self._call(Request("PUT", f"/v1/schedules/{segment(schedule_name)}", body=body, takes_key=True, key=idempotency_key), models.Schedule)
        return answer

    def read_archive(
        self,
        session_id: str | UUID,
        archive_number: int,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> models.OpenedArchive:
        """Reads an archive: its messages, in order, and their replacement.

        - `cursor`: A place in the transcript.
        """
        answer: models.OpenedArchive = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/archives/{segment(archive_number)}", query={"cursor": cursor, "limit": limit}), models.OpenedArchive)
        return answer

    def read_transcript(
        self,
        session_id: str | UUID,
        /,
        *,
        before: int | None = None,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.StoredMessage]:
        """Reads the transcript of a session, in order.

        - `before`: Reads backwards: the last messages before this place, in order. `next` is the place before which
          to go on.
        - `cursor`: A place in the transcript: the messages after it.
        """
        answer: Page[models.StoredMessage] = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/messages", query={"before": before, "cursor": cursor, "limit": limit}), Page[models.StoredMessage])
        return answer

    def readyz(self) -> models.Ready:
        """Reports if this process can serve requests now."""
        answer: models.Ready = self._call(Request("GET", "/readyz"), models.Ready)
        return answer

    def record_eval_run(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewEvalRun],
    ) -> models.EvalRun:
        """Stores the results of an eval run, or replaces its earlier ones.

        `dalsegno eval run` and `dalsegno eval report` call it: the checks are in the eval file. Stored are
        names, numbers and ids; the texts of answers stay in their tasks and reruns.
        """
        answer: models.EvalRun = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/evals", body=body, takes_key=True, key=idempotency_key), models.EvalRun)
        return answer

    def release_job(self, job_id: int, /, *, idempotency_key: str | None = None) -> models.ChangedJob:
        """Releases a held job."""
        answer: models.ChangedJob = self._call(Request("POST", f"/v1/jobs/{segment(job_id)}/release", takes_key=True, key=idempotency_key), models.ChangedJob)
        return answer

    def release_lane(self, lane_name: str, /, *, idempotency_key: str | None = None) -> models.ReleasedLane:
        """Releases a held lane; a failed head that held it becomes a dead letter."""
        answer: models.ReleasedLane = self._call(Request("POST", f"/v1/lanes/{segment(lane_name)}/release", takes_key=True, key=idempotency_key), models.ReleasedLane)
        return answer

    def remove_schedule(self, schedule_name: str, /, *, idempotency_key: str | None = None) -> None:
        """Removes a schedule; the tasks that it has added stay."""
        self._call(Request("DELETE", f"/v1/schedules/{segment(schedule_name)}", takes_key=True, key=idempotency_key), None)

    def remove_webhook(self, webhook_id: str | UUID, /, *, idempotency_key: str | None = None) -> None:
        """Removes a webhook with its deliveries."""
        self._call(Request("DELETE", f"/v1/webhooks/{segment(webhook_id)}", takes_key=True, key=idempotency_key), None)

    def replay_delivery(
        self,
        webhook_delivery_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.Delivery:
        """Sends a delivery again, under the same id."""
        answer: models.Delivery = self._call(Request("POST", f"/v1/webhook-deliveries/{segment(webhook_delivery_id)}/replay", takes_key=True, key=idempotency_key), models.Delivery)
        return answer

    def replay_webhook(
        self,
        webhook_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ReplaySince],
    ) -> models.ReplayedMany:
        """Sends again all deliveries since a time that were not delivered."""
        answer: models.ReplayedMany = self._call(Request("POST", f"/v1/webhooks/{segment(webhook_id)}/replay", body=body, takes_key=True, key=idempotency_key), models.ReplayedMany)
        return answer

    def report_costs(
        self,
        *,
        and_: enums.CostDimension | None = None,
        by: enums.CostDimension | None = None,
        campaign_id: str | UUID | None = None,
        since: datetime | str | None = None,
        top: int | None = None,
        top_by: enums.CostMeasure | None = None,
        until: datetime | str | None = None,
    ) -> models.CostReport:
        """Adds up the costs of all calls by one or two dimensions.

        Each call is in one line, so the lines add up to the total, and the total of a report without a period
        is that of the ledger. Amounts are in the currency of the price list, which is not converted. Days
        begin at midnight of `scheduler.time_zone`.

        - `by`: Without it, days.
        - `since`: Only calls at this moment or later. A day such as `2026-11-23`, `today` and `yesterday` stand for
          its begin.
        - `top`: Only the highest values of the last dimension, at most this many, have lines of their own; `others`
          adds up all others.
        - `until`: Only earlier calls: before a moment, or before the begin of a day.
        """
        answer: models.CostReport = self._call(Request("GET", "/v1/costs", query={"and": and_, "by": by, "campaign_id": campaign_id, "since": since, "top": top, "top_by": top_by, "until": until}), models.CostReport)
        return answer

    def report_fidelity(self, campaign_id: str | UUID, /) -> models.FidelityReport:
        """Reports how exactly the conversations of a campaign were continued.

        It counts the turns whose token counts prove that the model saw the history, compares estimates with
        counts, and lists the rejected summaries. It is about the newest 10,000 ended turns (`is_limited`).
        """
        answer: models.FidelityReport = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/fidelity"), models.FidelityReport)
        return answer

    def rerun_turn(
        self,
        session_id: str | UUID,
        turn_number: int,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.RerunTurn],
    ) -> models.TurnReruns:
        """Sends a call of a turn again, once or several times. The conversation does not change.

        A worker sends the context as the call had it, with the changes that are named here, and stores the
        answer with its tokens, cost and time. One call is made: its tool calls are stored and not executed. A
        model with a price is paid from the budget for reruns of the campaign.
        """
        answer: models.TurnReruns = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/turns/{segment(turn_number)}/reruns", body=body or None, takes_key=True, key=idempotency_key), models.TurnReruns)
        return answer

    def reset_agent(
        self,
        campaign_id: str | UUID,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ResetAgent],
    ) -> models.AgentsReset:
        """Starts a new session with the next task of each conversation of one agent."""
        answer: models.AgentsReset = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/agents/{segment(agent_name)}/reset", body=body or None, takes_key=True, key=idempotency_key), models.AgentsReset)
        return answer

    def reset_agents(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ResetAgents],
    ) -> models.AgentsReset:
        """Starts a new session with the next task of each conversation of a campaign.

        Running turns go on.
        """
        answer: models.AgentsReset = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/agents/reset", body=body or None, takes_key=True, key=idempotency_key), models.AgentsReset)
        return answer

    def reset_session(
        self,
        session_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ResetSession],
    ) -> models.Session:
        """Closes a session; the next task of its conversation opens a successor."""
        answer: models.Session = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/reset", body=body or None, takes_key=True, key=idempotency_key), models.Session)
        return answer

    def resume_agent(
        self,
        campaign_id: str | UUID,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.AgentResumed:
        """Resumes an agent in a campaign."""
        answer: models.AgentResumed = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/agents/{segment(agent_name)}/resume", takes_key=True, key=idempotency_key), models.AgentResumed)
        return answer

    def resume_agent_everywhere(
        self,
        agent_name: str,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.AgentResumed:
        """Resumes an agent that was paused in all campaigns."""
        answer: models.AgentResumed = self._call(Request("POST", f"/v1/agents/{segment(agent_name)}/resume", takes_key=True, key=idempotency_key), models.AgentResumed)
        return answer

    def resume_campaign(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.Campaign:
        """Ends a pause."""
        answer: models.Campaign = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/resume", takes_key=True, key=idempotency_key), models.Campaign)
        return answer

    def resume_credential(
        self,
        credential_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.ResumeCredential],
    ) -> models.ResumedCredential:
        """Ends the pause of a credential early, and wakes the tasks that wait for it."""
        answer: models.ResumedCredential = self._call(Request("POST", f"/v1/credentials/{segment(credential_name)}/resume", body=body or None, takes_key=True, key=idempotency_key), models.ResumedCredential)
        return answer

    def resume_flow(self, flow_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Flow:
        """Resumes a paused flow."""
        answer: models.Flow = self._call(Request("POST", f"/v1/flows/{segment(flow_id)}/resume", takes_key=True, key=idempotency_key), models.Flow)
        return answer

    def resume_group(self, group_name: str, /, *, idempotency_key: str | None = None) -> models.ResumeOutcome:
        """Ends the pause of a group."""
        answer: models.ResumeOutcome = self._call(Request("POST", f"/v1/groups/{segment(group_name)}/resume", takes_key=True, key=idempotency_key), models.ResumeOutcome)
        return answer

    def resume_queue(self, queue_name: str, /, *, idempotency_key: str | None = None) -> models.ResumeOutcome:
        """Ends the pause of a queue."""
        answer: models.ResumeOutcome = self._call(Request("POST", f"/v1/queues/{segment(queue_name)}/resume", takes_key=True, key=idempotency_key), models.ResumeOutcome)
        return answer

    def resume_schedule(self, schedule_name: str, /, *, idempotency_key: str | None = None) -> models.Schedule:
        """Ends a pause. Moments that fell into it are not caught up."""
        answer: models.Schedule = self._call(Request("POST", f"/v1/schedules/{segment(schedule_name)}/resume", takes_key=True, key=idempotency_key), models.Schedule)
        return answer

    def retry_flow(
        self,
        flow_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.FlowRetry],
    ) -> models.Flow:
        """Runs the tasks of a step again, and all that depend on them. Those that have not ended are cancelled
        first.
        """
        answer: models.Flow = self._call(Request("POST", f"/v1/flows/{segment(flow_id)}/retry", body=body, takes_key=True, key=idempotency_key), models.Flow)
        return answer

    def retry_job(self, job_id: int, /, *, idempotency_key: str | None = None) -> models.RetriedJob:
        """Runs a dead, held or waiting job again.

        Of a task that has failed or was cancelled, the task is retried, with another job. The dead letter of
        a task that has moved on is removed, and nothing runs.
        """
        answer: models.RetriedJob = self._call(Request("POST", f"/v1/jobs/{segment(job_id)}/retry", takes_key=True, key=idempotency_key), models.RetriedJob)
        return answer

    def retry_task(self, task_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Task:
        """Puts a failed or cancelled task on the queue again."""
        answer: models.Task = self._call(Request("POST", f"/v1/tasks/{segment(task_id)}/retry", takes_key=True, key=idempotency_key), models.Task)
        return answer

    def revoke_fact(
        self,
        user_name: str,
        fact: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.Fact:
        """Revokes a fact: agents no longer see or find it, and people can still read it."""
        answer: models.Fact = self._call(Request("POST", f"/v1/users/{segment(user_name)}/facts/{segment(fact)}/revoke", takes_key=True, key=idempotency_key), models.Fact)
        return answer

    def revoke_key(self, key_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.ApiKey:
        """Revokes an API key: all processes refuse it within 5 seconds."""
        answer: models.ApiKey = self._call(Request("POST", f"/v1/keys/{segment(key_id)}/revoke", takes_key=True, key=idempotency_key), models.ApiKey)
        return answer

    def revoke_memory(
        self,
        campaign_id: str | UUID,
        item: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.MemoryItem:
        """Revokes an item: agents no longer see or find it, and people can still read it."""
        answer: models.MemoryItem = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/memory/{segment(item)}/revoke", takes_key=True, key=idempotency_key), models.MemoryItem)
        return answer

    def rotate_key(self, key_id: str | UUID, /, **body: Unpack[params.KeyRotation]) -> models.ShownKey:
        """Creates the successor of an API key; the old key stays valid for some time."""
        answer: models.ShownKey = self._call(Request("POST", f"/v1/keys/{segment(key_id)}/rotate", body=body or None), models.ShownKey)
        return answer

    def rotate_webhook(
        self,
        webhook_id: str | UUID,
        /,
        **body: Unpack[params.SecretRotation],
    ) -> models.WebhookWithSecret:
        """Creates a new secret, which only this response contains; the old one also signs during the overlap."""
        answer: models.WebhookWithSecret = self._call(Request("POST", f"/v1/webhooks/{segment(webhook_id)}/rotate", body=body or None), models.WebhookWithSecret)
        return answer

    def run_cleanup(self, *, idempotency_key: str | None = None) -> models.CleanupJob:
        """Runs the nightly cleanup now, on a worker."""
        answer: models.CleanupJob = self._call(Request("POST", "/v1/cleanup/run", takes_key=True, key=idempotency_key), models.CleanupJob)
        return answer

    def run_doctor(self) -> models.Findings:
        """Checks the installation from the process that answers, as `dalsegno doctor` does. Takes some seconds."""
        answer: models.Findings = self._call(Request("GET", "/v1/doctor"), models.Findings)
        return answer

    def run_schedule(self, schedule_name: str, /, *, idempotency_key: str | None = None) -> models.AcceptedRun:
        """Runs a schedule now, in addition to its times.

        A worker runs the job; its state shows the progress.
        """
        answer: models.AcceptedRun = self._call(Request("POST", f"/v1/schedules/{segment(schedule_name)}/run", takes_key=True, key=idempotency_key), models.AcceptedRun)
        return answer

    def search_facts(self, user_name: str, /, *, q: str, limit: int | None = None) -> Page[models.FactHit]:
        """Searches the valid facts about a user by words, the best match first.

        - `q`: Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
        """
        answer: Page[models.FactHit] = self._call(Request("GET", f"/v1/users/{segment(user_name)}/facts/search", query={"limit": limit, "q": q}), Page[models.FactHit])
        return answer

    def search_memory(
        self,
        campaign_id: str | UUID,
        /,
        *,
        q: str,
        kind: Literal["edict", "record", "journal"] | None = None,
        limit: int | None = None,
    ) -> Page[models.MemoryHit]:
        """Searches the memory of a campaign by words, the best match first.

        - `q`: Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
        """
        answer: Page[models.MemoryHit] = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory/search", query={"kind": kind, "limit": limit, "q": q}), Page[models.MemoryHit])
        return answer

    def search_texts(
        self,
        *,
        q: str,
        agent: str | None = None,
        campaign_id: str | UUID | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        cursor: str | None = None,
        kind: Literal["task", "post", "memory", "message", "summary", "brief", "blackboard", "fact"] | None = None,
        limit: int | None = None,
    ) -> Page[models.TextHit]:
        """Searches the texts of all campaigns, the newest first: prompts and results of tasks, posts, valid
        items of the memory, results of tools, answers before a tool and interrupted ones, summaries of
        compactions, current briefs with client contexts, current blackboards, and valid facts about users.
        Other answers are found as the results of their tasks. Keys that are bound to campaigns find no facts.

        Words of four letters or more also find longer words that begin with them. Of a text, the first 65,536
        characters are searched; of open tasks the newest 1,000, and as many of the tasks that ended in the
        last minutes and are not in the index yet. If more than 10,000 texts of a kind and of a span of weeks
        match, some of them are left out.

        - `agent`: Only texts of this agent with all its instances, or of one instance of it: `curator_2`,
          `curator/eu`.
        - `created_after`: Only those that were written at this moment or later.
        - `created_before`: Only those that were written earlier.
        - `q`: Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
        """
        answer: Page[models.TextHit] = self._call(Request("GET", "/v1/search", query={"agent": agent, "campaign_id": campaign_id, "created_after": created_after, "created_before": created_before, "cursor": cursor, "kind": kind, "limit": limit, "q": q}), Page[models.TextHit])
        return answer

    def set_blackboard(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.BlackboardSet],
    ) -> models.BlackboardWritten:
        """Replaces the named version of the document.

        The change is refused if another version is current; the detail of the problem names that version.
        """
        answer: models.BlackboardWritten = self._call(Request("PUT", f"/v1/campaigns/{segment(campaign_id)}/blackboard", body=body, takes_key=True, key=idempotency_key), models.BlackboardWritten)
        return answer

    def set_budget(
        self,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.BudgetChange],
    ) -> models.OwnedBudget | None:
        """Sets the limits of the budget of an agent, a user or a day, over all campaigns. A limit that is not
        named stays; null removes it.

        A new budget begins with what the ledger has: of the agent, of the campaigns of the user, of the
        present day. Without any limit the budget is removed. Waiting tasks for which there is space now
        continue. Days begin at midnight of `scheduler.time_zone`. The budgets of agents and users count all
        calls of all time and never begin again.
        """
        answer: models.OwnedBudget | None = self._call(Request("PATCH", "/v1/budgets", body=body, takes_key=True, key=idempotency_key), models.OwnedBudget | None)
        return answer

    def show_blackboard(self, campaign_id: str | UUID, /, *, version: int | None = None) -> models.Blackboard:
        """Shows the blackboard of a campaign.

        - `version`: An earlier version; else the current one.
        """
        answer: models.Blackboard = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/blackboard", query={"version": version}), models.Blackboard)
        return answer

    def show_board_archive(self, campaign_id: str | UUID, /, *, viewer: str | None = None) -> models.BoardArchive:
        """Shows the summary of the archived posts of a campaign: their senders, numbers and times.

        The nightly cleanup archives posts by age and number (`board.keep_days`, `board.keep_posts`).
        `list_posts` still lists them; turns no longer show them.

        - `viewer`: Only what this agent sees: its name; `curator_2` and `curator/2` are another instance of
          `curator`.
        """
        answer: models.BoardArchive = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/posts/archive", query={"viewer": viewer}), models.BoardArchive)
        return answer

    def show_bulk_action(self, bulk_action_id: str | UUID, /) -> models.BulkAction:
        """Shows the progress of a bulk action."""
        answer: models.BulkAction = self._call(Request("GET", f"/v1/bulk-actions/{segment(bulk_action_id)}"), models.BulkAction)
        return answer

    def show_campaign(self, campaign_id: str | UUID, /, *, summary: bool | None = None) -> models.CampaignOverview:
        """Shows a campaign with its budget, its open sessions and its costs.

        - `summary`: Leaves `sessions` and `usage` empty: adding up the ledger takes long in a campaign with many
          calls.
        """
        answer: models.CampaignOverview = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}", query={"summary": summary}), models.CampaignOverview)
        return answer

    def show_campaign_user(self, campaign_id: str | UUID, /) -> models.CampaignUser | None:
        """Shows the user for whom a campaign works; null if it has none."""
        answer: models.CampaignUser | None = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/user"), models.CampaignUser | None)
        return answer

    def show_campaign_version(self, campaign_id: str | UUID, version_number: int, /) -> models.CampaignVersion:
        """Shows a version of a campaign's brief, client context and parameters."""
        answer: models.CampaignVersion = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/versions/{segment(version_number)}"), models.CampaignVersion)
        return answer

    def show_compaction(
        self,
        session_id: str | UUID,
        /,
        *,
        generation: int,
        job_id: int,
    ) -> models.CompactionAnswer:
        """Shows the outcome of a request to compact a session.

        - `generation`: The compaction that the session showed before.
        - `job_id`: The job of the request.
        """
        answer: models.CompactionAnswer = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/compaction", query={"generation": generation, "job_id": job_id}), models.CompactionAnswer)
        return answer

    def show_context(
        self,
        session_id: str | UUID,
        /,
        *,
        call: int | None = None,
        turn: int | None = None,
    ) -> models.SentContext:
        """Shows what a call of a turn was sent: its texts, and the request byte for byte.

        - `call`: Number of the call in its turn, from 1. Without it, the first.
        - `turn`: Number of the turn. Without it, the newest turn with a stored context.
        """
        answer: models.SentContext = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/context", query={"call": call, "turn": turn}), models.SentContext)
        return answer

    def show_delivery(self, webhook_delivery_id: str | UUID, /) -> models.Delivery:
        """Shows a delivery."""
        answer: models.Delivery = self._call(Request("GET", f"/v1/webhook-deliveries/{segment(webhook_delivery_id)}"), models.Delivery)
        return answer

    def show_erasure(self, campaign_id: str | UUID, /) -> models.Erasure:
        """Shows the receipt of the erasure of a campaign."""
        answer: models.Erasure = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/erasure"), models.Erasure)
        return answer

    def show_eval_run(self, campaign_id: str | UUID, eval_number: int, /) -> models.EvalAnswers:
        """Shows the answers of a recorded eval run, each with its task or its turn."""
        answer: models.EvalAnswers = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/evals/{segment(eval_number)}"), models.EvalAnswers)
        return answer

    def show_fact(self, user_name: str, fact: str | UUID, /) -> models.Fact:
        """Shows a fact, including an ended one."""
        answer: models.Fact = self._call(Request("GET", f"/v1/users/{segment(user_name)}/facts/{segment(fact)}"), models.Fact)
        return answer

    def show_file(self, file_kind: Literal["agent", "skill", "node", "flow"], name: str, /) -> models.SourceText:
        """Shows a file of an agent, a skill, a node or a flow template as it was written, with its problems."""
        answer: models.SourceText = self._call(Request("GET", f"/v1/files/{segment(file_kind)}/{segment(name)}"), models.SourceText)
        return answer

    def show_flow(self, flow_id: str | UUID, /) -> models.FlowDetail:
        """Shows a flow with the current tasks of its steps."""
        answer: models.FlowDetail = self._call(Request("GET", f"/v1/flows/{segment(flow_id)}"), models.FlowDetail)
        return answer

    def show_installation(self) -> models.Installation:
        """Shows version, settings, migrations and sizes of the installation."""
        answer: models.Installation = self._call(Request("GET", "/v1/installation"), models.Installation)
        return answer

    def show_job(self, job_id: int, /) -> models.JobDetail:
        """Shows a job with its payload and its attempts."""
        answer: models.JobDetail = self._call(Request("GET", f"/v1/jobs/{segment(job_id)}"), models.JobDetail)
        return answer

    def show_lane(self, lane_name: str, /) -> models.Lane:
        """Shows a lane with its first jobs, in order."""
        answer: models.Lane = self._call(Request("GET", f"/v1/lanes/{segment(lane_name)}"), models.Lane)
        return answer

    def show_ledger_context(self, ledger_id: int, /) -> models.SentContext:
        """Shows what a call for a summary or for facts was sent, by the number of its row in the ledger."""
        answer: models.SentContext = self._call(Request("GET", f"/v1/ledger/{segment(ledger_id)}/context"), models.SentContext)
        return answer

    def show_memory(
        self,
        campaign_id: str | UUID,
        item: str | UUID,
        /,
        *,
        version: int | None = None,
    ) -> models.MemoryItem:
        """Shows an item, also a revoked or expired one.

        - `version`: An earlier version; else the current one.
        """
        answer: models.MemoryItem = self._call(Request("GET", f"/v1/campaigns/{segment(campaign_id)}/memory/{segment(item)}", query={"version": version}), models.MemoryItem)
        return answer

    def show_overview(self, *, hours: int | None = None) -> models.InstallationOverview:
        """Shows what waits for a person, what runs now, and the activity of the last hours.

        - `hours`: Hours of activity, in 60 steps: a step has as many minutes as there are hours. Default: 1.
        """
        answer: models.InstallationOverview = self._call(Request("GET", "/v1/overview", query={"hours": hours}), models.InstallationOverview)
        return answer

    def show_prompt_version(self, agent_name: str, version: str, /) -> models.PromptText:
        """Shows the text of a version of an agent's prompt.

        It is the text of the agent file alone. Skills, edicts and other parts of the system prompt belong to
        no version: `show_context` of a turn has them.
        """
        answer: models.PromptText = self._call(Request("GET", f"/v1/agents/{segment(agent_name)}/versions/{segment(version)}"), models.PromptText)
        return answer

    def show_provider_transcript(
        self,
        session_id: str | UUID,
        /,
        *,
        turn: int | None = None,
    ) -> models.ProviderTranscript:
        """Shows the provider's own transcript up to the answer of a turn, and compares it with the stored
        messages.

        Only for providers that keep the conversation themselves, such as Claude.

        - `turn`: Number of the turn. Without it, the newest turn with an answer.
        """
        answer: models.ProviderTranscript = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/provider-transcript", query={"turn": turn}), models.ProviderTranscript)
        return answer

    def show_queue(self, queue_name: str, /) -> models.Queue:
        """Shows one queue: one that has had a job, has a worker, or is paused."""
        answer: models.Queue = self._call(Request("GET", f"/v1/queues/{segment(queue_name)}"), models.Queue)
        return answer

    def show_schedule(self, schedule_name: str, /) -> models.ScheduleDetail:
        """Shows one schedule."""
        answer: models.ScheduleDetail = self._call(Request("GET", f"/v1/schedules/{segment(schedule_name)}"), models.ScheduleDetail)
        return answer

    def show_session(self, session_id: str | UUID, /) -> models.SessionDetail:
        """Shows a session with its compactions and its last turns."""
        answer: models.SessionDetail = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}"), models.SessionDetail)
        return answer

    def show_task(self, task_id: str | UUID, /, *, wait: str | None = None) -> models.TaskDetail:
        """Shows a task with its attempts; with `wait`, waits for its end first.

        An API key with the scope `enqueue` alone finds the tasks that keys of its name have added.

        - `wait`: Longest wait for the end of the task: `30s`, `5m`, `500ms`. A wait that is longer than a request
          may take (`http.request_timeout_secs`) ends with the request, and shows the task as it is then.
        """
        answer: models.TaskDetail = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}", query={"wait": wait}), models.TaskDetail)
        return answer

    def show_turn(self, session_id: str | UUID, turn_number: int, /) -> models.TurnDetail:
        """Shows a turn with its calls, and the parts of the context that each of them was sent.

        A part that was left out states the reason.
        """
        answer: models.TurnDetail = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/turns/{segment(turn_number)}"), models.TurnDetail)
        return answer

    def show_webhook(self, webhook_id: str | UUID, /) -> models.Webhook:
        """Shows a webhook."""
        answer: models.Webhook = self._call(Request("GET", f"/v1/webhooks/{segment(webhook_id)}"), models.Webhook)
        return answer

    def show_webhook_message(self, task_id: str | UUID, /) -> models.WebhookMessage:
        """Shows the message that webhooks receive about a task that has ended, to try a receiver out."""
        answer: models.WebhookMessage = self._call(Request("GET", f"/v1/tasks/{segment(task_id)}/webhook-message"), models.WebhookMessage)
        return answer

    def show_worker_activity(
        self,
        *,
        minutes: int | None = None,
        until: datetime | str | None = None,
        worker_id: str | UUID | None = None,
    ) -> models.WorkerActivity:
        """Shows what workers run now, and what they ran in the last minutes.

        - `minutes`: 20, if they are left out.
        - `until`: Looks back from this moment. Without it, from now.
        - `worker_id`: Only this worker. The output then has the tasks of its runs.
        """
        answer: models.WorkerActivity = self._call(Request("GET", "/v1/workers/activity", query={"minutes": minutes, "until": until, "worker_id": worker_id}), models.WorkerActivity)
        return answer

    def start_flow(
        self,
        campaign_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewFlow],
    ) -> models.Flow:
        """Starts a flow: adds all its tasks; each waits for the steps that it depends on."""
        answer: models.Flow = self._call(Request("POST", f"/v1/campaigns/{segment(campaign_id)}/flows", body=body, takes_key=True, key=idempotency_key), models.Flow)
        return answer

    def state_fact(
        self,
        user_name: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[params.NewFact],
    ) -> models.Fact:
        """States a fact about a user. The facts that it contradicts end, and stay in the history."""
        answer: models.Fact = self._call(Request("POST", f"/v1/users/{segment(user_name)}/facts", body=body, takes_key=True, key=idempotency_key), models.Fact)
        return answer

    def test_webhook(self, webhook_id: str | UUID, /, *, idempotency_key: str | None = None) -> models.Delivery:
        """Sends a test delivery through a worker; the delivery shows the result."""
        answer: models.Delivery = self._call(Request("POST", f"/v1/webhooks/{segment(webhook_id)}/test", takes_key=True, key=idempotency_key), models.Delivery)
        return answer

    def uncompact_session(
        self,
        session_id: str | UUID,
        /,
        *,
        idempotency_key: str | None = None,
    ) -> models.Session:
        """Undoes the current compaction of a session."""
        answer: models.Session = self._call(Request("POST", f"/v1/sessions/{segment(session_id)}/uncompact", takes_key=True, key=idempotency_key), models.Session)
        return answer

    def verify_contexts(
        self,
        session_id: str | UUID,
        /,
        *,
        cursor: int | str | None = None,
        limit: int | None = None,
    ) -> Page[models.VerifiedCall]:
        """Assembles the stored calls of a session again, and compares them with what was sent.

        Pages have up to 20 turns, with all of their calls, and the calls for summaries and facts that are
        charged to them.

        - `cursor`: The number of a turn: the page begins after it.
        """
        answer: Page[models.VerifiedCall] = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/context-checks", query={"cursor": cursor, "limit": limit}), Page[models.VerifiedCall])
        return answer

    def view_session(self, session_id: str | UUID, /) -> list[dict[str, Any]]:
        """Shows the context of the model: the summary, if any, and the messages since."""
        answer: list[dict[str, Any]] = self._call(Request("GET", f"/v1/sessions/{segment(session_id)}/view"), list[dict[str, Any]])
        return answer
