// Methods for each operation of the API. Written by `python3 clients/generate`: do not edit.

import type { Event } from './events.js';
import type { CallOptions, KeyedOptions, Request, StreamOptions } from './request.js';
import type {
  AcceptedCompaction,
  AcceptedRun,
  AddedMany,
  AddedTask,
  AgentPaused,
  AgentPauses,
  AgentResumed,
  AgentStatuses,
  Agents,
  AgentsReset,
  AllTemplates,
  ApiKey,
  Archives,
  AuditEntry,
  Blackboard,
  BlackboardChange,
  BlackboardPatch,
  BlackboardSet,
  BlackboardWritten,
  BoardArchive,
  Budget,
  BudgetChange,
  BulkAction,
  BulkActionPreview,
  BulkTask,
  Campaign,
  CampaignDiff,
  CampaignEdit,
  CampaignOverview,
  CampaignVersion,
  CampaignVersionSummary,
  CancelFlow,
  CancelJob,
  CancelTask,
  CancelledFlow,
  CancelledJob,
  CancelledTask,
  ChangedJob,
  CheckedTurn,
  CleanupJob,
  CleanupPreview,
  CleanupRun,
  CompactionAnswer,
  CompactionComparison,
  ContextDiff,
  ContextPreview,
  CostCall,
  CostCallOrder,
  CostDimension,
  CostMeasure,
  CostReport,
  Credentials,
  Delivery,
  DisableWebhook,
  EditFact,
  EditedCampaign,
  EraseCampaign,
  Erasure,
  Estimate,
  EstimateSession,
  EstimateTask,
  EvalAnswers,
  EvalRun,
  Fact,
  FactExtraction,
  FactHit,
  FactUses,
  FactsForgotten,
  FeedEvent,
  FidelityReport,
  FileDirection,
  Files,
  Findings,
  Flow,
  FlowDetail,
  FlowEstimate,
  FlowQuestion,
  FlowRetry,
  ForkSession,
  FoundId,
  HandedOut,
  HeldLane,
  HistoryCheck,
  HoldJob,
  HoldLane,
  Installation,
  InstallationOverview,
  InterruptAgent,
  InterruptResult,
  InterruptSession,
  InterruptedTasks,
  JobDetail,
  JobExplanation,
  KeyRotation,
  Lane,
  LaneName,
  LimitChange,
  ListedJob,
  ListedTask,
  ListedTurn,
  MemoryHit,
  MemoryImport,
  MemoryImported,
  MemoryItem,
  MemoryVersion,
  MemoryWritten,
  NewBulkAction,
  NewCampaign,
  NewChildren,
  NewEvalRun,
  NewFact,
  NewFlow,
  NewKey,
  NewMemoryItem,
  NewPost,
  NewTask,
  NewWebhook,
  Nothing,
  OpenedArchive,
  OwnedBudget,
  Page,
  PauseAgent,
  PauseAgentEverywhere,
  PauseCampaign,
  PauseGroup,
  PauseOutcome,
  PauseQueue,
  PauseSchedule,
  Post,
  PostResult,
  PreviewAgentContext,
  PreviewedBulkAction,
  PriorityChange,
  PromptText,
  PromptVersions,
  ProviderTranscript,
  PutCampaignUser,
  Queue,
  Queues,
  Ready,
  RecurringTask,
  ReleasedLane,
  ReplaySince,
  ReplayedMany,
  RerunTurn,
  ResetAgent,
  ResetAgents,
  ResetSession,
  ResumeCredential,
  ResumeOutcome,
  ResumedCredential,
  RetriedJob,
  Schedule,
  ScheduleDetail,
  Schedules,
  SecretRotation,
  SentContext,
  Session,
  SessionDetail,
  SessionExplanation,
  SessionView,
  SetBudgetOutput,
  ShownKey,
  SignIn,
  SourceText,
  StoredMessage,
  Task,
  TaskDetail,
  TaskExplanation,
  TaskFiles,
  TaskLimitChange,
  TaskPriority,
  TextHit,
  TurnDetail,
  TurnReruns,
  UsedRateLimits,
  UserOfCampaign,
  VerifiedCall,
  WaitingJobs,
  Webhook,
  WebhookMessage,
  WebhookWithSecret,
  Webhooks,
  Worker,
  WorkerActivity,
} from './types.js';

function segment(value: string | number): string {
  return encodeURIComponent(String(value));
}

/** Each method is the operation of the same name in the API document. */
export abstract class Operations {
  protected abstract call<T>(request: Request): Promise<T>;
  protected abstract follow(request: Request): AsyncGenerator<Event, void, undefined>;

  /**
   * Adds up to 10,000 tasks in one transaction: all or none.
   *
   * The body is a JSON array, or one object per line (NDJSON). With an Idempotency-Key the same request can be
   * sent again: a task without an idempotency_key of its own gets that key and its number in the body, such as
   * `import/1` for the first. Where tasks are refused, `errors` points at each of them, up to a hundred.
   * Idempotency keys and predecessors are looked up when everything else is right.
   */
  addManyTasks(campaignId: string, body: BulkTask[], options: KeyedOptions = {}): Promise<AddedMany> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/tasks/bulk`, body, takesKey: true, options });
  }

  /**
   * Posts as the operator.
   *
   * Each agent that the text mentions as `@name` gets a task, `@all` means all of them; its answer is a post
   * that answers. The agents that a post is addressed to see it with their next turn; the operator and the lead
   * see everything. The same Idempotency-Key and question give the same post again, with 200, as long as the
   * campaign exists; another question under the key is a conflict.
   */
  addPost(campaignId: string, body: NewPost, options: KeyedOptions = {}): Promise<PostResult> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/posts`, body, takesKey: true, options });
  }

  /**
   * Adds a task for an agent.
   *
   * The same Idempotency-Key and question give the same task again, with 200; another question under the key is
   * a conflict. Keys belong to a campaign and an API key, by its name; everything without an API key is one
   * caller.
   */
  addTask(campaignId: string, body: NewTask, options: KeyedOptions = {}): Promise<AddedTask> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/tasks`, body, takesKey: true, options });
  }

  /** Adds a webhook for the ends of tasks. Only this response contains its secret. */
  addWebhook(body: NewWebhook, options: CallOptions = {}): Promise<WebhookWithSecret> {
    return this.call({ method: 'POST', path: '/v1/webhooks', body, options });
  }

  /** Cancels all open tasks of a flow: waiting tasks at once, running tasks through their workers. */
  cancelFlow(flowId: string, body?: CancelFlow, options: KeyedOptions = {}): Promise<CancelledFlow> {
    return this.call({ method: 'POST', path: `/v1/flows/${segment(flowId)}/cancel`, body, takesKey: true, options });
  }

  /**
   * Cancels a job: at once if it waits, through its worker if it runs.
   *
   * Cancelling the job of a task cancels the task, with its children. Cancelling the job of a webhook delivery
   * gives the delivery up; a replay sends it again.
   */
  cancelJob(jobId: number, body?: CancelJob, options: KeyedOptions = {}): Promise<CancelledJob> {
    return this.call({ method: 'POST', path: `/v1/jobs/${segment(jobId)}/cancel`, body, takesKey: true, options });
  }

  /**
   * Cancels a task: at once if it waits, through its worker if it runs.
   *
   * The tasks that depend on it are cancelled, too, even if the task itself had ended.
   */
  cancelTask(taskId: string, body?: CancelTask, options: KeyedOptions = {}): Promise<CancelledTask> {
    return this.call({ method: 'POST', path: `/v1/tasks/${segment(taskId)}/cancel`, body, takesKey: true, options });
  }

  /**
   * Changes the limits of a campaign. A limit that is not named stays; null removes it.
   *
   * Waiting tasks for which there is space now continue.
   */
  changeBudget(campaignId: string, body?: LimitChange, options: KeyedOptions = {}): Promise<Budget> {
    return this.call({ method: 'PATCH', path: `/v1/campaigns/${segment(campaignId)}/budget`, body, takesKey: true, options });
  }

  /**
   * Changes the budget of a task. A limit that is not named stays; null removes it.
   *
   * If the task waits for its budget and the next call fits now, it continues.
   */
  changeTaskBudget(taskId: string, body?: TaskLimitChange, options: KeyedOptions = {}): Promise<Task> {
    return this.call({ method: 'PATCH', path: `/v1/tasks/${segment(taskId)}/budget`, body, takesKey: true, options });
  }

  /**
   * Changes the priority of a waiting task. The tasks of a conversation keep their order.
   *
   * Retries keep the new priority.
   */
  changeTaskPriority(taskId: string, body: PriorityChange, options: KeyedOptions = {}): Promise<TaskPriority> {
    return this.call({ method: 'PATCH', path: `/v1/tasks/${segment(taskId)}/priority`, body, takesKey: true, options });
  }

  /** Closes a campaign: it takes no more tasks. Waiting tasks still run. */
  closeCampaign(campaignId: string, options: KeyedOptions = {}): Promise<Campaign> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/close`, takesKey: true, options });
  }

  /**
   * Compacts a session: a summary replaces its older messages.
   *
   * A worker compacts it; `GET /v1/sessions/{id}/compaction` shows the outcome, and the session lists its
   * compactions.
   */
  compactSession(sessionId: string, options: KeyedOptions = {}): Promise<AcceptedCompaction> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/compact`, takesKey: true, options });
  }

  /** Compares two versions of a campaign's brief, client context and parameters, word by word. */
  compareCampaignVersions(
    campaignId: string,
    query: { from: number; to?: number | undefined },
    options: CallOptions = {},
  ): Promise<CampaignDiff> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/version-diff`, query, options });
  }

  /**
   * Compares a session before and after a compaction: the place of each replaced message and value, and the
   * rejected summaries.
   */
  compareCompaction(
    sessionId: string,
    compactionNumber: number,
    options: CallOptions = {},
  ): Promise<CompactionComparison> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/compactions/${segment(compactionNumber)}`, options });
  }

  /** Compares what two turns were sent, in one session or in two: which parts came, went and changed. */
  compareContexts(
    sessionId: string,
    query: { from: number; to: number; to_session?: string | undefined },
    options: CallOptions = {},
  ): Promise<ContextDiff> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/context-diff`, query, options });
  }

  /**
   * Cancels or retries all tasks that match a filter, on a worker.
   *
   * Tasks that are added later are not affected. Tasks whose state changes before the worker reaches them are
   * skipped.
   */
  createBulkAction(body: NewBulkAction, options: KeyedOptions = {}): Promise<BulkAction> {
    return this.call({ method: 'POST', path: '/v1/bulk-actions', body, takesKey: true, options });
  }

  /** Creates a campaign. */
  createCampaign(body: NewCampaign, options: KeyedOptions = {}): Promise<CampaignOverview> {
    return this.call({ method: 'POST', path: '/v1/campaigns', body, takesKey: true, options });
  }

  /** Creates an API key. Only this response contains its text. */
  createKey(body: NewKey, options: CallOptions = {}): Promise<ShownKey> {
    return this.call({ method: 'POST', path: '/v1/keys', body, options });
  }

  /** Disables a webhook. Deliveries are held until it is enabled. */
  disableWebhook(webhookId: string, body?: DisableWebhook, options: KeyedOptions = {}): Promise<Webhook> {
    return this.call({ method: 'POST', path: `/v1/webhooks/${segment(webhookId)}/disable`, body, takesKey: true, options });
  }

  /**
   * Returns a file of a task.
   *
   * Its type follows from its content; texts of all kinds are `text/plain`. A `/` in the name is written as
   * `%2F` in the path.
   */
  downloadTaskFile(
    taskId: string,
    fileName: string,
    query: { direction?: FileDirection | undefined } = {},
    options: CallOptions = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/files/${segment(fileName)}`, query, isBinary: true, options });
  }

  /**
   * Changes the brief, the client context or parameters of a campaign, from the next call on. No session is
   * rebuilt.
   *
   * Each edit makes a version. The record of each call names the version that it contains.
   */
  editCampaign(campaignId: string, body?: CampaignEdit, options: KeyedOptions = {}): Promise<EditedCampaign> {
    return this.call({ method: 'PATCH', path: `/v1/campaigns/${segment(campaignId)}`, body, takesKey: true, options });
  }

  /** Replaces the text of a valid fact. The older text stays in the history. */
  editFact(userName: string, fact: string, body: EditFact, options: KeyedOptions = {}): Promise<Fact> {
    return this.call({ method: 'POST', path: `/v1/users/${segment(userName)}/facts/${segment(fact)}/edit`, body, takesKey: true, options });
  }

  /** Enables a webhook again. Deliveries held meanwhile can be replayed. */
  enableWebhook(webhookId: string, options: KeyedOptions = {}): Promise<Webhook> {
    return this.call({ method: 'POST', path: `/v1/webhooks/${segment(webhookId)}/enable`, takesKey: true, options });
  }

  /** Ends a sign-in: the browser has to sign in again with a key. */
  endSignIn(signInId: string, options: KeyedOptions = {}): Promise<SignIn> {
    return this.call({ method: 'POST', path: `/v1/sign-ins/${segment(signInId)}/end`, takesKey: true, options });
  }

  /**
   * Erases the conversations, prompts, results and brief of a campaign permanently; its costs stay.
   *
   * A worker erases them. A repeated request returns the same receipt.
   */
  eraseCampaign(campaignId: string, body?: EraseCampaign, options: KeyedOptions = {}): Promise<Erasure> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/erasure`, body, takesKey: true, options });
  }

  /**
   * Estimates tokens and cost of a flow that is not started: the sums of its steps.
   *
   * Calls no model and changes nothing. Results of earlier steps are unknown, so the input of later steps is
   * larger than estimated. Of the tasks of a step for each item, the first one is estimated and multiplied.
   */
  estimateFlow(campaignId: string, body: FlowQuestion, options: CallOptions = {}): Promise<FlowEstimate> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/flows/estimate`, body, options });
  }

  /**
   * Estimates tokens and cost of the next turn of a session's conversation.
   *
   * Calls no model and changes nothing.
   */
  estimateSession(sessionId: string, body?: EstimateSession, options: CallOptions = {}): Promise<Estimate> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/estimate`, body, options });
  }

  /**
   * Estimates tokens and cost of a task that is not added.
   *
   * Calls no model and changes nothing. The input of the first call is drafted as a turn would draft it;
   * further calls, and the length of the answer, are those of earlier turns of the agent. Compares resuming the
   * session, a compaction before it, and a new session.
   */
  estimateTask(campaignId: string, body: EstimateTask, options: CallOptions = {}): Promise<Estimate> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/estimate`, body, options });
  }

  /** Explains why a job is in its state, and what has to happen next. */
  explainJob(jobId: number, options: CallOptions = {}): Promise<JobExplanation> {
    return this.call({ method: 'GET', path: `/v1/jobs/${segment(jobId)}/explain`, options });
  }

  /** Explains the state of a session: the reason, and what happens next. */
  explainSession(sessionId: string, options: CallOptions = {}): Promise<SessionExplanation> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/explain`, options });
  }

  /** Explains why a task is in its state, and what has to happen next. */
  explainTask(taskId: string, options: CallOptions = {}): Promise<TaskExplanation> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/explain`, options });
  }

  /** Exports items with their texts, in the order in which they were first written. */
  exportMemory(
    campaignId: string,
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<MemoryItem>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory/export`, query, options });
  }

  /**
   * Finds the id with a beginning or end; that of a campaign also by its name.
   *
   * A key with the scope `enqueue` finds campaigns only.
   */
  findId(
    query: { newest?: number | undefined; noun: 'bulk_action' | 'campaign' | 'fact' | 'flow' | 'memory_item' | 'post' | 'session' | 'task' | 'webhook' | 'webhook_delivery'; text: string },
    options: CallOptions = {},
  ): Promise<FoundId> {
    return this.call({ method: 'GET', path: '/v1/ids', query, options });
  }

  /** Finds the item with this kind, owner and name, also a revoked or expired one. */
  findMemory(
    campaignId: string,
    query: { kind: 'edict' | 'record' | 'journal'; name: string; owner?: string | undefined },
    options: CallOptions = {},
  ): Promise<MemoryItem> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory/find`, query, options });
  }

  /**
   * Streams all events as server-sent events, without an end.
   *
   * The data of an event is a `FeedEvent`. A client that names no place, or one that this database has not
   * reached (it was restored, or a standby has taken over), gets an event `begin` first, whose id is where the
   * stream begins.
   */
  followFeed(
    query: { after?: number | undefined; agent?: string | undefined; campaign_id?: string | undefined; kinds?: string | undefined; session_id?: string | undefined } = {},
    options: StreamOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    return this.follow({ method: 'GET', path: '/v1/feed', query, options });
  }

  /**
   * Streams the events of a task as server-sent events; the last one is `end`, with the task as its data.
   *
   * The data of `end` also has `rest`: the part of the result that no `turn.progress` had. It is the whole
   * result if their texts are not its begin: a turn was repeated, has used tools, or a text was cut.
   */
  followTask(taskId: string, options: StreamOptions = {}): AsyncGenerator<Event, void, undefined> {
    return this.follow({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/events`, options });
  }

  /**
   * Removes all facts about a user permanently, including ended ones.
   *
   * Earlier prompts are not read for facts any more. Later ones are, in campaigns that go on working for this
   * user. Prompts, transcripts, summaries and records stay. `sessions` says where to look; erasing a campaign
   * removes them.
   */
  forgetUser(userName: string, options: KeyedOptions = {}): Promise<FactsForgotten> {
    return this.call({ method: 'POST', path: `/v1/users/${segment(userName)}/forget`, takesKey: true, options });
  }

  /**
   * Forks a session: a new conversation of its agent begins as this one was after a turn.
   *
   * The fork has copies of the summary and the messages up to that turn, and is a new instance of the agent.
   * Tasks of that instance continue it. The session and its conversation are not changed.
   */
  forkSession(sessionId: string, body?: ForkSession, options: KeyedOptions = {}): Promise<Session> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/forks`, body, takesKey: true, options });
  }

  /**
   * Adds children to a task; its agent continues when all of them have ended.
   *
   * All of it is added or nothing. The continuation is a task of the same agent and instance; it is told what
   * each child came to, failures included, in the order of the request. Cancelling the task cancels its
   * children and its continuation. The same Idempotency-Key and question give the same tasks again, with 200; a
   * child without a key of its own gets one of that. An API key with the scope `enqueue` alone hands out from
   * tasks that keys of its name have added.
   */
  handOut(taskId: string, body: NewChildren, options: KeyedOptions = {}): Promise<HandedOut> {
    return this.call({ method: 'POST', path: `/v1/tasks/${segment(taskId)}/children`, body, takesKey: true, options });
  }

  /** Prevents a job from running until it is released; a blocked job is held when its turn comes. */
  holdJob(jobId: number, body?: HoldJob, options: KeyedOptions = {}): Promise<ChangedJob> {
    return this.call({ method: 'POST', path: `/v1/jobs/${segment(jobId)}/hold`, body, takesKey: true, options });
  }

  /** Stops a lane after its running job. */
  holdLane(laneName: string, body?: HoldLane, options: KeyedOptions = {}): Promise<HeldLane> {
    return this.call({ method: 'POST', path: `/v1/lanes/${segment(laneName)}/hold`, body, takesKey: true, options });
  }

  /** Imports many items: all of them, or none and a list of all problems. */
  importMemory(campaignId: string, body: MemoryImport, options: KeyedOptions = {}): Promise<MemoryImported> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/memory/import`, body, takesKey: true, options });
  }

  /**
   * Stops the running turns of an agent and all its instances in a campaign, and cancels their tasks.
   *
   * Its other tasks go on, unless it is paused first.
   */
  interruptAgent(
    campaignId: string,
    agentName: string,
    body?: InterruptAgent,
    options: KeyedOptions = {},
  ): Promise<InterruptedTasks> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/agents/${segment(agentName)}/interrupt`, body, takesKey: true, options });
  }

  /** Stops the running turn of a session by cancelling its task. */
  interruptSession(
    sessionId: string,
    body?: InterruptSession,
    options: KeyedOptions = {},
  ): Promise<InterruptResult> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/interrupt`, body, takesKey: true, options });
  }

  /** Lists the pauses of agents: in one campaign, or in all of them. */
  listAgentPauses(options: CallOptions = {}): Promise<AgentPauses> {
    return this.call({ method: 'GET', path: '/v1/agents/pauses', options });
  }

  /** Lists the agents of a campaign with their states and pauses. */
  listAgentStatuses(campaignId: string, options: CallOptions = {}): Promise<AgentStatuses> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/agents`, options });
  }

  /** Lists all agents, skills and nodes, and the problems of their files. */
  listAgents(options: CallOptions = {}): Promise<Agents> {
    return this.call({ method: 'GET', path: '/v1/agents', options });
  }

  /** Lists the archives of a session: the messages that its compactions have replaced. */
  listArchives(sessionId: string, options: CallOptions = {}): Promise<Archives> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/archives`, options });
  }

  /**
   * Lists the audit log, the newest first.
   *
   * Filters by caller, action and the name of a subject check each line. A page checks at most 100,000 lines:
   * it may have fewer items than `limit`, or none, and a `next`.
   */
  listAudit(
    query: { action?: string | undefined; actor?: string | undefined; created_after?: string | undefined; created_before?: string | undefined; cursor?: number | string | undefined; limit?: number | undefined; subject?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<AuditEntry>> {
    return this.call({ method: 'GET', path: '/v1/audit', query, options });
  }

  /** Lists the changes of a blackboard, the newest first. */
  listBlackboardChanges(
    campaignId: string,
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<BlackboardChange>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/blackboard/history`, query, options });
  }

  /**
   * Lists the budgets of agents, users and the day, and those of open campaigns, with what is spent and how
   * many tasks wait.
   */
  listBudgets(
    query: { cursor?: string | undefined; key?: string | undefined; limit?: number | undefined; owner?: 'agent' | 'campaign' | 'day' | 'user' | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<OwnedBudget>> {
    return this.call({ method: 'GET', path: '/v1/budgets', query, options });
  }

  /** Lists bulk actions, the newest first. */
  listBulkActions(
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<BulkAction>> {
    return this.call({ method: 'GET', path: '/v1/bulk-actions', query, options });
  }

  /** Lists calls of the ledger with their costs: those behind a line of a cost report. */
  listCalls(
    query: { agent?: string | undefined; campaign_id?: string | undefined; cursor?: number | string | undefined; limit?: number | undefined; model?: string | undefined; order?: CostCallOrder | undefined; provider?: string | undefined; purpose?: 'turn' | 'summary' | 'facts' | 'rerun' | undefined; since?: string | undefined; until?: string | undefined; user?: string | undefined; without_reruns?: boolean | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<CostCall>> {
    return this.call({ method: 'GET', path: '/v1/costs/calls', query, options });
  }

  /**
   * Lists the versions of a campaign's brief, client context and parameters, the newest first, without the
   * texts.
   */
  listCampaignVersions(
    campaignId: string,
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<CampaignVersionSummary>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/versions`, query, options });
  }

  /** Lists campaigns, the newest first. */
  listCampaigns(
    query: { cursor?: string | undefined; limit?: number | undefined; metadata?: string | undefined; tags?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Campaign>> {
    return this.call({ method: 'GET', path: '/v1/campaigns', query, options });
  }

  /**
   * Lists the ended turns of a campaign, each with the proof that the model saw the history.
   *
   * The newest session comes first, and its last turn first. With `history`, a page checks at most 10,000
   * turns: it may have fewer items than `limit`, or none, and a `next`.
   */
  listCheckedTurns(
    campaignId: string,
    query: { cursor?: string | undefined; history?: HistoryCheck | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<CheckedTurn>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/fidelity/turns`, query, options });
  }

  /** Lists past cleanups, the newest first. */
  listCleanupRuns(
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<CleanupRun>> {
    return this.call({ method: 'GET', path: '/v1/cleanup/runs', query, options });
  }

  /** Lists the credentials of providers, and their pauses. */
  listCredentials(options: CallOptions = {}): Promise<Credentials> {
    return this.call({ method: 'GET', path: '/v1/credentials', options });
  }

  /** Lists deliveries, the newest first. */
  listDeliveries(
    query: { cursor?: string | undefined; limit?: number | undefined; state?: 'waiting' | 'delivered' | 'failed' | 'held' | undefined; task_id?: string | undefined; webhook_id?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Delivery>> {
    return this.call({ method: 'GET', path: '/v1/webhook-deliveries', query, options });
  }

  /** Lists erasures with their receipts, those that were requested last first. */
  listErasures(
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Erasure>> {
    return this.call({ method: 'GET', path: '/v1/erasures', query, options });
  }

  /** Lists recorded eval runs, those that were recorded last first. */
  listEvalRuns(
    query: { campaign_id?: string | undefined; cursor?: number | string | undefined; eval?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<EvalRun>> {
    return this.call({ method: 'GET', path: '/v1/evals', query, options });
  }

  /** Lists the parts of sessions of a campaign that were read for facts, with the results, the newest first. */
  listExtractions(
    campaignId: string,
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<FactExtraction>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/extractions`, query, options });
  }

  /**
   * Lists the sessions that were shown a fact, the newest use first, with the turns whose calls contained it.
   *
   * Records of showings are kept as long as ended facts (`memory.keep_days`). Of a fact with more than 10,000
   * records, only 10,000 are read: the list may then lack the newest sessions.
   */
  listFactUses(userName: string, fact: string, options: CallOptions = {}): Promise<FactUses> {
    return this.call({ method: 'GET', path: `/v1/users/${segment(userName)}/facts/${segment(fact)}/uses`, options });
  }

  /** Lists the facts about a user, the newest first. */
  listFacts(
    userName: string,
    query: { cursor?: string | undefined; ended?: boolean | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Fact>> {
    return this.call({ method: 'GET', path: `/v1/users/${segment(userName)}/facts`, query, options });
  }

  /** Lists the files of agents, skills, nodes and flow templates with their problems. */
  listFiles(options: CallOptions = {}): Promise<Files> {
    return this.call({ method: 'GET', path: '/v1/files', options });
  }

  /** Lists the flow templates with their inputs and steps. */
  listFlowTemplates(options: CallOptions = {}): Promise<AllTemplates> {
    return this.call({ method: 'GET', path: '/v1/flow-templates', options });
  }

  /** Lists flows, the newest first. */
  listFlows(
    query: { campaign_id?: string | undefined; cursor?: string | undefined; limit?: number | undefined; state?: 'running' | 'paused' | 'done' | 'failed' | 'cancelled' | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Flow>> {
    return this.call({ method: 'GET', path: '/v1/flows', query, options });
  }

  /** Lists jobs by id. Jobs of tasks name their task. */
  listJobs(
    query: { campaign_id?: string | undefined; cursor?: number | string | undefined; kind?: string | undefined; lane?: string | undefined; limit?: number | undefined; queue?: string | undefined; state?: 'scheduled' | 'ready' | 'blocked' | 'held' | 'running' | 'dead' | undefined; waits_for?: 'slot' | 'pause' | 'lane' | 'lane_hold' | 'later' | 'retry' | 'snooze' | 'provider' | 'batch' | 'condition' | 'crash' | 'signal' | 'person' | 'failure' | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<ListedJob>> {
    return this.call({ method: 'GET', path: '/v1/jobs', query, options });
  }

  /** Lists the API keys, the newest first. */
  listKeys(
    query: { cursor?: string | undefined; limit?: number | undefined; named?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<ApiKey>> {
    return this.call({ method: 'GET', path: '/v1/keys', query, options });
  }

  /** Lists the names of the lanes that have jobs, the oldest lane first. */
  listLanes(
    query: { cursor?: string | undefined; held?: boolean | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<LaneName>> {
    return this.call({ method: 'GET', path: '/v1/lanes', query, options });
  }

  /** Lists the items in the memory of a campaign, the newest first, without their texts. */
  listMemory(
    campaignId: string,
    query: { cursor?: string | undefined; ended?: boolean | undefined; kind?: 'edict' | 'record' | 'journal' | undefined; limit?: number | undefined; owner?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<MemoryItem>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory`, query, options });
  }

  /** Lists all versions of an item, the newest first. */
  listMemoryVersions(campaignId: string, item: string, options: CallOptions = {}): Promise<Page<MemoryVersion>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory/${segment(item)}/versions`, options });
  }

  /** Lists the posts of a campaign, the newest first. */
  listPosts(
    campaignId: string,
    query: { cursor?: number | string | undefined; limit?: number | undefined; order?: 'newest' | 'oldest' | undefined; viewer?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Post>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/posts`, query, options });
  }

  /**
   * Lists the versions of an agent's prompt that sessions were made with, the last used first.
   *
   * `show_prompt_version` has the text of a version.
   */
  listPromptVersions(agentName: string, options: CallOptions = {}): Promise<PromptVersions> {
    return this.call({ method: 'GET', path: `/v1/agents/${segment(agentName)}/versions`, options });
  }

  /** Lists the queues with their counters. */
  listQueues(options: CallOptions = {}): Promise<Queues> {
    return this.call({ method: 'GET', path: '/v1/queues', options });
  }

  /** Lists the rate limits that workers have used in the last hour, and the tasks that wait for them. */
  listRateLimits(options: CallOptions = {}): Promise<UsedRateLimits> {
    return this.call({ method: 'GET', path: '/v1/rate-limits', options });
  }

  /** Lists the reruns of a call of a turn, with the call as it was made in the turn. */
  listReruns(
    sessionId: string,
    turnNumber: number,
    query: { call?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<TurnReruns> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/turns/${segment(turnNumber)}/reruns`, query, options });
  }

  /** Lists the schedules. */
  listSchedules(options: CallOptions = {}): Promise<Schedules> {
    return this.call({ method: 'GET', path: '/v1/schedules', options });
  }

  /** Lists sessions, the newest first. */
  listSessions(
    query: { agent?: string | undefined; campaign_id?: string | undefined; created_after?: string | undefined; cursor?: string | undefined; limit?: number | undefined; open?: boolean | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Session>> {
    return this.call({ method: 'GET', path: '/v1/sessions', query, options });
  }

  /**
   * Lists the sign-ins to the console, the newest first.
   *
   * Those that have ended or expired are listed for 30 days.
   */
  listSignIns(
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<SignIn>> {
    return this.call({ method: 'GET', path: '/v1/sign-ins', query, options });
  }

  /**
   * Lists the files of a task: its attachments, then the output files that its agent has written, and those
   * that could not be stored.
   */
  listTaskFiles(taskId: string, options: CallOptions = {}): Promise<TaskFiles> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/files`, options });
  }

  /**
   * Lists tasks, the newest first.
   *
   * Filters by agent, time, text and the state `done` check each task. A page checks at most 2,000 tasks that
   * match otherwise: it may have fewer items than `limit`, or none, and a `next`.
   */
  listTasks(
    query: { agent?: string | undefined; campaign_id?: string | undefined; created_after?: string | undefined; created_before?: string | undefined; cursor?: string | undefined; ended_after?: string | undefined; instance?: string | undefined; limit?: number | undefined; metadata?: string | undefined; state?: 'queued' | 'running' | 'done' | 'failed' | 'cancelled' | undefined; tags?: string | undefined; text?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<ListedTask>> {
    return this.call({ method: 'GET', path: '/v1/tasks', query, options });
  }

  /** Lists the turns of a session, the newest first. */
  listTurns(
    sessionId: string,
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<ListedTurn>> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/turns`, query, options });
  }

  /** Counts waiting jobs by the reason for which they wait. Reads the 10000 oldest live jobs only. */
  listWaits(options: CallOptions = {}): Promise<WaitingJobs> {
    return this.call({ method: 'GET', path: '/v1/waits', options });
  }

  /** Lists all webhooks, without their secrets. */
  listWebhooks(options: CallOptions = {}): Promise<Webhooks> {
    return this.call({ method: 'GET', path: '/v1/webhooks', options });
  }

  /** Lists worker processes, the newest first. Ended ones are listed for queue.keep.workers_days. */
  listWorkers(
    query: { cursor?: string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<Worker>> {
    return this.call({ method: 'GET', path: '/v1/workers', query, options });
  }

  /** Reports that the process is alive. Does not use the database. */
  livez(options: CallOptions = {}): Promise<string> {
    return this.call({ method: 'GET', path: '/livez', options });
  }

  /** Metrics of this process, for Prometheus. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.call({ method: 'GET', path: '/metrics', options });
  }

  /** This document. */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/v1/openapi.json', options });
  }

  /** Merges a JSON Merge Patch (RFC 7396) into the document. */
  patchBlackboard(
    campaignId: string,
    body: BlackboardPatch,
    options: KeyedOptions = {},
  ): Promise<BlackboardWritten> {
    return this.call({ method: 'PATCH', path: `/v1/campaigns/${segment(campaignId)}/blackboard`, body, takesKey: true, options });
  }

  /**
   * Pauses an agent in a campaign: no turn starts until it is resumed.
   *
   * Running turns go on. Its tasks wait, including new ones.
   */
  pauseAgent(
    campaignId: string,
    agentName: string,
    body?: PauseAgent,
    options: KeyedOptions = {},
  ): Promise<AgentPaused> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/agents/${segment(agentName)}/pause`, body, takesKey: true, options });
  }

  /** Pauses an agent in all campaigns: no turn starts until it is resumed. */
  pauseAgentEverywhere(
    agentName: string,
    body?: PauseAgentEverywhere,
    options: KeyedOptions = {},
  ): Promise<AgentPaused> {
    return this.call({ method: 'POST', path: `/v1/agents/${segment(agentName)}/pause`, body, takesKey: true, options });
  }

  /**
   * Pauses a campaign: no turn starts until it is resumed.
   *
   * Running turns go on. New tasks are accepted and wait.
   */
  pauseCampaign(campaignId: string, body?: PauseCampaign, options: KeyedOptions = {}): Promise<Campaign> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/pause`, body, takesKey: true, options });
  }

  /** Pauses a flow: no task starts until it is resumed. Running turns go on. */
  pauseFlow(flowId: string, options: KeyedOptions = {}): Promise<Flow> {
    return this.call({ method: 'POST', path: `/v1/flows/${segment(flowId)}/pause`, takesKey: true, options });
  }

  /**
   * Pauses a group: workers claim none of its jobs until it is resumed. The tasks of a campaign are a group
   * with its id as the name.
   */
  pauseGroup(groupName: string, body?: PauseGroup, options: KeyedOptions = {}): Promise<PauseOutcome> {
    return this.call({ method: 'POST', path: `/v1/groups/${segment(groupName)}/pause`, body, takesKey: true, options });
  }

  /**
   * Pauses a queue: workers claim none of its jobs until it is resumed. Running jobs continue.
   *
   * The queue has had a job, has a worker, or is one of the service's own.
   */
  pauseQueue(queueName: string, body?: PauseQueue, options: KeyedOptions = {}): Promise<PauseOutcome> {
    return this.call({ method: 'POST', path: `/v1/queues/${segment(queueName)}/pause`, body, takesKey: true, options });
  }

  /** Skips the moments of a schedule until it is resumed. */
  pauseSchedule(scheduleName: string, body?: PauseSchedule, options: KeyedOptions = {}): Promise<Schedule> {
    return this.call({ method: 'POST', path: `/v1/schedules/${segment(scheduleName)}/pause`, body, takesKey: true, options });
  }

  /**
   * Shows what an agent would be sent now for a prompt, without a task.
   *
   * Nothing is sent and nothing changes.
   */
  previewAgentContext(
    campaignId: string,
    body: PreviewAgentContext,
    options: CallOptions = {},
  ): Promise<ContextPreview> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/context/preview`, body, options });
  }

  /** Lists the tasks that a bulk action would match, and changes nothing. */
  previewBulkAction(body: PreviewedBulkAction, options: CallOptions = {}): Promise<BulkActionPreview> {
    return this.call({ method: 'POST', path: '/v1/bulk-actions/preview', body, options });
  }

  /** Shows what a cleanup would remove. Reads all expired rows, which can take some time. */
  previewCleanup(query: { at?: string | undefined } = {}, options: CallOptions = {}): Promise<CleanupPreview> {
    return this.call({ method: 'GET', path: '/v1/cleanup/preview', query, options });
  }

  /**
   * Shows what the next turn of a task would be sent now: its texts, and the request byte for byte.
   *
   * Nothing is sent and nothing changes.
   */
  previewTaskContext(taskId: string, options: CallOptions = {}): Promise<ContextPreview> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/context/preview`, options });
  }

  /**
   * Publishes an item, or the next version of the item with the same kind, owner and name.
   *
   * If the item already has this content, nothing changes. Journal entries cannot be replaced.
   */
  publishMemory(campaignId: string, body: NewMemoryItem, options: KeyedOptions = {}): Promise<MemoryWritten> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/memory`, body, takesKey: true, options });
  }

  /** Sets the user for whom a campaign works. Earlier prompts are not read for facts about them. */
  putCampaignUser(
    campaignId: string,
    body?: PutCampaignUser,
    options: KeyedOptions = {},
  ): Promise<UserOfCampaign> {
    return this.call({ method: 'PUT', path: `/v1/campaigns/${segment(campaignId)}/user`, body, takesKey: true, options });
  }

  /** Adds or changes a schedule that adds a task at each of its times. */
  putSchedule(scheduleName: string, body: RecurringTask, options: KeyedOptions = {}): Promise<Schedule> {
    return this.call({ method: 'PUT', path: `/v1/schedules/${segment(scheduleName)}`, body, takesKey: true, options });
  }

  /** Reads an archive: its messages, in order, and their replacement. */
  readArchive(
    sessionId: string,
    archiveNumber: number,
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<OpenedArchive> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/archives/${segment(archiveNumber)}`, query, options });
  }

  /** Reads the transcript of a session, in order. */
  readTranscript(
    sessionId: string,
    query: { before?: number | undefined; cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<StoredMessage>> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/messages`, query, options });
  }

  /** Reports if this process can serve requests now. */
  readyz(options: CallOptions = {}): Promise<Ready> {
    return this.call({ method: 'GET', path: '/readyz', options });
  }

  /**
   * Stores the results of an eval run, or replaces its earlier ones.
   *
   * `dalsegno eval run` and `dalsegno eval report` call it: the checks are in the eval file. Stored are names,
   * numbers and ids; the texts of answers stay in their tasks and reruns.
   */
  recordEvalRun(campaignId: string, body: NewEvalRun, options: KeyedOptions = {}): Promise<EvalRun> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/evals`, body, takesKey: true, options });
  }

  /** Releases a held job. */
  releaseJob(jobId: number, options: KeyedOptions = {}): Promise<ChangedJob> {
    return this.call({ method: 'POST', path: `/v1/jobs/${segment(jobId)}/release`, takesKey: true, options });
  }

  /** Releases a held lane; a failed head that held it becomes a dead letter. */
  releaseLane(laneName: string, options: KeyedOptions = {}): Promise<ReleasedLane> {
    return this.call({ method: 'POST', path: `/v1/lanes/${segment(laneName)}/release`, takesKey: true, options });
  }

  /** Removes a schedule; the tasks that it has added stay. */
  removeSchedule(scheduleName: string, options: KeyedOptions = {}): Promise<void> {
    return this.call({ method: 'DELETE', path: `/v1/schedules/${segment(scheduleName)}`, takesKey: true, options });
  }

  /** Removes a webhook with its deliveries. */
  removeWebhook(webhookId: string, options: KeyedOptions = {}): Promise<void> {
    return this.call({ method: 'DELETE', path: `/v1/webhooks/${segment(webhookId)}`, takesKey: true, options });
  }

  /** Sends a delivery again, under the same id. */
  replayDelivery(webhookDeliveryId: string, options: KeyedOptions = {}): Promise<Delivery> {
    return this.call({ method: 'POST', path: `/v1/webhook-deliveries/${segment(webhookDeliveryId)}/replay`, takesKey: true, options });
  }

  /** Sends again all deliveries since a time that were not delivered. */
  replayWebhook(webhookId: string, body: ReplaySince, options: KeyedOptions = {}): Promise<ReplayedMany> {
    return this.call({ method: 'POST', path: `/v1/webhooks/${segment(webhookId)}/replay`, body, takesKey: true, options });
  }

  /**
   * Adds up the costs of all calls by one or two dimensions.
   *
   * Each call is in one line, so the lines add up to the total, and the total of a report without a period is
   * that of the ledger. Amounts are in the currency of the price list, which is not converted. Days begin at
   * midnight of `scheduler.time_zone`.
   */
  reportCosts(
    query: { and?: CostDimension | undefined; by?: CostDimension | undefined; campaign_id?: string | undefined; since?: string | undefined; top?: number | undefined; top_by?: CostMeasure | undefined; until?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<CostReport> {
    return this.call({ method: 'GET', path: '/v1/costs', query, options });
  }

  /**
   * Reports how exactly the conversations of a campaign were continued.
   *
   * It counts the turns whose token counts prove that the model saw the history, compares estimates with
   * counts, and lists the rejected summaries. It is about the newest 10,000 ended turns (`is_limited`).
   */
  reportFidelity(campaignId: string, options: CallOptions = {}): Promise<FidelityReport> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/fidelity`, options });
  }

  /**
   * Sends a call of a turn again, once or several times. The conversation does not change.
   *
   * A worker sends the context as the call had it, with the changes that are named here, and stores the answer
   * with its tokens, cost and time. One call is made: its tool calls are stored and not executed. A model with
   * a price is paid from the budget for reruns of the campaign.
   */
  rerunTurn(
    sessionId: string,
    turnNumber: number,
    body?: RerunTurn,
    options: KeyedOptions = {},
  ): Promise<TurnReruns> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/turns/${segment(turnNumber)}/reruns`, body, takesKey: true, options });
  }

  /** Starts a new session with the next task of each conversation of one agent. */
  resetAgent(
    campaignId: string,
    agentName: string,
    body?: ResetAgent,
    options: KeyedOptions = {},
  ): Promise<AgentsReset> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/agents/${segment(agentName)}/reset`, body, takesKey: true, options });
  }

  /**
   * Starts a new session with the next task of each conversation of a campaign.
   *
   * Running turns go on.
   */
  resetAgents(campaignId: string, body?: ResetAgents, options: KeyedOptions = {}): Promise<AgentsReset> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/agents/reset`, body, takesKey: true, options });
  }

  /** Closes a session; the next task of its conversation opens a successor. */
  resetSession(sessionId: string, body?: ResetSession, options: KeyedOptions = {}): Promise<Session> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/reset`, body, takesKey: true, options });
  }

  /** Resumes an agent in a campaign. */
  resumeAgent(campaignId: string, agentName: string, options: KeyedOptions = {}): Promise<AgentResumed> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/agents/${segment(agentName)}/resume`, takesKey: true, options });
  }

  /** Resumes an agent that was paused in all campaigns. */
  resumeAgentEverywhere(agentName: string, options: KeyedOptions = {}): Promise<AgentResumed> {
    return this.call({ method: 'POST', path: `/v1/agents/${segment(agentName)}/resume`, takesKey: true, options });
  }

  /** Ends a pause. */
  resumeCampaign(campaignId: string, options: KeyedOptions = {}): Promise<Campaign> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/resume`, takesKey: true, options });
  }

  /** Ends the pause of a credential early, and wakes the tasks that wait for it. */
  resumeCredential(
    credentialName: string,
    body?: ResumeCredential,
    options: KeyedOptions = {},
  ): Promise<ResumedCredential> {
    return this.call({ method: 'POST', path: `/v1/credentials/${segment(credentialName)}/resume`, body, takesKey: true, options });
  }

  /** Resumes a paused flow. */
  resumeFlow(flowId: string, options: KeyedOptions = {}): Promise<Flow> {
    return this.call({ method: 'POST', path: `/v1/flows/${segment(flowId)}/resume`, takesKey: true, options });
  }

  /** Ends the pause of a group. */
  resumeGroup(groupName: string, options: KeyedOptions = {}): Promise<ResumeOutcome> {
    return this.call({ method: 'POST', path: `/v1/groups/${segment(groupName)}/resume`, takesKey: true, options });
  }

  /** Ends the pause of a queue. */
  resumeQueue(queueName: string, options: KeyedOptions = {}): Promise<ResumeOutcome> {
    return this.call({ method: 'POST', path: `/v1/queues/${segment(queueName)}/resume`, takesKey: true, options });
  }

  /** Ends a pause. Moments that fell into it are not caught up. */
  resumeSchedule(scheduleName: string, options: KeyedOptions = {}): Promise<Schedule> {
    return this.call({ method: 'POST', path: `/v1/schedules/${segment(scheduleName)}/resume`, takesKey: true, options });
  }

  /** Runs the tasks of a step again, and all that depend on them. Those that have not ended are cancelled first. */
  retryFlow(flowId: string, body: FlowRetry, options: KeyedOptions = {}): Promise<Flow> {
    return this.call({ method: 'POST', path: `/v1/flows/${segment(flowId)}/retry`, body, takesKey: true, options });
  }

  /**
   * Runs a dead, held or waiting job again.
   *
   * Of a task that has failed or was cancelled, the task is retried, with another job. The dead letter of a
   * task that has moved on is removed, and nothing runs.
   */
  retryJob(jobId: number, options: KeyedOptions = {}): Promise<RetriedJob> {
    return this.call({ method: 'POST', path: `/v1/jobs/${segment(jobId)}/retry`, takesKey: true, options });
  }

  /** Puts a failed or cancelled task on the queue again. */
  retryTask(taskId: string, options: KeyedOptions = {}): Promise<Task> {
    return this.call({ method: 'POST', path: `/v1/tasks/${segment(taskId)}/retry`, takesKey: true, options });
  }

  /** Revokes a fact: agents no longer see or find it, and people can still read it. */
  revokeFact(userName: string, fact: string, options: KeyedOptions = {}): Promise<Fact> {
    return this.call({ method: 'POST', path: `/v1/users/${segment(userName)}/facts/${segment(fact)}/revoke`, takesKey: true, options });
  }

  /** Revokes an API key: all processes refuse it within 5 seconds. */
  revokeKey(keyId: string, options: KeyedOptions = {}): Promise<ApiKey> {
    return this.call({ method: 'POST', path: `/v1/keys/${segment(keyId)}/revoke`, takesKey: true, options });
  }

  /** Revokes an item: agents no longer see or find it, and people can still read it. */
  revokeMemory(campaignId: string, item: string, options: KeyedOptions = {}): Promise<MemoryItem> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/memory/${segment(item)}/revoke`, takesKey: true, options });
  }

  /** Creates the successor of an API key; the old key stays valid for some time. */
  rotateKey(keyId: string, body?: KeyRotation, options: CallOptions = {}): Promise<ShownKey> {
    return this.call({ method: 'POST', path: `/v1/keys/${segment(keyId)}/rotate`, body, options });
  }

  /** Creates a new secret, which only this response contains; the old one also signs during the overlap. */
  rotateWebhook(webhookId: string, body?: SecretRotation, options: CallOptions = {}): Promise<WebhookWithSecret> {
    return this.call({ method: 'POST', path: `/v1/webhooks/${segment(webhookId)}/rotate`, body, options });
  }

  /** Runs the nightly cleanup now, on a worker. */
  runCleanup(options: KeyedOptions = {}): Promise<CleanupJob> {
    return this.call({ method: 'POST', path: '/v1/cleanup/run', takesKey: true, options });
  }

  /** Checks the installation from the process that answers, as `dalsegno doctor` does. Takes some seconds. */
  runDoctor(options: CallOptions = {}): Promise<Findings> {
    return this.call({ method: 'GET', path: '/v1/doctor', options });
  }

  /**
   * Runs a schedule now, in addition to its times.
   *
   * A worker runs the job; its state shows the progress.
   */
  runSchedule(scheduleName: string, options: KeyedOptions = {}): Promise<AcceptedRun> {
    return this.call({ method: 'POST', path: `/v1/schedules/${segment(scheduleName)}/run`, takesKey: true, options });
  }

  /** Searches the valid facts about a user by words, the best match first. */
  searchFacts(
    userName: string,
    query: { limit?: number | undefined; q: string },
    options: CallOptions = {},
  ): Promise<Page<FactHit>> {
    return this.call({ method: 'GET', path: `/v1/users/${segment(userName)}/facts/search`, query, options });
  }

  /** Searches the memory of a campaign by words, the best match first. */
  searchMemory(
    campaignId: string,
    query: { kind?: 'edict' | 'record' | 'journal' | undefined; limit?: number | undefined; q: string },
    options: CallOptions = {},
  ): Promise<Page<MemoryHit>> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory/search`, query, options });
  }

  /**
   * Searches the texts of all campaigns, the newest first: prompts and results of tasks, posts, valid items of
   * the memory, results of tools, answers before a tool and interrupted ones, summaries of compactions, current
   * briefs with client contexts, current blackboards, and valid facts about users. Other answers are found as
   * the results of their tasks. Keys that are bound to campaigns find no facts.
   *
   * Words of four letters or more also find longer words that begin with them. Of a text, the first 65,536
   * characters are searched; of open tasks the newest 1,000, and as many of the tasks that ended in the last
   * minutes and are not in the index yet. If more than 10,000 texts of a kind and of a span of weeks match,
   * some of them are left out.
   */
  searchTexts(
    query: { agent?: string | undefined; campaign_id?: string | undefined; created_after?: string | undefined; created_before?: string | undefined; cursor?: string | undefined; kind?: 'task' | 'post' | 'memory' | 'message' | 'summary' | 'brief' | 'blackboard' | 'fact' | undefined; limit?: number | undefined; q: string },
    options: CallOptions = {},
  ): Promise<Page<TextHit>> {
    return this.call({ method: 'GET', path: '/v1/search', query, options });
  }

  /**
   * Replaces the named version of the document.
   *
   * The change is refused if another version is current; the detail of the problem names that version.
   */
  setBlackboard(campaignId: string, body: BlackboardSet, options: KeyedOptions = {}): Promise<BlackboardWritten> {
    return this.call({ method: 'PUT', path: `/v1/campaigns/${segment(campaignId)}/blackboard`, body, takesKey: true, options });
  }

  /**
   * Sets the limits of the budget of an agent, a user or a day, over all campaigns. A limit that is not named
   * stays; null removes it.
   *
   * A new budget begins with what the ledger has: of the agent, of the campaigns of the user, of the present
   * day. Without any limit the budget is removed. Waiting tasks for which there is space now continue. Days
   * begin at midnight of `scheduler.time_zone`. The budgets of agents and users count all calls of all time and
   * never begin again.
   */
  setBudget(body: BudgetChange, options: KeyedOptions = {}): Promise<SetBudgetOutput> {
    return this.call({ method: 'PATCH', path: '/v1/budgets', body, takesKey: true, options });
  }

  /** Shows the blackboard of a campaign. */
  showBlackboard(
    campaignId: string,
    query: { version?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Blackboard> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/blackboard`, query, options });
  }

  /**
   * Shows the summary of the archived posts of a campaign: their senders, numbers and times.
   *
   * The nightly cleanup archives posts by age and number (`board.keep_days`, `board.keep_posts`). `list_posts`
   * still lists them; turns no longer show them.
   */
  showBoardArchive(
    campaignId: string,
    query: { viewer?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<BoardArchive> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/posts/archive`, query, options });
  }

  /** Shows the progress of a bulk action. */
  showBulkAction(bulkActionId: string, options: CallOptions = {}): Promise<BulkAction> {
    return this.call({ method: 'GET', path: `/v1/bulk-actions/${segment(bulkActionId)}`, options });
  }

  /** Shows a campaign with its budget, its open sessions and its costs. */
  showCampaign(
    campaignId: string,
    query: { summary?: boolean | undefined } = {},
    options: CallOptions = {},
  ): Promise<CampaignOverview> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}`, query, options });
  }

  /** Shows the user for whom a campaign works; null if it has none. */
  showCampaignUser(campaignId: string, options: CallOptions = {}): Promise<UserOfCampaign> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/user`, options });
  }

  /** Shows a version of a campaign's brief, client context and parameters. */
  showCampaignVersion(
    campaignId: string,
    versionNumber: number,
    options: CallOptions = {},
  ): Promise<CampaignVersion> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/versions/${segment(versionNumber)}`, options });
  }

  /** Shows the outcome of a request to compact a session. */
  showCompaction(
    sessionId: string,
    query: { generation: number; job_id: number },
    options: CallOptions = {},
  ): Promise<CompactionAnswer> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/compaction`, query, options });
  }

  /** Shows what a call of a turn was sent: its texts, and the request byte for byte. */
  showContext(
    sessionId: string,
    query: { call?: number | undefined; turn?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<SentContext> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/context`, query, options });
  }

  /** Shows a delivery. */
  showDelivery(webhookDeliveryId: string, options: CallOptions = {}): Promise<Delivery> {
    return this.call({ method: 'GET', path: `/v1/webhook-deliveries/${segment(webhookDeliveryId)}`, options });
  }

  /** Shows the receipt of the erasure of a campaign. */
  showErasure(campaignId: string, options: CallOptions = {}): Promise<Erasure> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/erasure`, options });
  }

  /** Shows the answers of a recorded eval run, each with its task or its turn. */
  showEvalRun(campaignId: string, evalNumber: number, options: CallOptions = {}): Promise<EvalAnswers> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/evals/${segment(evalNumber)}`, options });
  }

  /** Shows a fact, including an ended one. */
  showFact(userName: string, fact: string, options: CallOptions = {}): Promise<Fact> {
    return this.call({ method: 'GET', path: `/v1/users/${segment(userName)}/facts/${segment(fact)}`, options });
  }

  /** Shows a file of an agent, a skill, a node or a flow template as it was written, with its problems. */
  showFile(fileKind: string, name: string, options: CallOptions = {}): Promise<SourceText> {
    return this.call({ method: 'GET', path: `/v1/files/${segment(fileKind)}/${segment(name)}`, options });
  }

  /** Shows a flow with the current tasks of its steps. */
  showFlow(flowId: string, options: CallOptions = {}): Promise<FlowDetail> {
    return this.call({ method: 'GET', path: `/v1/flows/${segment(flowId)}`, options });
  }

  /** Shows version, settings, migrations and sizes of the installation. */
  showInstallation(options: CallOptions = {}): Promise<Installation> {
    return this.call({ method: 'GET', path: '/v1/installation', options });
  }

  /** Shows a job with its payload and its attempts. */
  showJob(jobId: number, options: CallOptions = {}): Promise<JobDetail> {
    return this.call({ method: 'GET', path: `/v1/jobs/${segment(jobId)}`, options });
  }

  /** Shows a lane with its first jobs, in order. */
  showLane(laneName: string, options: CallOptions = {}): Promise<Lane> {
    return this.call({ method: 'GET', path: `/v1/lanes/${segment(laneName)}`, options });
  }

  /** Shows what a call for a summary or for facts was sent, by the number of its row in the ledger. */
  showLedgerContext(ledgerId: number, options: CallOptions = {}): Promise<SentContext> {
    return this.call({ method: 'GET', path: `/v1/ledger/${segment(ledgerId)}/context`, options });
  }

  /** Shows an item, also a revoked or expired one. */
  showMemory(
    campaignId: string,
    item: string,
    query: { version?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<MemoryItem> {
    return this.call({ method: 'GET', path: `/v1/campaigns/${segment(campaignId)}/memory/${segment(item)}`, query, options });
  }

  /** Shows what waits for a person, what runs now, and the activity of the last hours. */
  showOverview(
    query: { hours?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<InstallationOverview> {
    return this.call({ method: 'GET', path: '/v1/overview', query, options });
  }

  /**
   * Shows the text of a version of an agent's prompt.
   *
   * It is the text of the agent file alone. Skills, edicts and other parts of the system prompt belong to no
   * version: `show_context` of a turn has them.
   */
  showPromptVersion(agentName: string, version: string, options: CallOptions = {}): Promise<PromptText> {
    return this.call({ method: 'GET', path: `/v1/agents/${segment(agentName)}/versions/${segment(version)}`, options });
  }

  /**
   * Shows the provider's own transcript up to the answer of a turn, and compares it with the stored messages.
   *
   * Only for providers that keep the conversation themselves, such as Claude.
   */
  showProviderTranscript(
    sessionId: string,
    query: { turn?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<ProviderTranscript> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/provider-transcript`, query, options });
  }

  /** Shows one queue: one that has had a job, has a worker, or is paused. */
  showQueue(queueName: string, options: CallOptions = {}): Promise<Queue> {
    return this.call({ method: 'GET', path: `/v1/queues/${segment(queueName)}`, options });
  }

  /** Shows one schedule. */
  showSchedule(scheduleName: string, options: CallOptions = {}): Promise<ScheduleDetail> {
    return this.call({ method: 'GET', path: `/v1/schedules/${segment(scheduleName)}`, options });
  }

  /** Shows a session with its compactions and its last turns. */
  showSession(sessionId: string, options: CallOptions = {}): Promise<SessionDetail> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}`, options });
  }

  /**
   * Shows a task with its attempts; with `wait`, waits for its end first.
   *
   * An API key with the scope `enqueue` alone finds the tasks that keys of its name have added.
   */
  showTask(
    taskId: string,
    query: { wait?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<TaskDetail> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}`, query, options });
  }

  /**
   * Shows a turn with its calls, and the parts of the context that each of them was sent.
   *
   * A part that was left out states the reason.
   */
  showTurn(sessionId: string, turnNumber: number, options: CallOptions = {}): Promise<TurnDetail> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/turns/${segment(turnNumber)}`, options });
  }

  /** Shows a webhook. */
  showWebhook(webhookId: string, options: CallOptions = {}): Promise<Webhook> {
    return this.call({ method: 'GET', path: `/v1/webhooks/${segment(webhookId)}`, options });
  }

  /** Shows the message that webhooks receive about a task that has ended, to try a receiver out. */
  showWebhookMessage(taskId: string, options: CallOptions = {}): Promise<WebhookMessage> {
    return this.call({ method: 'GET', path: `/v1/tasks/${segment(taskId)}/webhook-message`, options });
  }

  /** Shows what workers run now, and what they ran in the last minutes. */
  showWorkerActivity(
    query: { minutes?: number | undefined; until?: string | undefined; worker_id?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<WorkerActivity> {
    return this.call({ method: 'GET', path: '/v1/workers/activity', query, options });
  }

  /** Starts a flow: adds all its tasks; each waits for the steps that it depends on. */
  startFlow(campaignId: string, body: NewFlow, options: KeyedOptions = {}): Promise<Flow> {
    return this.call({ method: 'POST', path: `/v1/campaigns/${segment(campaignId)}/flows`, body, takesKey: true, options });
  }

  /** States a fact about a user. The facts that it contradicts end, and stay in the history. */
  stateFact(userName: string, body: NewFact, options: KeyedOptions = {}): Promise<Fact> {
    return this.call({ method: 'POST', path: `/v1/users/${segment(userName)}/facts`, body, takesKey: true, options });
  }

  /** Sends a test delivery through a worker; the delivery shows the result. */
  testWebhook(webhookId: string, options: KeyedOptions = {}): Promise<Delivery> {
    return this.call({ method: 'POST', path: `/v1/webhooks/${segment(webhookId)}/test`, takesKey: true, options });
  }

  /** Undoes the current compaction of a session. */
  uncompactSession(sessionId: string, options: KeyedOptions = {}): Promise<Session> {
    return this.call({ method: 'POST', path: `/v1/sessions/${segment(sessionId)}/uncompact`, takesKey: true, options });
  }

  /**
   * Assembles the stored calls of a session again, and compares them with what was sent.
   *
   * Pages have up to 20 turns, with all of their calls, and the calls for summaries and facts that are charged
   * to them.
   */
  verifyContexts(
    sessionId: string,
    query: { cursor?: number | string | undefined; limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<Page<VerifiedCall>> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/context-checks`, query, options });
  }

  /** Shows the context of the model: the summary, if any, and the messages since. */
  viewSession(sessionId: string, options: CallOptions = {}): Promise<SessionView> {
    return this.call({ method: 'GET', path: `/v1/sessions/${segment(sessionId)}/view`, options });
  }
}
