// Objects of the API. Written by `python3 clients/generate`: do not edit.

/** A page of a list. `every` reads all pages. */
export interface Page<T> {
  items: T[];
  /** The `cursor` of the next page; null on the last one. */
  next?: string | null;
}

/** Codes of errors. Newer services may send further codes. */
export type ErrorCode =
  | 'agent_not_paused'
  | 'agent_paused'
  | 'ambiguous_credential'
  | 'ambiguous_id'
  | 'attachment_too_large'
  | 'bad_agent_file'
  | 'bad_argument'
  | 'bad_attachment'
  | 'bad_blackboard_key'
  | 'bad_body'
  | 'bad_budget_key'
  | 'bad_eval_name'
  | 'bad_fact'
  | 'bad_field'
  | 'bad_filter'
  | 'bad_flow_templates'
  | 'bad_forwarding'
  | 'bad_id'
  | 'bad_idempotency_key'
  | 'bad_inputs'
  | 'bad_instance'
  | 'bad_item_name'
  | 'bad_items'
  | 'bad_json'
  | 'bad_key'
  | 'bad_last_event_id'
  | 'bad_name'
  | 'bad_option'
  | 'bad_owner'
  | 'bad_parameters'
  | 'bad_query'
  | 'bad_result_schema'
  | 'bad_tags'
  | 'bad_templates'
  | 'bad_timetable'
  | 'bad_title'
  | 'bad_user'
  | 'bad_value'
  | 'bad_webhook_url'
  | 'being_cancelled'
  | 'blackboard_changed'
  | 'blackboard_too_large'
  | 'body_too_large'
  | 'broken_agent'
  | 'broken_node'
  | 'budget_exceeded'
  | 'built_in_schedule'
  | 'campaign_changed'
  | 'campaign_closed'
  | 'conflict'
  | 'context_not_exact'
  | 'context_not_stored'
  | 'count_differs'
  | 'credential_not_paused'
  | 'database_busy'
  | 'database_conflict'
  | 'database_full'
  | 'database_read_only'
  | 'database_unreachable'
  | 'duplicate_header'
  | 'empty_budget'
  | 'empty_filter'
  | 'empty_text'
  | 'entry_written'
  | 'erased'
  | 'expired'
  | 'fact_ended'
  | 'fact_known'
  | 'facts_full'
  | 'flow_ended'
  | 'flow_not_paused'
  | 'flow_paused'
  | 'foreign_origin'
  | 'headers_too_large'
  | 'idempotency_conflict'
  | 'idempotency_not_supported'
  | 'instance_taken'
  | 'internal'
  | 'item_changed'
  | 'item_revoked'
  | 'key_expired'
  | 'key_is_bound'
  | 'key_name_taken'
  | 'key_replaced'
  | 'key_revoked'
  | 'metadata_too_long'
  | 'migrations_pending'
  | 'missing_scope'
  | 'no_audience'
  | 'no_experiment_budget'
  | 'no_message'
  | 'no_object'
  | 'no_parent'
  | 'no_tasks'
  | 'no_words'
  | 'not_erased'
  | 'not_json'
  | 'nothing_runs'
  | 'nothing_to_undo'
  | 'nul_in_text'
  | 'option_not_supported'
  | 'queue_full'
  | 'same_dimension'
  | 'session_busy'
  | 'session_closed'
  | 'session_expired'
  | 'shutting_down'
  | 'starting'
  | 'task_ended'
  | 'task_not_ended'
  | 'task_not_waiting'
  | 'task_requeued'
  | 'text_too_long'
  | 'timeout'
  | 'too_many_answers'
  | 'too_many_bad_keys'
  | 'too_many_edicts'
  | 'too_many_lines'
  | 'too_many_names'
  | 'too_many_predecessors'
  | 'too_many_requests'
  | 'too_many_reruns'
  | 'too_many_tasks'
  | 'too_many_tasks_in_flow'
  | 'too_many_versions'
  | 'too_many_waiting'
  | 'too_many_waiting_per_client'
  | 'turn_not_done'
  | 'turn_refused'
  | 'turn_runs'
  | 'unauthenticated'
  | 'unknown_agent'
  | 'unknown_archive'
  | 'unknown_attachment'
  | 'unknown_bulk_action'
  | 'unknown_call'
  | 'unknown_campaign'
  | 'unknown_compaction'
  | 'unknown_delivery'
  | 'unknown_eval_run'
  | 'unknown_fact'
  | 'unknown_file'
  | 'unknown_flow'
  | 'unknown_host'
  | 'unknown_id'
  | 'unknown_item'
  | 'unknown_job'
  | 'unknown_key'
  | 'unknown_lane'
  | 'unknown_names'
  | 'unknown_node'
  | 'unknown_post'
  | 'unknown_predecessor'
  | 'unknown_queue'
  | 'unknown_schedule'
  | 'unknown_session'
  | 'unknown_sign_in'
  | 'unknown_step'
  | 'unknown_task'
  | 'unknown_task_file'
  | 'unknown_template'
  | 'unknown_turn'
  | 'unknown_version'
  | 'unknown_webhook'
  | 'uri_too_long'
  | 'webhook_disabled';

export interface AcceptedCompaction {
  /** The compaction that the session has shown so far; 0: its whole transcript. */
  generation: number;
  job_id: number;
  session_id: string;
}

export interface AcceptedRun {
  job_id: number;
  schedule: string;
  /** Of the job. */
  state: string;
}

/** The task that is added each time. The agent is looked up at that time, because its file may have changed. */
export interface AddTask {
  /** Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`. */
  agent: string;
  campaign_id: string;
  instance?: string;
  prompt: string;
  session?: SessionMode | null;
}

/** In the order of the request. */
export interface AddedMany {
  /** Number of new tasks. */
  created: number;
  items: BulkAdded[];
}

export interface AddedTask extends Task {
  /** False: an earlier call with the same idempotency key made it. */
  created: boolean;
  metadata?: Record<string, unknown>;
  tags?: string[];
}

export interface Agent extends AgentGrants {
  apply_percent?: number | null;
  /** Budget of one task. */
  budget: Limit;
  /** The models that may answer, in the order of preference: at least one. */
  chain: AgentModel[];
  /** The agent's purpose in one line, which other agents read in their roster. */
  description: string;
  /** Maximum number of posts of the board that a turn shows at once; 0 for none. */
  history_window: number;
  /** The lead answers posts without an addressee. */
  lead: boolean;
  /** True: requests to the agent are read for facts about the campaign's user. */
  learns_facts: boolean;
  /** True: `@name` in its answers on the board creates tasks for others. Default: true for the lead only. */
  mentions: boolean;
  name: string;
  /** Effect of that budget on a task that reaches it. */
  on_limit: OnLimit;
  options: AgentOptions;
  prepare_percent?: number | null;
  /**
   * SHA-256 of the prompt, in hex. A session made with another prompt is rebuilt; the lead's also when the
   * roster changes.
   */
  prompt_hash: string;
  /** Tokens of the window that are left for the answer. */
  reserve_tokens?: number | null;
  /** The JSON Schema that answers to its tasks have to match. A task or a step of a flow may have another one. */
  result_schema?: Record<string, unknown> | null;
  /** A session whose context has this size is rebuilt before its next turn. */
  rotate_at_tokens?: number | null;
  /** Default session mode of its tasks. */
  session: SessionMode;
  skills: string[];
  /** The model to ask for a summary when its own has failed twice. */
  summariser?: string | null;
  /** True: the agent is told these facts with each task. */
  told_facts: boolean;
  ttl_days?: number | null;
  /** On Claude: the CLI is started again after each turn, and waits for the next one. */
  warm: boolean;
  window_tokens?: number | null;
  /** True: the agent may write such facts, with the tool `facts_write`. */
  writes_facts: boolean;
}

export interface AgentFileProblem {
  file: string;
  /** The text to write instead. */
  fix: string;
  /** The key of the front matter. */
  key?: string | null;
  /** The line from 1. Null: the file as a whole. */
  line?: number | null;
  /** The problem. */
  message: string;
}

export interface AgentGrants {
  blackboard: BlackboardGrants;
  /** Rules of tools that are never allowed, even if another rule grants them. */
  disallowed_tools: string[];
  /** Flow templates that the agent may start, if it may start any. Null: all. */
  flows?: string[] | null;
  /** Maximum number of model calls in one turn. */
  max_turns?: number | null;
  mcp_servers: string[];
  permission_mode: PermissionMode;
  /** Rules of allowed tools: `Read`, `Bash(git log:*)`, `mcp__board__post`. Other tools cannot be used. */
  tools: string[];
  /** True: the agent works in a folder that it shares with the campaign's other agents of this setting. */
  workspace: boolean;
}

/** A model that may answer, with the conditions under which a turn moves on to the next one. */
export interface AgentModel {
  /** Consecutive failures. Null: `agents.fallback_after`. */
  errors?: number | null;
  /** Highest median time to the first token of recent calls. Null: no limit. */
  latency_secs?: number | null;
  /** Longest wait for a rate limit, a paused credential or a busy model. Null: `agents.fallback_secs`. */
  limit_secs?: number | null;
  /** Highest charge of the first call of a turn, in millionths of the currency. Null: no limit. */
  max_charge_micros?: number | null;
  /** Null: the default model of the provider. */
  model?: string | null;
  provider?: Provider | null;
}

export interface AgentOptions {
  seed?: number | null;
  temperature?: number | null;
  think?: Think | null;
  top_p?: number | null;
}

export interface AgentPause {
  agent: string;
  /** The campaign in which the pause holds; null: all campaigns. */
  campaign_id?: string | null;
  id: string;
  paused_at: string;
  paused_by: string;
  reason: string;
  /** Null while the pause holds. */
  resumed_at?: string | null;
  resumed_by?: string | null;
}

export interface AgentPaused extends AgentPause {
  /** False: the agent was paused there already, for the reason that is shown. */
  changed: boolean;
}

/**
 * Data of `agent.paused`. A person has paused an agent: it begins no more turns in the campaign, or in all
 * campaigns if `campaign_id` is null.
 */
export interface AgentPausedData {
  /** Name of the agent. */
  agent: string;
  /** Reason of the pause, as the person gave it. */
  reason: string;
}

export interface AgentPauses {
  items: AgentPause[];
}

export interface AgentResumed extends AgentPause {
  /** The reason of the pause in all campaigns that still holds. */
  paused_everywhere_because?: string | null;
  /** After the end of a pause in all campaigns: the campaigns in which the agent is still paused. */
  paused_in?: string[];
  /** Number of held tasks that are on the queue again. */
  released: number;
}

/** Data of `agent.resumed`. A pause of an agent has ended: a person has resumed it. */
export interface AgentResumedData {
  /** Name of the agent. */
  agent: string;
  /** Reason of the pause, as the person gave it. */
  reason: string;
}

export interface AgentStanding extends AgentStatus {
  also_paused?: AgentPause | null;
  pause?: AgentPause | null;
  wait?: AgentWait | null;
}

export type AgentState = 'idle' | 'working' | 'error' | 'waiting' | 'limited';

/** Status of an agent or of one of its instances. */
export interface AgentStatus {
  agent: string;
  instance: string;
  /** Number of tasks that are scheduled for later. */
  later?: number;
  /** The time of the first of them. */
  later_at?: string | null;
  /** The open session of its conversation. */
  session_id?: string | null;
  state: AgentState;
  /** The running task. */
  task_id?: string | null;
  /** The tool that its turn is calling. */
  tool?: string | null;
  /** Start of that call. */
  tool_since?: string | null;
  /** Expected end of the limit, if the agent is limited and the end is known. */
  until?: string | null;
  /** Number of waiting tasks, without those scheduled for later. */
  waiting: number;
}

export interface AgentStatuses {
  items: AgentStanding[];
}

/** The cause for which an agent is limited. */
export interface AgentWait {
  cause: AgentWaitCause;
  /** The model, if its provider is waited for. */
  model?: string | null;
  /**
   * Name of the credential or the provider; of a budget, its owner and key: `agent/writer`, `campaign/` and an
   * id, `day`.
   */
  subject?: string | null;
}

export type AgentWaitCause = 'credential' | 'provider' | 'budget' | 'rate_limit' | 'other';

export interface Agents {
  /** The model of agents that name none, on the default provider. Empty: unknown. */
  default_model?: string;
  /** The provider of agents that name none. */
  default_provider: Provider;
  items: Agent[];
  nodes: Node[];
  /** Problems of files. The agents of these files are refused. */
  problems: AgentFileProblem[];
  skills: Skill[];
}

/** The result of a reset. */
export interface AgentsReset {
  /** Null: all agents. */
  agent?: string | null;
  campaign_id: string;
  /** True: the successors remember nothing. */
  fresh: boolean;
  /** The sessions whose next tasks open successors. */
  session_ids: string[];
}

/** All templates: there are a handful. */
export interface AllTemplates {
  /** Those that cannot be started, and why. */
  broken: BrokenTemplate[];
  items: Template[];
}

/** Money is in micro-units: 1,000,000 are one unit of the configured currency. */
export interface Amount {
  micros: number;
  tokens: number;
}

/** The result of an answer. It comes from a task, or from a rerun of a turn. */
export interface AnswerResult {
  case: string;
  /** Number of checks that it failed. */
  failed_checks: number;
  /** Cost in millionths. */
  micros: number;
  /** Null: it is missing, or not judged. */
  passed?: boolean | null;
  /** From 1. */
  repetition: number;
  /** The session of the turn that was made again. */
  session_id?: string | null;
  task_id?: string | null;
  tokens: number;
  took_ms?: number | null;
  turn?: number | null;
  variant: string;
}

export interface ApiKey {
  /** The campaigns that it is bound to; `null` for a key that reaches all. */
  campaigns?: string[] | null;
  created_at: string;
  /** The creator, as the audit log names actors. */
  created_by: string;
  expires_at?: string | null;
  /** The middle part of the key's text, which identifies a leaked key. */
  handle: string;
  id: string;
  /** Time of the last use, up to a minute late. */
  last_used_at?: string | null;
  name: string;
  /** The successor that a rotation has made. */
  replaced_by?: string | null;
  revoked_at?: string | null;
  scopes: Scope[];
}

/** A migration that was applied. */
export interface AppliedMigration {
  description: string;
  installed_on: string;
  version: number;
}

/** The messages that one compaction has replaced. */
export interface Archive {
  compacted_at: string;
  /** First and last place of the replaced messages. */
  from_seq: number;
  id: string;
  /** The node of the session. */
  node?: string | null;
  /** The generation of the compaction. */
  number: number;
  /** The archive whose replacement stood in front of these messages and was replaced with them; 0: none. */
  parent: number;
  /** The first of these places that the summary covers; null: it covers all of them. */
  summarised_from_seq?: number | null;
  to_seq: number;
  tokens_after?: number | null;
  tokens_before: number;
  trigger: CompactionCause;
  /** Time of an undo, after which the messages are shown again. */
  undone_at?: string | null;
}

export interface ArchivedSender {
  first_at: string;
  last_at: string;
  posts: number;
  sender: string;
}

/** Each is a compaction: all of them are one page. */
export interface Archives {
  items: Archive[];
}

/** A thing that waits for a person. */
export interface Attention {
  agent?: string | null;
  /** The reason. Of a failed task, its error. */
  because: string;
  /** The budget that refuses a call, by its owner and key: `agent/writer`, `campaign/` and an id, `day`. */
  budget?: string | null;
  campaign_id?: string | null;
  /** The command that resolves it. */
  command: string;
  /** Number of jobs or tasks that are affected, where that is known. */
  count?: number | null;
  /** Of a failed step: the flow with which it is retried. */
  flow_id?: string | null;
  /**
   * Of a failed task: number of its group in this list, from 1. Tasks with the same number failed with the same
   * error, or at the same budget.
   */
  group?: number | null;
  kind: AttentionKind;
  /** The subject in words: the beginning of the prompt, or a name. */
  name: string;
  /**
   * Of a task that failed at a budget which would refuse a retry, too: the present amounts, if they are not
   * those of the error.
   */
  present?: string | null;
  /**
   * Of a task that failed at a budget of several tasks: that budget, like `budget`, even if it allows a retry
   * now.
   */
  refused_by?: string | null;
  /** Of deliveries that failed for good: the time of the oldest one, from which a replay sends them again. */
  replay_since?: string | null;
  since?: string | null;
  /** Of a failed step: its name, from which the flow is retried. */
  step?: string | null;
  /**
   * Id of the task, the campaign or the webhook, or name of the queue, the lane, the agent, the credential, the
   * model or the schedule.
   */
  subject: string;
  /** The command that comes after it, if it takes two. */
  then?: string | null;
  /**
   * Of the oldest listed task of those that failed with the same error, or at the same budget: number of older
   * ones, which are not listed.
   */
  unlisted?: number | null;
  /** The end, if it resolves itself. */
  until?: string | null;
}

export type AttentionKind =
  | 'failed_task'
  | 'held_jobs'
  | 'paused_queue'
  | 'paused_campaign'
  | 'paused_agent'
  | 'paused_credential'
  | 'spent_budget'
  | 'spent_task_budget'
  | 'busy_model'
  | 'provider_wait'
  | 'held_lane'
  | 'deserted_queue'
  | 'dead_jobs'
  | 'broken_agent_files'
  | 'disabled_webhook'
  | 'failing_webhook'
  | 'failed_deliveries'
  | 'paused_cleanup'
  | 'overdue_cleanup'
  | 'old_transaction';

/** A line of the audit log. */
export interface AuditEntry {
  /** `campaign.create`, `task.cancel` and so on. Newer versions may add actions. */
  action: string;
  actor: string;
  actor_id?: string | null;
  /** `key`, `admin_key`, `cli`, `agent`, `system` or `anonymous`. */
  actor_kind: string;
  at: string;
  data: unknown;
  id: number;
  peer?: string | null;
  subject: string;
  subject_kind: string;
}

/** A model whose provider is waited for. */
export interface AwaitedModel {
  model: string;
  provider: string;
}

export type BTreeMap = Record<string, string | string[]>;

export interface Blackboard {
  campaign_id: string;
  changed_at?: string | null;
  document: Record<string, unknown>;
  /** Number of changes. 0: the blackboard is still empty. */
  version: number;
}

/** A change of a blackboard. */
export interface BlackboardChange {
  /** An operator as in the audit log, or an agent as `agent/instance`. */
  actor: string;
  agent?: string | null;
  /** Size of the patch, or of the document that was set. */
  bytes: number;
  changed_at: string;
  kind: BlackboardChangeKind;
  /** The patch; null if it is long: then compare the versions before and after it. */
  patch?: Record<string, unknown> | null;
  /** Changed paths as JSON Pointers; at most 100. */
  paths: string[];
  task_id?: string | null;
  turn?: number | null;
  /** The version that the change made. */
  version: number;
}

export type BlackboardChangeKind = 'set' | 'patch';

/**
 * Data of `blackboard.changed`. A person or an agent has changed the blackboard. `task_id` is that of the turn
 * that changed it.
 */
export interface BlackboardChangedData {
  /** Agent that changed it. Null for people and programs. */
  agent?: string | null;
  /** Number of places that changed. */
  paths: number;
  /** Version of the document after the change. */
  version: number;
}

/**
 * Paths that are not covered are neither shown nor changed. Permission to write a path does not include reading
 * it.
 */
export interface BlackboardGrants {
  /** JSON Pointers; `/` is the whole document. */
  read: string[];
  write: string[];
}

export interface BlackboardPatch {
  /** The change is refused unless this is the current version. */
  expected_version?: number | null;
  /** A JSON Merge Patch (RFC 7396): null removes a key. */
  patch: Record<string, unknown>;
}

export interface BlackboardSet {
  document: Record<string, unknown>;
  /** The version that it replaces; 0 before the first one. */
  expected_version: number;
}

export interface BlackboardWritten extends Blackboard {
  /** False: the document was the same already, and keeps its version. */
  changed: boolean;
}

/** The archive of a board, as one reader sees it. */
export interface BoardArchive {
  /** Time of the last change. Null if nothing was archived. */
  archived_at?: string | null;
  /** The last archived place of the board; 0 if nothing was archived. */
  archived_seq: number;
  /** Number of archived posts that the reader sees. */
  posts: number;
  /** Their senders, by name. */
  senders: ArchivedSender[];
}

/** A template that cannot be started. */
export interface BrokenTemplate {
  /** It comes with Dalsegno, and names agents that this installation does not have. */
  built_in: boolean;
  name: string;
  problems: AgentFileProblem[];
  /** Its steps, as far as the file names them with their agents. */
  steps?: FlowStepOutline[];
}

export interface Budget {
  /** The budget that pays for reruns. The amounts above leave it out. */
  experiments?: ExperimentBudget;
  limit: Limit;
  /** Effect of the limit on tasks: they wait until there is space, or fail. */
  on_limit?: OnLimit;
  reserved: Amount;
  /** Spending at which a warning is written, once. */
  soft?: Limit;
  spent: Amount;
}

export interface BudgetChange {
  /** The name of the agent or the user; none for the day. */
  key?: string | null;
  micros?: number | null;
  /** Effect of the limits on tasks: they wait until there is space, or fail. */
  on_limit?: 'wait' | 'fail' | null;
  /** Kind of owner whose budget is set here. */
  owner: 'agent' | 'user' | 'day';
  /** Spending in money at which a warning is written, once per day for a day. */
  soft_micros?: number | null;
  /** Spending in tokens at which a warning is written, once per day for a day. */
  soft_tokens?: number | null;
  tokens?: number | null;
}

/** Kind of owner of a budget that is not that of a task. */
export type BudgetOwner = 'agent' | 'campaign' | 'day' | 'user';

/**
 * Data of `budget.refused`. A task has failed, because a budget has no space for its next call. If a turn was
 * running, `turn.failed` comes before, and `session_id` is that of the turn.
 */
export interface BudgetRefusedData {
  /** Error of the task: the budget, its limit and what is left. */
  error: string;
}

/**
 * Data of `budget.warning`. A budget has reached its soft limit, once per period. `campaign_id` and `task_id`
 * are those of the call that reached it.
 */
export interface BudgetWarningData {
  /** Id of the campaign or task, name of the agent or user, empty for the budget of a day. */
  key: string;
  /** Limit. Null: none. */
  limit: { micros?: number | null; tokens?: number | null; };
  /** Owner of the budget. */
  owner: 'agent' | 'campaign' | 'day' | 'task' | 'user';
  /** Day of a budget that begins again each day; otherwise null. */
  period?: string | null;
  /** Soft limit. Null: none. */
  soft: { micros?: number | null; tokens?: number | null; };
  /** Amount that is spent. */
  spent: { micros?: number | null; tokens?: number | null; };
}

export interface BulkAction {
  action: TaskAction;
  created_at: string;
  /** Tasks to which the action was applied. */
  done: number;
  ended_at?: string | null;
  /** The error, if the action has failed. */
  error?: string | null;
  filter: TaskFilter;
  id: string;
  /** The job that carries the action out: `/v1/jobs/{id}` explains why it waits or failed. */
  job_id: number;
  /** Tasks that matched at the request. */
  matched: number;
  reason: string;
  /** Skipped tasks: they had changed meanwhile. */
  skipped: number;
  started_at?: string | null;
  state: BulkActionState;
}

export interface BulkActionPreview {
  /** Tasks that match now. */
  matched: number;
  /**
   * Those of `tasks` whose call their budget does not allow, so that they would fail again at once or wait for
   * it, and those that the action leaves out, because they are steps of flows and are retried with these. Empty
   * for a cancellation.
   */
  refused?: RefusedRetry[];
  /** The first of them, at most 20. */
  tasks: ListedTask[];
}

export type BulkActionState = 'queued' | 'running' | 'done' | 'cancelled' | 'failed';

/** One of the added tasks, in the order of the request. */
export interface BulkAdded {
  /** False if an earlier call, or an earlier item of this one, created the task under the same idempotency key. */
  created: boolean;
  id: string;
}

/** One task of a bulk request. */
export interface BulkTask {
  /** Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`. */
  agent: string;
  /** Files that the task is given with its prompt: images, PDF or text, or files of other tasks of the campaign. */
  attachments?: NewAttachment[];
  budget?: Limit;
  /** Tasks to wait for. The task runs when all of them have ended, and gets their results. */
  depends_on?: TaskLink[];
  /**
   * The flow templates that the agent may start in the task; an empty list: none. By default those of the
   * agent's file.
   */
  flow_templates?: string[] | null;
  /** Idempotency key: the same request under the same key returns the same task. */
  idempotency_key?: string | null;
  instance?: string;
  /** Keys and values to find the task by; at most 4096 bytes of JSON. */
  metadata?: Record<string, unknown>;
  /** Node that the task belongs to: the name of the node's file. By default the session stays at its node. */
  node?: string | null;
  /** Reaction to a failed or cancelled task in `depends_on`. */
  on_failure?: OnFailure;
  /**
   * Named values that its calls contain, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON.
   * They win over those of the campaign.
   */
  parameters?: Record<string, unknown>;
  /** Priority; 0 is the most urgent. */
  priority?: number | null;
  prompt: string;
  /**
   * JSON Schema that the answer has to match, at most 32768 bytes. The result is then JSON, too. By default
   * that of the agent's file.
   */
  result_schema?: Record<string, unknown> | null;
  run_at?: string | null;
  session?: SessionMode | null;
  tags?: string[];
  /**
   * Seconds that the answer may take, from now, from `run_at` or from the end of the tasks that it waits for:
   * 3600 to 604800. Providers with a batch API are then asked for it at a lower price.
   */
  within_secs?: number | null;
}

/** The context of a call, as its manifest records it. */
export interface CallContext {
  /** Number of the call in its turn, from 1. */
  call: number;
  /** The provider's own count of the prompt. Null if it reports none. */
  counted_tokens?: number | null;
  created_at: string;
  /** Estimate of the service before the call, for all parts that are sent. */
  estimated_tokens: number;
  /** In the order in which they are sent. */
  parts: ContextPart[];
}

export interface CalledAgent {
  agent: string;
  instance: string;
  task_id: string;
}

export interface Campaign {
  brief: string;
  client_context?: string | null;
  closed_at?: string | null;
  created_at: string;
  id: string;
  /** Its texts are erased, or an erasure was requested. */
  is_erased?: boolean;
  metadata: Record<string, unknown>;
  name: string;
  /** Named values that each call contains. */
  parameters?: Record<string, unknown>;
  status: CampaignStatus;
  tags: string[];
  /** Number of the current version of brief and client context, from 1. */
  version?: number;
}

export interface CampaignDiff {
  /** The brief with its changes. Empty if both versions have the same. */
  brief: WordChange[];
  campaign_id: string;
  /** The same for the client context. */
  client_context: WordChange[];
  from: number;
  /** The same for the parameters as JSON. */
  parameters?: WordChange[];
  to: number;
}

export interface CampaignEdit {
  brief?: string | null;
  /** Null removes it. */
  client_context?: string | null;
  /** The edit is refused unless this is the current version. */
  expected_version?: number | null;
  /** Parameters by name; null removes one, others stay. */
  parameters?: Record<string, unknown> | null;
}

/** Data of `campaign.edited`. Brief, client context or parameters of a campaign have a new version. */
export interface CampaignEditedData {
  /** Number of the new version. */
  version: number;
}

/**
 * Data of `campaign.erasing`. The erasure of a campaign has cancelled some of its open tasks. The erasure
 * removes the event with the campaign.
 */
export interface CampaignErasingData {
  /** Tasks that were cancelled in this step. */
  cancelled_tasks: number;
  /** Tasks that have not ended yet. */
  open_tasks: number;
}

export interface CampaignOverview extends Campaign {
  budget?: Budget | null;
  /** Null unless the campaign is paused. */
  pause_reason?: string | null;
  paused_at?: string | null;
  /** The author of the pause, as in the audit log. Null unless the log has it. */
  paused_by?: string | null;
  /** Open sessions, the newest first, at most one page. */
  sessions: Session[];
  /** The ledger, by agent, model and purpose. */
  usage: UsageTotal[];
}

export type CampaignStatus = 'active' | 'paused' | 'closed';

export interface CampaignUser {
  /** Requests before this time are not read for facts. */
  since: string;
  user: string;
}

/** A version of the texts and parameters that all calls of a campaign contain. */
export interface CampaignVersion {
  brief: string;
  campaign_id: string;
  changed_at: string;
  /**
   * The author, as the audit log names them. Null: the first version of a campaign that was created in SQL or
   * by an older service.
   */
  changed_by?: string | null;
  client_context?: string | null;
  parameters?: Record<string, unknown>;
  version: number;
}

/** A version in a list, without its texts. */
export interface CampaignVersionSummary {
  brief_bytes: number;
  changed_at: string;
  changed_by?: string | null;
  /** Null: it has no client context. */
  client_context_bytes?: number | null;
  version: number;
}

export interface CancelFlow {
  reason?: string;
}

export interface CancelJob {
  reason?: string;
}

export interface CancelTask {
  reason?: string;
}

/** Number of tasks that were cancelled together with another task or with their flow. */
export interface CancelledBelow {
  /** Tasks that did not run and have ended. */
  cancelled: number;
  /** Tasks that run; their workers were asked to stop. */
  stopping: number;
}

/** A flow after its cancellation. */
export interface CancelledFlow extends Flow {
  /** Counts of the cancelled tasks, including those that depend on them. */
  cancel: CancelledBelow;
  /** Number of its tasks that had ended before. */
  had_ended: number;
}

/** Result of the cancellation of a job. */
export interface CancelledJob {
  cancel: JobCancelled;
  id: number;
  task?: CancelledTask | null;
}

/** Result of the cancellation of a task, with its id. */
export interface CancelledTask extends TaskCancellation {
  task_id: string;
}

/** The entry of its chain that a turn was given to, and the earlier ones that it has skipped. */
export interface ChainChoice {
  /** `provider/model`. */
  entry: string;
  skipped: SkippedEntry[];
}

export interface ChangedJob {
  id: number;
  /** It is in this state now. */
  state: string;
}

/** The charge of a turn. */
export interface Charge {
  /** Of these, tokens that are read from a cache. */
  cached_tokens: number;
  calls: number;
  /** Null: the price is unknown. */
  cost_micros?: number | null;
  /** Input of all calls, with the tokens that are read from a cache. */
  input_tokens: number;
  output_tokens: number;
}

/** The range of the charge of a turn. At least nine of ten turns are expected in it. */
export interface ChargeRange {
  high: Charge;
  likely: Charge;
  low: Charge;
}

/** Turns by the proof that the model saw the history. */
export interface CheckCounts {
  no_history: number;
  /** Turns without an answer, and those of earlier versions. */
  not_checked: number;
  not_provable: number;
  /** Answers without the history: rejected, or flagged. */
  not_seen: number;
  seen: number;
}

/** A turn with the proof that the model saw the history. */
export interface CheckedTurn {
  agent: string;
  /** The provider's own count of it. */
  counted_tokens?: number | null;
  ended_at: string;
  /** Tokens of the first prompt. */
  estimated_tokens?: number | null;
  flags: string[];
  history_check?: HistoryCheck | null;
  instance: string;
  model: string;
  provider: string;
  session_id: string;
  state: TurnState;
  turn: number;
}

/** Reason for the removal of a session. */
export type CleanupBecause = 'expired' | 'closed';

/** Sessions of one provider that would be removed for one reason. */
export interface CleanupGroup {
  because: CleanupBecause;
  bytes: number;
  messages: number;
  /** The earliest expiry or closing. */
  oldest: string;
  provider: string;
  sessions: number;
}

export interface CleanupJob {
  job_id: number;
  /** Of the job. */
  state: string;
}

export interface CleanupPreview {
  /** Bytes of texts and stored transcripts. */
  bytes: number;
  /** Events of the feed that are old enough. */
  events: number;
  groups: CleanupGroup[];
  keep_days: KeepDays;
  /** Due sessions that would be kept, by reason. */
  kept: Record<string, number>;
  /** Items of memories that were revoked or have expired long enough ago. */
  memory_items: number;
  messages: number;
  /** Old posts of boards that would be archived. */
  posts_archived?: number;
  /**
   * Old posts that would stay on their boards: an agent has not seen them or one before them, or an open task
   * answers one.
   */
  posts_held?: number;
  sessions: number;
  /** Expired sessions whose summary would be kept for their successors. */
  summaries_kept: number;
  /** Kept summaries that would be removed, because no task has used them in time. */
  summaries_removed: number;
}

export interface CleanupRun {
  bytes: number;
  duration_secs?: number | null;
  /** Null while it runs. */
  ended_at?: string | null;
  /** Removed events of the feed. */
  events: number;
  folders: number;
  host: string;
  id: number;
  job_id?: number | null;
  /** Due sessions that were kept, by reason. */
  kept: unknown;
  /** `sessions`, or `folders` of one host. */
  kind: string;
  /** Removed items of memories, which were revoked or had expired long enough ago. */
  memory_items: number;
  messages: number;
  outcome?: string | null;
  /** Archived posts of boards. */
  posts_archived: number;
  /** Removed sessions by provider and reason. */
  removed: unknown;
  /**
   * The caller who asked for it: `cli:ann@vm`, `key:ci:3f0c2a9be1d4`, or `schedule` if its schedule ran it.
   * Null: unknown, as in some runs of older versions, or a removal of folders.
   */
  requested_by?: string | null;
  sessions: number;
  started_at: string;
  /** Expired sessions whose summary was kept for their successors. */
  summaries_kept: number;
  /** Removed summaries, which no task had used in time. */
  summaries_removed: number;
}

export interface Compaction {
  applied_at?: string | null;
  cause: CompactionCause;
  created_at: string;
  from_seq: number;
  generation: number;
  model?: string | null;
  /** The node of the session, if it stood at one: the summary then covers only the exchanges there. */
  node?: string | null;
  outcome: CompactionOutcome;
  /** The generation whose view was compacted; 0 is the whole transcript. */
  parent: number;
  pins: unknown;
  /**
   * Texts of people in the compacted turns that are kept word for word: whole prompts, sentences of others, and
   * the number of prompts that are only in the archive. Null for compactions of earlier versions.
   */
  prompts?: Record<string, unknown> | null;
  refusals: unknown;
  /** The way in which the summary was made: first, retry, alternate, extract. */
  rung?: string | null;
  summary?: string | null;
  to_seq: number;
  tokens_after?: number | null;
  tokens_before: number;
  turn: number;
  undone_at?: string | null;
}

export interface CompactionAnswer {
  answer?: CompactionResult | null;
  job_id: number;
  session_id: string;
}

/** The cause of a compaction. */
export type CompactionCause = 'auto' | 'overflow' | 'manual' | 'inherited';

/** A compaction, with the places of all that it replaced. */
export interface CompactionComparison {
  /** Summaries that were rejected before. */
  attempts: RejectedAttempt[];
  compaction: Compaction;
  /** The summary that was replaced together with the messages. */
  earlier_summary?: string | null;
  /** True if the session uses it now. */
  is_current: boolean;
  /**
   * Prompts that the earlier compaction had kept, and the replaced messages, in order. Empty without an
   * accepted summary.
   */
  messages: ReplacedMessage[];
  /** Number of values that are not in the list. */
  more_values: number;
  session_id: string;
  /**
   * Exact values of what was replaced, such as names and amounts, the most important first. Empty without an
   * accepted summary.
   */
  values: ExactValue[];
}

export type CompactionOutcome = 'prepared' | 'applied' | 'stale' | 'refused';

export type CompactionResult = { generation: number; outcome: 'compacted'; } | { because: string; outcome: 'nothing'; } | { because: string; outcome: 'failed'; };

export interface ComparedContext {
  /** The provider's own count of the prompt. Null if it reports none. */
  counted_tokens?: number | null;
  estimated_tokens: number;
  model: string;
  provider: string;
  session_id: string;
  turn: number;
}

/** The difference between the first calls of two turns. */
export interface ContextDiff {
  from: ComparedContext;
  /** Parts that differ, in the order of `to`, then those that are gone. */
  parts: PartDiff[];
  /**
   * Bytes at the beginning of system text, tools and messages that both have: a provider can reuse its cache of
   * them. 0 if the models differ. Null if one of the two cannot be assembled.
   */
  shared_bytes?: number | null;
  to: ComparedContext;
  /** Bytes of system text, tools and messages of `to`. */
  to_bytes?: number | null;
}

/** A part of a context, sent or left out. */
export interface ContextPart {
  /** Of posts: the number of posts of each trust level. */
  by_trust?: Record<string, number>;
  /** The row, file or version that the part was made from. */
  id?: string | null;
  kind: ContextPartKind;
  /** The same in words. */
  reason: string;
  sent: boolean;
  /** SHA-256 of the text. Null if the text was not loaded because it is not sent. */
  sha256?: string | null;
  span?: ContextPartSpan | null;
  /** Estimated tokens. */
  tokens: number;
  trust: ContextPartTrust;
  /** The reason why the part is sent or left out. */
  why: ContextPartReason;
}

export type ContextPartKind =
  | 'agent_prompt'
  | 'fence_rules'
  | 'skill'
  | 'campaign_brief'
  | 'client_context'
  | 'edict'
  | 'fact'
  | 'roster'
  | 'summary'
  | 'transcript'
  | 'synthetic_results'
  | 'notice'
  | 'posts'
  | 'statuses'
  | 'parameters'
  | 'blackboard'
  | 'result_schema'
  | 'results'
  | 'task'
  | 'attachment'
  | 'tools'
  | 'rounds';

export type ContextPartReason =
  | 'every_call'
  | 'stands_in'
  | 'recent_history'
  | 'completes_interrupted_call'
  | 'session_restored'
  | 'since_cursor'
  | 'this_turn'
  | 'waited_for'
  | 'folded'
  | 'not_inherited'
  | 'orphaned_result'
  | 'system_in_history'
  | 'empty'
  | 'is_the_task'
  | 'own_answer'
  | 'is_a_task'
  | 'shown_before'
  | 'beyond_window'
  | 'no_room'
  | 'shortened'
  | 'last_call'
  | 'correction'
  | 'placed_as_file'
  | 'file_not_accepted'
  | 'file_not_readable'
  | 'file_too_large'
  | 'too_many_files'
  | 'file_removed';

/** The messages of the session, or the posts of the board, that a part consists of. */
export interface ContextPartSpan {
  /** Number of messages or posts. Null if they were not loaded. */
  count?: number | null;
  from_seq: number;
  to_seq: number;
}

/** Origin of the text of a part. */
export type ContextPartTrust = 'trusted' | 'untrusted';

/** The context that a turn would be sent if it began now. */
export interface ContextPreview {
  agent: string;
  estimated_tokens: number;
  instance: string;
  messages: Message[];
  model: string;
  /** Reasons why the turn would be sent something else, or not at once. */
  notes: string[];
  /** Each part with its source, and the reason why it would be sent or left out. */
  parts: ContextPart[];
  /** The reason why the request cannot be built. */
  problem?: string | null;
  provider: string;
  request?: ProviderRequest | null;
  /** The session that the turn would continue. Null: it would open a new one. */
  session_id?: string | null;
  system: string;
  /** Null for a preview without a task. */
  task_id?: string | null;
  tools: ToolSpec[];
  /** Number of the turn. */
  turn: number;
}

/** The result of comparing a stored context with the one that was sent. */
export type ContextState = 'exact' | 'no_request' | 'erased' | 'differs' | 'unknown_version';

/** The question to the agent of the task, in its own conversation, when all children have ended. */
export interface Continuation {
  prompt: string;
}

/**
 * Data of `conversation.moved`. Another model of the agent's chain has taken over a conversation, or has given
 * it back. `session.rebuilt` follows.
 */
export interface ConversationMovedData {
  /** Earlier entries of the chain that this turn has skipped. */
  skipped: ({ because: string; entry: string; usable_at?: string | null; })[];
  /** New entry of the chain: `provider/model`. */
  to: string;
}

/** A call of the ledger with what it was made for. The ledger outlives campaigns, tasks and sessions. */
export interface CostCall extends LedgerCall {
  agent: string;
  campaign_id: string;
  session_id?: string | null;
  task_id?: string | null;
  /** The turn that it is charged to. */
  turn?: number | null;
}

/** Order of the calls. */
export type CostCallOrder = 'newest' | 'costliest';

/** A property of a call by which costs are added up. */
export type CostDimension = 'day' | 'campaign' | 'agent' | 'model' | 'provider' | 'purpose' | 'user';

/** The costs of one value, or of one pair of values. */
export interface CostLine extends Costs {
  /** The value of the second dimension. */
  second?: string | null;
  /** The value of the dimension. Null: the calls have none, such as the user of a campaign without one. */
  value?: string | null;
}

/** A figure of calls. */
export type CostMeasure = 'money' | 'tokens';

/** The answer to a [`Question`]. */
export interface CostReport {
  and?: CostDimension | null;
  by: CostDimension;
  /** Names of the campaigns in the lines, by id. Those of erased campaigns are missing. */
  campaign_names: Record<string, string>;
  /** The label of the currency. Nothing is converted. */
  currency: string;
  /** By their costs, then by their tokens, the highest first; with days in the order of their values. */
  lines: CostLine[];
  /** The number of values that `others` adds up. */
  n_others?: number;
  /** The sums of all values that are not among the `top`, for each value of the first of two dimensions. */
  others?: CostLine[];
  since?: string | null;
  time_zone: string;
  total: Costs;
  until?: string | null;
}

/** The sums of some calls. */
export interface Costs {
  cache_creation_tokens: number;
  cache_read_tokens: number;
  calls: number;
  /**
   * Calls that used tokens and count as 0, because no price was set for their model. Older versions do not send
   * it. Calls that a scheduler of an older version added to the sums of their days, during an upgrade, are not
   * counted.
   */
  calls_without_price?: number;
  /** In millionths of the currency. */
  cost_micros: number;
  /** Counts that the provider did not report are 0. */
  input_tokens: number;
  output_tokens: number;
}

/** A credential of a provider. */
export interface CredentialStatus {
  /** True: the configuration of the process that answers has it. */
  is_configured: boolean;
  name: string;
  /** End of the pause, while it is paused. */
  paused_until?: string | null;
  provider: string;
  /** Open sessions that began with this credential and stay with it. */
  sessions: number;
  why?: string | null;
}

/** All credentials, in one page: an installation has a handful. */
export interface Credentials {
  items: CredentialStatus[];
}

/** The database as its server sees it. */
export interface DatabaseSize {
  /** Of the whole database, with other schemas. */
  bytes: number;
  /** Of the server. */
  server_version: string;
  /** The beginning of the statistics. Null: since the creation of the database. */
  statistics_since?: string | null;
}

/** The size of a table on a day, with indexes and long texts. */
export interface DaySize {
  bytes: number;
  day: string;
}

/** One message to a webhook. */
export interface Delivery {
  /** Number of attempts since it was last put on the queue. */
  attempts: number;
  /** The campaign whose call reached a soft limit. Null for other kinds. */
  campaign_id?: string | null;
  /** Time at which the task ended. */
  created_at: string;
  ended_at?: string | null;
  /** The id, which the receiver gets as `webhook-id`. */
  id: string;
  job_id?: number | null;
  kind: string;
  last_error?: string | null;
  last_status?: number | null;
  next_at?: string | null;
  state: DeliveryState;
  /** The task that ended, or whose call reached a soft limit. Null for a test, and for a call without a task. */
  task_id?: string | null;
  webhook_id: string;
}

export type DeliveryState = 'waiting' | 'delivered' | 'failed' | 'held';

export interface DisableWebhook {
  /** Shown with the webhook while it is disabled. */
  reason?: string;
}

export interface EditFact {
  text: string;
}

export interface EditedCampaign extends CampaignVersion {
  /** False: the texts were the same already, and keep their version. */
  changed: boolean;
}

export interface EraseCampaign {
  /** Stays in the receipt: it must not name what is erased. */
  reason?: string;
}

/** Rows of one kind before the removal. */
export interface ErasedContents {
  rows: number;
  /** Hash over the texts of the rows: `dalsegno.contents_of_campaign` in SQL. */
  sha256: string;
}

/** The receipt of an erasure. */
export interface Erasure {
  asked_at: string;
  campaign_id: string;
  /**
   * Contents at the beginning of the removal by kind, counted by the database. All are removed when the erasure
   * has ended. Null before the removal, and if a worker of an earlier version has ended it.
   */
  contents?: Record<string, ErasedContents> | null;
  /**
   * Time when the database held no more rows of the campaign that the worker knew of. Null also if that worker
   * was too old to tell its schema: a newer worker then repeats the erasure.
   */
  ended_at?: string | null;
  /** Hosts that have checked their folders since. */
  hosts: string[];
  id: string;
  /** Tasks that still have to be cancelled or to end. */
  open_tasks: number;
  reason: string;
  /** Counts of removed rows so far, by kind. The worker counts them, and they are not signed. */
  removed: Record<string, number>;
  /** Time when all tables had been rewritten after the removal: `dalsegno erasure vacuum --full`. */
  rewritten_at?: string | null;
  signed?: ErasureSignature | null;
  /**
   * The current step: `cancel` for tasks, then the rows that are removed. Null before a worker has begun, and
   * after the end.
   */
  step?: string | null;
  /**
   * Time when all tables had been vacuumed after the removal. Null: not yet, or the role of the service may not
   * do it.
   */
  vacuumed_at?: string | null;
}

/** The signature of a receipt. */
export interface ErasureSignature {
  /** The public key in base64. `dalsegno doctor` shows the one of the installation. */
  public_key: string;
  /** Ed25519 over the bytes of the statement, in base64. */
  signature: string;
  /** The text that is signed: JSON with the fields of the receipt. */
  statement: string;
}

/** The tokens and the cost of the next turn of a conversation, in each way in which it could begin. */
export interface Estimate {
  agent: string;
  cache: PromptCache;
  campaign_id: string;
  /** The label of all costs. Nothing is converted. */
  currency: string;
  history: EstimateHistory;
  instance: string;
  model: string;
  notes: string[];
  price?: EstimatePrice | null;
  provider: string;
  /** The session that the turn would continue. Null: it would open a new one. */
  session_id?: string | null;
  /** Number of the turn. */
  turn: number;
  /** All ways, also those that are not possible now. */
  ways: WayEstimate[];
}

/** The estimated tokens of prompts divided by the provider's counts. Null without counts. */
export interface EstimateErrors {
  /** Calls that the provider has counted. */
  counted_calls: number;
  largest?: number | null;
  median?: number | null;
  smallest?: number | null;
}

/** The earlier turns from which calls and lengths of answers were learnt. */
export interface EstimateHistory {
  /** Earlier turns of the agent in other conversations, on this model. */
  agent_turns: number;
  /** Length of an answer that is assumed because there are no earlier turns. */
  assumed_output_tokens?: number | null;
  /** Earlier turns of the conversation on this model. */
  conversation_turns: number;
  /** With fewer turns, an assumption widens the range. */
  turns_wanted: number;
}

/** The price of an estimate, in millionths of the currency per million tokens. */
export interface EstimatePrice {
  cache_creation: number;
  cache_read: number;
  /** Day on which that source was read. */
  checked?: string | null;
  /**
   * Charged costs of earlier turns in relation to the price. 1 for configured prices, which are charged
   * exactly.
   */
  factor: number;
  input: number;
  /** The model as the price list names it. */
  model: string;
  origin: PriceOrigin;
  output: number;
  /** Source of a published price. */
  source?: string | null;
}

export interface EstimateSession {
  /** The prompt. Without it, `…` stands for it. */
  prompt?: string | null;
}

export interface EstimateTask {
  /** The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`. */
  agent: string;
  /** Files that the task is given with its prompt. */
  attachments?: NewAttachment[];
  instance?: string;
  /** The node of the task: the name of a node file. By default the current node of the session. */
  node?: string | null;
  /** The prompt. Without it, `…` stands for it. */
  prompt?: string | null;
  session?: SessionMode | null;
}

/** The answers of a run: all of them are one page. */
export interface EvalAnswers {
  items: AnswerResult[];
}

/** The results of a run, without its answers. */
export interface EvalRun {
  /** The moment at which its first answer was requested. */
  began_at: string;
  campaign_id: string;
  eval: string;
  id: number;
  /** Cost of the judge, in millionths. */
  judge_micros: number;
  recorded_at: string;
  run: string;
  /** Answers that were missing or not judged when it was recorded. */
  unfinished: number;
  variants: VariantResult[];
  /** Names of the variants with answers that cost 0 only because no price was set for their model. */
  variants_without_price?: string[];
}

export interface ExactValue {
  /** True if the summary had to contain it. */
  is_pinned: boolean;
  kind: string;
  place: ValuePlace;
  text: string;
}

/** The budget of a campaign that pays for reruns of its turns. */
export interface ExperimentBudget {
  /** Null: there is none, so models with a price are not called. */
  limit_micros?: number | null;
  spent_micros: number;
}

export interface Fact {
  /** The attribute of the user that the fact is about. */
  attribute: string;
  /** The agent of the session in which it was said or written, or a person as in the audit log. */
  author: string;
  /** The campaign in which it was said. */
  campaign_id?: string | null;
  ended_because?: FactEnded | null;
  /** Time when it ends in any case. */
  expires_at?: string | null;
  id: string;
  recorded_at: string;
  /** The fact that ended it. */
  replaced_by?: string | null;
  session_id?: string | null;
  source: FactSource;
  /** The task whose prompt said it. */
  task_id?: string | null;
  /** The text of the fact. */
  text: string;
  trust: FactTrust;
  turn?: number | null;
  /** The user whom the fact is about. */
  user: string;
  /** Time when it was said. */
  valid_from: string;
  /** Time when it was contradicted, edited or revoked. */
  valid_until?: string | null;
}

/** The reason why a fact has ended. */
export type FactEnded = 'contradicted' | 'edited' | 'revoked' | 'expired';

/** A stretch of a transcript that was read. */
export interface FactExtraction {
  agent: string;
  campaign_id: string;
  ended_at: string;
  /** Facts in the model's answer. */
  found: number;
  /** The place before the first one of the stretch. */
  from_seq: number;
  /** New facts among these. */
  new: number;
  outcome: FactExtractionOutcome;
  /** The reason of a refusal. */
  reason?: string | null;
  /** Number of people's requests in the stretch. */
  requests: number;
  session_id: string;
  /** The last place of the stretch. */
  to_seq: number;
}

export type FactExtractionOutcome = 'done' | 'refused';

/** A fact that was found. */
export interface FactHit extends Fact {
  /** Larger is better; only to be compared within one answer. */
  rank: number;
}

export type FactSource = 'extracted' | 'written' | 'stated' | 'edited';

/** The reliability of a fact. */
export type FactTrust = 'operator' | 'agent';

/** A session that was shown a fact. */
export interface FactUse {
  /** Null: the session was removed. */
  agent?: string | null;
  campaign_id: string;
  /** Null: the session was removed. */
  instance?: string | null;
  /** Time of the newest of these calls; without one the time of the showing, to a day. */
  last_at: string;
  session_id: string;
  /**
   * Turns with a call that contained the fact in its system part, the newest first; among the last 50 calls of
   * the session. If empty, the fact may be in its transcript: the agent read it with `recall` or wrote it, or
   * the session continues one that was shown it.
   */
  turns: number[];
}

/** The sessions that were shown a fact. */
export interface FactUses {
  /** True if more sessions were shown it. */
  has_more: boolean;
  /**
   * The 20 sessions that were shown it last, to a day, among the 10,000 records that are read at most; the
   * newest use first.
   */
  items: FactUse[];
}

/** The facts that were removed about a user. */
export interface FactsForgotten {
  facts: number;
  /**
   * Sessions in which facts were said or shown: their transcripts and summaries stay. The newest 10,000; some
   * may be removed already.
   */
  sessions: string[];
}

/** Data of `facts.read`. A model has read new prompts of a session for facts about its user. */
export interface FactsReadData {
  /** Facts in the answer of the model. */
  found: number;
  /** Facts that were not known before. */
  new: number;
  /** Reason for which the answer was refused. Null if it was accepted. */
  reason?: string | null;
  /** Prompts of the user that were read. */
  requests: number;
  /** Facts that were not stored, because the user has as many as `facts.user_max` allows. */
  too_many: number;
  /** Facts of the answer that were dropped, because the prompts do not say them. */
  unsaid: number;
}

/**
 * Data of `facts.refused`. A model was asked for facts about the user of a session, and none of its answers was
 * valid.
 */
export interface FactsRefusedData {
  /** Facts in the answer of the model. */
  found: number;
  /** Facts that were not known before. */
  new: number;
  /** Reason for which the answer was refused. Null if it was accepted. */
  reason?: string | null;
  /** Prompts of the user that were read. */
  requests: number;
  /** Facts that were not stored, because the user has as many as `facts.user_max` allows. */
  too_many: number;
  /** Facts of the answer that were dropped, because the prompts do not say them. */
  unsaid: number;
}

/** The failed tasks that were read for a list. */
export interface FailureTotals {
  /** Number of different failures among them. The list has the newest 20. */
  groups: number;
  /** True if older ones of the period may not have been read: numbers of equal failures are lower bounds. */
  is_cut: boolean;
  /** Number of failed tasks that were read, also of erased campaigns. */
  read: number;
}

export interface FeedEvent {
  /** The agent that the event is about. */
  agent?: string | null;
  campaign_id?: string | null;
  created_at: string;
  /** An object whose fields depend on the kind. Newer versions may add fields. */
  data: Record<string, unknown>;
  id: number;
  /** Its instance. Null: all instances of the agent. */
  instance?: string | null;
  /** `task.queued`, `turn.done` and so on. Newer versions may add kinds. */
  kind: string;
  session_id?: string | null;
  task_id?: string | null;
}

/** The fidelity of the conversations of a campaign. */
export interface FidelityReport {
  estimates: EstimateErrors;
  /**
   * True if the campaign has 10,000 ended turns or more. The numbers are then those of the newest 10,000, with
   * their calls and sessions.
   */
  is_limited?: boolean;
  /** Sessions that were replaced because their provider had lost the conversation. */
  lost_sessions: number;
  /** Compactions with rejected summaries, the newest first, at most 100. */
  rejected: RejectedSummaries[];
  summaries: SummaryCounts;
  turns: CheckCounts;
}

/** One part of a request that is wrong. */
export interface FieldError {
  /** Of one among many, as that of a problem. */
  code?: string | null;
  detail: string;
  /** A JSON Pointer into the body. */
  pointer: string;
}

/** Origin of a file of a task. */
export type FileDirection = 'in' | 'out';

export interface Files {
  items: SourceFile[];
  /** Problems of folders: the files in use are those before the problem. */
  problems: AgentFileProblem[];
  /**
   * Keys with which agents cannot work as their files say: rules for unknown tools, windows and budgets that
   * are too small. The files are in use.
   */
  warnings?: AgentFileProblem[];
}

/** A result of a check. */
export interface Finding {
  /** The part that was checked, such as `database`. */
  check: string;
  /** The command, or the sentence, that solves the problem. Empty without a problem. */
  fix: string;
  status: 'ok' | 'warn' | 'fail' | 'skipped';
  what: string;
  why: string;
}

/** Findings in the order of the checks. */
export interface Findings {
  items: Finding[];
}

export interface Flow {
  added_by?: string | null;
  campaign_id: string;
  cancelled: number;
  created_at: string;
  done: number;
  ended_at?: string | null;
  failed: number;
  id: string;
  /** The inputs of the start. */
  inputs: Record<string, unknown>;
  /** Tasks that have not ended. */
  open: number;
  paused_at?: string | null;
  state: FlowState;
  tasks: number;
  template: string;
}

/** A flow with its tasks. */
export interface FlowDetail extends Flow {
  /** The latest task at each place, in order. */
  steps: FlowStepTask[];
}

/** Data of `flow.ended`. The last open task of a flow has ended. After a retry the flow ends again. */
export interface FlowEndedData {
  /** Tasks that were cancelled. */
  cancelled: number;
  /** Tasks that are done. */
  done: number;
  /** Tasks that have failed. */
  failed: number;
  /** Id of the flow. */
  flow_id: string;
  /** State of the flow: `failed` if one of its tasks has failed, otherwise `cancelled` if one was cancelled. */
  state: 'done' | 'failed' | 'cancelled';
  /** Name of its template. */
  template: string;
}

/** The tokens and the cost that a flow would have. */
export interface FlowEstimate {
  /**
   * The sum of the steps. Its lows and highs are those of all steps at once, so the range is wider than that of
   * a turn. With a step that has no charge, the costs are null.
   */
  charge: ChargeRange;
  /** The label of all costs. */
  currency: string;
  /** The steps in the order of the template. */
  steps: StepEstimate[];
  tasks: number;
  template: string;
}

export interface FlowImprovement {
  /** The agent that combines the results of the roles, in a fresh session. */
  agent: string;
  /** The prompt of that agent. */
  prompt: string;
  /** The prompt of each role. */
  reflection: string;
}

/** An input that has to be given when a flow is started. */
export interface FlowInput {
  /** Description of the input, for the person who starts a flow. */
  about: string;
  /** True: the input is a list, and a step is repeated for each of its items. */
  is_list: boolean;
  name: string;
}

/** Data of `flow.paused`. A person has paused a flow: none of its waiting tasks begins. */
export interface FlowPausedData {
  /** Id of the flow. */
  flow_id: string;
  /** Name of its template. */
  template: string;
}

export interface FlowQuestion {
  inputs?: BTreeMap;
  template: string;
}

/** Data of `flow.resumed`. A person has resumed a paused flow. */
export interface FlowResumedData {
  /** Id of the flow. */
  flow_id: string;
  /** Name of its template. */
  template: string;
}

/** Data of `flow.retried`. A flow runs again from one of its steps. */
export interface FlowRetriedData {
  /** Id of the flow. */
  flow_id: string;
  /** Name of the step. */
  from: string;
  /** Number of tasks that were added again. */
  tasks: number;
  /** Name of its template. */
  template: string;
}

export interface FlowRetry {
  /** The step to go on from. */
  from: string;
}

/** Data of `flow.started`. A flow was started, and its tasks were added. */
export interface FlowStartedData {
  /** Id of the flow. */
  flow_id: string;
  /** Number of its tasks. */
  tasks: number;
  /** Name of its template. */
  template: string;
}

/** The state, derived from the latest task at each place. */
export type FlowState = 'running' | 'paused' | 'done' | 'failed' | 'cancelled';

export interface FlowStep {
  /** The steps that it waits for. */
  after: string[];
  agent: string;
  /** The list for whose items it is repeated. */
  each?: string | null;
  /** The agent's instance. Of a repeated step: the beginning of its name, before the number. */
  instance: string;
  name: string;
  /** The node of its tasks; null: sessions stay at their node. */
  node?: string | null;
  on_failure: OnFailure;
  /**
   * The prompt with `{{input}}`, `{{steps.plan.result.title}}` for a field of an earlier result, and in a
   * repeated step `{{item}}` and `{{number}}`.
   */
  prompt: string;
  /** The JSON Schema of its results; null: that of the agent's file, if it has one. */
  result_schema?: Record<string, unknown> | null;
  session?: SessionMode | null;
  /** Seconds that the answers to its tasks may take, from the end of the steps that they wait for. */
  within_secs?: number | null;
}

/** A step of a broken template, as far as the file names it. */
export interface FlowStepOutline {
  agent: string;
  name: string;
  node?: string | null;
}

export interface FlowStepTask {
  /** The tasks that it waits for, or has waited for. */
  after: string[];
  agent: string;
  ended_at?: string | null;
  instance: string;
  /** The node of the task. Null: the session stays at its node. */
  node?: string | null;
  started_at?: string | null;
  state: TaskState;
  step: string;
  task_id: string;
}

export interface ForkSession {
  /**
   * Name of the new instance. Default: `main-fork-1` for a session of `main`, or the next free number, also if
   * the turn is of another session.
   */
  instance?: string | null;
  /**
   * The last turn that the fork has, which must be done. Another session of the same conversation is searched
   * for it, too: the numbers continue from session to session. A turn that a fork has taken over is forked from
   * the session that ran it. Default: the last turn of the session that is done.
   */
  turn?: number | null;
}

export interface FoundId {
  id: string;
}

export interface HandedOut {
  /** In the order of the request. */
  children: BulkAdded[];
  continuation: BulkAdded;
}

export interface HeldLane {
  held: string;
}

/** A post that an agent does not see, because it is addressed to others. */
export interface HiddenPost {
  audience: string[];
  sender: string;
  seq: number;
}

/** The result of comparing the count of a turn's first prompt with the history that belongs to it. */
export type HistoryCheck = 'seen' | 'not_seen' | 'not_provable' | 'no_history';

export interface HoldJob {
  /** Named in the explanation of the job while it is held. */
  reason?: string;
}

export interface HoldLane {
  /** Shown with the lane while it is held. */
  reason?: string;
}

export interface ImportedMemoryItem {
  /** The name of the item in refusals and warnings, such as its file; `/items/0` without one. */
  at?: string | null;
  body: string;
  expires_at?: string | null;
  kind: MemoryKind;
  name: string;
  owner?: string | null;
  title: string;
}

/** The installation, as the process that answers sees it. */
export interface Installation {
  created_at: string;
  database: DatabaseSize;
  id: string;
  /** The newest first. */
  migrations: AppliedMigration[];
  /** Of the process, without secrets. */
  settings: Setting[];
  /** The largest first. */
  tables: TableSize[];
  /** Of the process. */
  version: string;
}

/** Open matters of a person, running tasks, and the last hours. */
export interface InstallationOverview {
  /**
   * The most urgent kind first; at most 20 of each kind. Of failed tasks the newest 20 groups with the same
   * error or at the same budget, of each at most its newest 20 tasks, and in all at most 100.
   */
  attention: Attention[];
  /** The failed tasks that were read for `attention`: at most the newest 1,000 of the last 7 days. */
  failures?: FailureTotals;
  /** Running tasks, those that started last first; at most 20. */
  running: TaskLine[];
  /** Runs of turns that have ended, by step; the newest 10,000. */
  runs: RunMinute[];
  /**
   * True if older runs of these hours were not read: the numbers are lower bounds, and steps before the last
   * one of `runs` are unknown.
   */
  runs_are_cut?: boolean;
  /** The longest waits of tasks for their start, by the step in which they were added; the newest 5,000 tasks. */
  waits: WaitMinute[];
  /** True if older tasks of these hours were not read, which may have waited longer. */
  waits_are_cut?: boolean;
}

export interface InterruptAgent {
  how?: InterruptMode;
  reason?: string;
}

/** Urgency of an interrupt. */
export type InterruptMode = 'soft' | 'hard';

export interface InterruptResult {
  cancel: TaskCancelled;
  session_id: string;
  task_id: string;
}

export interface InterruptSession {
  how?: InterruptMode;
  reason?: string;
}

/** The cancelled tasks; empty where nothing ran. */
export interface InterruptedTasks {
  items: InterruptResult[];
}

/** Effect of a cancellation. */
export type JobCancelled = 'at_once' | 'requested' | 'already_dead' | 'already_ended';

/** A job with everything known about it. */
export interface JobDetail extends JobSummary {
  /** Names and values beside the payload. */
  headers?: unknown;
  /** Input of the job. */
  payload: unknown;
  running?: PresentRun | null;
  /** Its ended attempts, the newest first. */
  runs: RunRecord[];
}

/** The explanation of a job's state. */
export interface JobExplanation {
  /** Why it is in this state. */
  because: string;
  /** The job. */
  job_id: number;
  /** The next step, and who takes it. */
  next: string;
  /** Its ended runs that are still kept, the newest first. A caller adds them. */
  runs?: RunRecord[];
  /** Its state: one of the live states, or dead, ended, unknown. */
  state: string;
}

/** One line of `job ls`. */
export interface JobSummary {
  /** Attempts so far, with the one that runs. */
  attempt: number;
  /** When it was put on the queue. */
  enqueued_at: string;
  /** The group. */
  group_key?: string | null;
  /** The id. */
  id: number;
  /** The kind. */
  kind: string;
  /** The lane. */
  lane?: string | null;
  /** After how many failures it is dead. */
  max_attempts: number;
  /** 0 is the most urgent. */
  priority: number;
  /** The queue. */
  queue: string;
  /** Reason of the person who held it, or the error of a dead letter. */
  reason?: string | null;
  /** When it is due, or since when it is ready. */
  run_at: string;
  /** The state; `dead` for a dead letter. */
  state: string;
  /** Why it waits, in the words of the counts by reason. */
  wait_reason?: string | null;
}

/** Days for which things are kept after they have ended or expired. */
export interface KeepDays {
  closed_sessions: number;
  events: number;
  memory_items: number;
  summaries: number;
}

export interface KeyRotation {
  /** Time for which the old key stays valid. */
  overlap_secs?: number;
}

/** A lane with its first members. */
export interface Lane {
  /** Why it is held, if it is. */
  held?: string | null;
  /** Since when it is held. */
  held_at?: string | null;
  /** True if it has more members. */
  is_cut?: boolean;
  /** The name. */
  lane: string;
  /** Its members in order, at most a hundred. */
  members: LaneMember[];
  /** Effect of a dead head on the lane: `continue` or `hold`. */
  on_failure: string;
}

/** A job in a lane. */
export interface LaneMember {
  /** The job. */
  id: number;
  /** True if it could run, but its queue or its group is paused. */
  is_paused?: boolean;
  /** Its kind. */
  kind: string;
  /** Its place; none while it is scheduled for later. */
  lane_seq?: number | null;
  /** When it is due, or since when it is ready. */
  run_at: string;
  /** Its state. */
  state: string;
}

export type LaneName = string;

/** A call as the ledger records it. Unknown token counts are null. */
export interface LedgerCall {
  cache_creation_tokens?: number | null;
  cache_read_tokens?: number | null;
  called_at: string;
  cost_micros: number;
  first_byte_ms?: number | null;
  /** False: no price was set for the model, so the cost is 0 or the one that the provider reports. */
  has_price?: boolean;
  /** Number of the row in the ledger. */
  id: number;
  input_tokens?: number | null;
  model: string;
  outcome: UsageOutcome;
  output_tokens?: number | null;
  provider: string;
  /**
   * The provider's id of its answer. Calls of batches, summaries, facts and reruns may have an id of the
   * service instead.
   */
  provider_message_id?: string | null;
  purpose: UsagePurpose;
  total_ms?: number | null;
}

/** Null: no limit. */
export interface Limit {
  micros?: number | null;
  tokens?: number | null;
}

export interface LimitChange {
  /**
   * Limit of the budget that pays for reruns of turns, in money. Without one, models with a price are not
   * rerun.
   */
  experiments_micros?: number | null;
  micros?: number | null;
  /** Effect of the limits on tasks: they wait until there is space, or fail. */
  on_limit?: 'wait' | 'fail' | null;
  /** Spending in money at which a warning is written, once. */
  soft_micros?: number | null;
  /** Spending in tokens at which a warning is written, once. */
  soft_tokens?: number | null;
  tokens?: number | null;
}

/** A job, with its task if it has one. */
export interface ListedJob extends JobSummary {
  awaited_model?: AwaitedModel | null;
  /**
   * The budget that its task waits for, by owner and key: `agent/writer`, `campaign/` and an id, `day`. The
   * reason of the wait is then `condition`.
   */
  budget?: string | null;
  task?: TaskLine | null;
}

export interface ListedTask extends Task {
  /** True if the cost is 0 only because no price was set for the model of its last turn. */
  is_unpriced?: boolean;
  metadata: Record<string, unknown>;
  tags: string[];
}

/** A turn, with the agent and the model of its session. */
export interface ListedTurn extends Turn {
  agent: string;
  instance: string;
  /** True if the cost is 0 only because no price was set for the model. */
  is_unpriced?: boolean;
  model: string;
  /**
   * The version of the agent's prompt: the hash with which the session was made. Empty if an older version has
   * answered.
   */
  prompt_hash?: string;
  provider: string;
}

/** A run of a schedule in addition to its times. */
export interface ManualRun {
  /** The caller who has started it, as in the audit log. */
  actor: string;
  at: string;
  job_id?: number | null;
}

/** An item that was found. */
export interface MemoryHit extends MemoryItem {
  /** Score; larger is better. Comparable only within one answer. */
  rank: number;
  /**
   * The matching passages, with matches between `**` and `**`. The beginning of the text if only its meaning
   * matched.
   */
  snippet: string;
}

export interface MemoryImport {
  items: ImportedMemoryItem[];
  /** True: items that exist with another text get a new version. Without it, they are refused. */
  replace?: boolean;
}

export interface MemoryImported {
  created: number;
  /** Number of items that got a new version. */
  replaced: number;
  /** Number of items that were identical already. */
  unchanged: number;
  /** Limits that are nearly used up. */
  warnings: string[];
}

/** An edict, a record or an entry of a journal, in its current version or an earlier one. */
export interface MemoryItem {
  /** The author: an operator's label as in the audit log, or an agent's name on the board. */
  author: string;
  /** The text. Left out of lists and search results. */
  body?: string | null;
  /** Size of title and body, in bytes. */
  bytes: number;
  campaign_id: string;
  created_at: string;
  /** Time from which the item is hidden from agents. */
  expires_at?: string | null;
  id: string;
  kind: MemoryKind;
  name: string;
  origin: MemoryOrigin;
  /** The owner of a journal, by its name on the board. Null for edicts and records. */
  owner?: string | null;
  /** Time at which the item was revoked. */
  revoked_at?: string | null;
  revoked_by?: string | null;
  /** The task in whose turn an agent wrote the item. */
  task_id?: string | null;
  title: string;
  trust: MemoryTrust;
  turn?: number | null;
  /** Counts from 1. */
  version: number;
  /** Time at which this version was written. */
  written_at: string;
}

export type MemoryKind = 'edict' | 'record' | 'journal';

export type MemoryOrigin = 'operator' | 'agent';

/**
 * Data of `memory.published`. An edict, a record or an entry of a journal was written, or has a new version.
 * `task_id` is that of the turn that wrote it.
 */
export interface MemoryPublishedData {
  /** Person, program or agent that made the change. */
  author: string;
  /** Id of the item. */
  id: string;
  /** Kind of the item. */
  kind: 'edict' | 'record' | 'journal';
  /** Name of the item. */
  name: string;
  /** A person or program (`operator`), or a turn of an agent. */
  origin: 'operator' | 'agent';
  /** Owner of a journal, by its name on the board. Null for edicts and records. */
  owner?: string | null;
  /** Version of the item, counted from 1. */
  version: number;
}

/**
 * Data of `memory.revoked`. An edict, a record or an entry of a journal was revoked, so that agents do not read
 * it any more.
 */
export interface MemoryRevokedData {
  /** Person, program or agent that made the change. */
  author: string;
  /** Id of the item. */
  id: string;
  /** Kind of the item. */
  kind: 'edict' | 'record' | 'journal';
  /** Name of the item. */
  name: string;
  /** A person or program (`operator`), or a turn of an agent. */
  origin: 'operator' | 'agent';
  /** Owner of a journal, by its name on the board. Null for edicts and records. */
  owner?: string | null;
  /** Version of the item, counted from 1. */
  version: number;
}

/** Trust level of an item. */
export type MemoryTrust = 'operator' | 'agent' | 'imported';

/** A current or earlier version of an item. */
export interface MemoryVersion {
  author: string;
  bytes: number;
  origin: MemoryOrigin;
  task_id?: string | null;
  title: string;
  trust: MemoryTrust;
  turn?: number | null;
  version: number;
  written_at: string;
}

export interface MemoryWritten extends MemoryItem {
  /** False if the item had this content already; its version stays the same. */
  changed: boolean;
  /** A limit that is nearly used up. */
  warning?: string | null;
}

/** One entry of a session's transcript. */
export interface Message {
  role: Role;
  text: string;
  /** The call a `Tool` message answers. */
  tool_call_id?: string | null;
  /** Calls an assistant message makes; empty for every other role. */
  tool_calls?: ToolCall[];
  /** The tool a `Tool` message comes from; of a `User` message, the agent that asked it on the board. */
  tool_name?: string | null;
}

/** The place of a replaced message in the new context. All of them are in the archive, too. */
export type MessagePlace = 'kept' | 'shortened' | 'sentences' | 'summary' | 'archive';

/** State of the schema, compared with this binary. */
export type MigrationState = { state: 'current'; } | { state: 'newer'; } | { n_pending: number; state: 'pending'; };

/** A file for a task: its content, or a file of another task of the campaign. */
export interface NewAttachment {
  /** The content in Base64: a PNG, JPEG, GIF or WebP image, a PDF, or text in UTF-8. */
  content?: string | null;
  /** Name of an output file of that task, or of one of its attachments. */
  file?: string | null;
  /** The type according to its sender. A content that contradicts it is refused. */
  media_type?: string | null;
  /** Name that the model is told, without folders. By default that of `file`. */
  name?: string | null;
  /** The task of the campaign that has the file. Together with `file`, in place of `content`. */
  task?: string | null;
}

export interface NewBulkAction {
  action: TaskAction;
  /** Nothing is done unless exactly so many tasks match. */
  expected_count?: number | null;
  filter: TaskFilter;
  /** Shown with the tasks that it cancels. */
  reason?: string;
}

export interface NewCampaign {
  brief?: string;
  budget?: Limit;
  client_context?: string | null;
  /** Keys and values to find it by; at most 4096 bytes of JSON. */
  metadata?: Record<string, unknown>;
  name: string;
  /** Effect of the budget on tasks at its limit: they wait until there is space, or fail. */
  on_limit?: 'wait' | 'fail' | null;
  /** Named values that each call contains, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON. */
  parameters?: Record<string, unknown>;
  tags?: string[];
}

export interface NewChildren {
  children: BulkTask[];
  continuation: Continuation;
}

export interface NewEvalRun {
  answers: AnswerResult[];
  /** The moment at which the first answer was requested. */
  began_at: string;
  eval: string;
  /** Cost of the judge, in millionths. */
  judge_micros: number;
  run: string;
  /** Answers that are missing or not judged yet. */
  unfinished: number;
  variants: VariantResult[];
}

export interface NewFact {
  /** The aspect of the user that it is about: one fact of each is valid at a time. */
  attribute: string;
  /** The moment at which it ends. */
  expires_at?: string | null;
  text: string;
}

export interface NewFlow {
  /** Texts, and lists of texts for the inputs that are lists. One text for a list is its only item. */
  inputs?: BTreeMap;
  template: string;
}

export interface NewKey {
  /** The campaigns that it is bound to, at most 100: it reaches nothing else. All, if they are left out. */
  campaigns?: string[] | null;
  /** Never, if it is left out. */
  expires_in_secs?: number | null;
  name: string;
  scopes: Scope[];
}

export interface NewMemoryItem {
  body: string;
  /** The version to replace; 0 for an item that does not exist yet. */
  expected_version?: number | null;
  /** The moment from which agents no longer see it. */
  expires_at?: string | null;
  kind: MemoryKind;
  /** A name in the form of agent names: `tone-of-voice`. Optional for entries of a journal only. */
  name?: string | null;
  /** The agent of a journal; edicts and records have none. */
  owner?: string | null;
  title: string;
}

export interface NewPost {
  /**
   * Its readers beside those that the text mentions: agents, their other instances as `curator_2` or
   * `curator/2`, `operator`, or `all`. Without it and without a mention, the lead is asked.
   */
  audience?: string[] | null;
  /** The post that it answers. */
  reply_to?: string | null;
  text: string;
}

export interface NewTask {
  /** The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`. */
  agent: string;
  /** Files that the task is given with its prompt: images, PDF or text, or files of other tasks of the campaign. */
  attachments?: NewAttachment[];
  budget?: Limit;
  /** It runs when all of these tasks have ended, with their results in its prompt. */
  depends_on?: TaskLink[];
  /**
   * The flow templates that the agent may start in the task; an empty list: none. By default those of the
   * agent's file.
   */
  flow_templates?: string[] | null;
  instance?: string;
  /** Keys and values to find it by; at most 4096 bytes of JSON. An idempotency key does not compare them. */
  metadata?: Record<string, unknown>;
  /** The node of the task: the name of a node file. By default the current node of the session. */
  node?: string | null;
  /** If one of those has failed or was cancelled. */
  on_failure?: OnFailure;
  /**
   * Named values that its calls contain, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON.
   * They win over those of the campaign.
   */
  parameters?: Record<string, unknown>;
  priority?: number | null;
  prompt: string;
  /**
   * JSON Schema that the answer has to match, at most 32768 bytes. The result is then JSON, too. By default
   * that of the agent's file.
   */
  result_schema?: Record<string, unknown> | null;
  run_at?: string | null;
  session?: SessionMode | null;
  tags?: string[];
  /**
   * Seconds that the answer may take, from now, from `run_at` or from the end of the tasks that it waits for:
   * 3600 to 604800. Providers with a batch API are then asked for it at a lower price.
   */
  within_secs?: number | null;
}

export interface NewWebhook {
  campaign_id?: string | null;
  kinds?: WebhookKind[];
  url: string;
}

export interface Node {
  description: string;
  name: string;
  /** Required readings: paths as the node's file names them. */
  readings: string[];
}

/** Data of `node.entered`. A session has received the instructions of a node. */
export interface NodeEnteredData {
  /** Name of the node. */
  node: string;
  /** The session was at this node before, and its successor or its next turn gets the instructions again. */
  said_again: boolean;
}

/** The stay of a session at a node. */
export interface NodeStay {
  agent: string;
  entered_at: string;
  /** First place of the stay in the transcript. */
  first_seq: number;
  instance: string;
  last_seq?: number | null;
  /** End of the stay. Null while the session is at the node. */
  left_at?: string | null;
  node: string;
  /** Number of the stay within its session, from 1. */
  ordinal: number;
  /** The task whose turn entered the node. */
  task_id: string;
}

/** Takes no fields. */
export type Nothing = Record<string, never>;

/** Reaction to the failure or cancellation of a task that this one waits for. */
export type OnFailure = 'run' | 'cancel';

/** Effect of a hard limit on the tasks that reach it. */
export type OnLimit = 'wait' | 'fail';

/** An archive with its messages. */
export interface OpenedArchive extends Archive {
  /** A page of the replaced messages, in order. */
  messages: StoredMessage[];
  /** The cursor of the next page; null on the last one. */
  next?: string | null;
  replacement: Replacement;
}

/** A call of a turn as it was made in the turn. */
export interface OriginalCall {
  /** The text of its answer. Null: it has none, or the messages were removed. */
  answer?: string | null;
  /** Number of the call in its turn, from 1. */
  call: number;
  cost_micros: number;
  input_tokens?: number | null;
  /** True if the cost is 0 only because no price was set for the model. */
  is_unpriced?: boolean;
  /**
   * True if tokens, cost and time are those of the whole turn, because the calls of the provider cannot be told
   * apart.
   */
  is_whole_turn: boolean;
  model: string;
  output_tokens?: number | null;
  provider: string;
  session_id: string;
  took_ms?: number | null;
  tool_calls: ToolCall[];
  turn: number;
}

/**
 * A budget with its amounts. That of a day has those of the present day; all others count all calls of all
 * time.
 */
export interface OwnedBudget {
  /** The end of the period. */
  ends_at?: string | null;
  /** False for a user for whom no campaign works now. Null for other owners, and from older versions. */
  has_campaign?: boolean | null;
  /** The name of the agent or the user, or the id of the campaign; empty for a day. */
  key: string;
  limit: Limit;
  /** The name of the campaign. */
  name?: string | null;
  on_limit: OnLimit;
  owner: BudgetOwner;
  /** The present day. */
  period?: string | null;
  reserved: Amount;
  /** Spending at which a warning is written. */
  soft: Limit;
  spent: Amount;
  time_zone?: string | null;
  /** Number of tasks that wait for the budget. */
  waiting_tasks: number;
  /** The moment of the warning in this period. */
  warned_at?: string | null;
}

export type PartChange = 'added' | 'removed' | 'changed';

export interface PartDiff {
  change: PartChange;
  id?: string | null;
  kind: string;
  /** The reason why the part is sent or left out, after the change; before it for a removed part. */
  reason: string;
  span_after?: { count?: number | null; from_seq: number; to_seq: number; } | null;
  /** The messages or posts that it had before and has after, if it is made of those. */
  span_before?: { count?: number | null; from_seq: number; to_seq: number; } | null;
  tokens_after: number;
  /** Estimated tokens before and after; 0 if it was not sent. */
  tokens_before: number;
  /**
   * The text with its changes, word by word. Empty if the texts are not stored, or the part has none of its
   * own.
   */
  words: WordChange[];
}

/** The tokens of a part of the turn. */
export interface PartEstimate {
  /** Likely cost. Null: the price is unknown. */
  cost_micros?: number | null;
  high: number;
  likely: number;
  low: number;
  part: TurnPart;
}

export interface PauseAgent {
  reason?: string;
}

export interface PauseAgentEverywhere {
  reason?: string;
}

export interface PauseCampaign {
  /** Shown with the campaign's tasks while it is paused. */
  reason?: string;
}

export interface PauseGroup {
  /** Named in the explanation of each job that waits for the end of the pause. */
  reason?: string;
}

export interface PauseOutcome {
  /** The name of the queue or the group. */
  paused: string;
}

export interface PauseQueue {
  /** Shown with the queue while it is paused. */
  reason?: string;
}

export interface PauseSchedule {
  /** Shown with the schedule while it is paused. */
  reason?: string;
}

/** The treatment of calls that no rule names. No user is there to be asked. */
export type PermissionMode = 'dontAsk' | 'acceptEdits' | 'plan' | 'bypassPermissions';

export interface Post {
  /** Addressees: names as in `sender`, or `all`. */
  audience: string[];
  /**
   * The person or the API key that posted, as in the audit log. Null for posts of agents and of the service,
   * and for older ones.
   */
  author?: string | null;
  id: string;
  origin: PostOrigin;
  posted_at: string;
  /** The post that this one answers. */
  reply_to?: string | null;
  /**
   * `operator`, `system`, or the name of the agent: `<agent>`, or `<agent>/<instance>` for an instance other
   * than `main`.
   */
  sender: string;
  /** Number of the post on the board, from 1, in the order of commits. */
  seq: number;
  session_id?: string | null;
  /** The task whose turn wrote the post, or that the post is about. */
  task_id?: string | null;
  text: string;
  trust: PostTrust;
  turn?: number | null;
}

/**
 * Data of `post.added`. A person, an agent or the service has posted on the board. `task_id` and `session_id`
 * are those of the turn that posted.
 */
export interface PostAddedData {
  /** Names that may read the post; `all` for everyone. */
  audience: string[];
  /** Id of the post. */
  id: string;
  /** A person or program (`operator`), a turn of an agent, or the service itself. */
  origin: 'operator' | 'agent' | 'system';
  /** Id of the post that it answers. */
  reply_to?: string | null;
  /** Name on the board: an agent, `operator` or `system`. */
  sender: string;
  /** Place on the board, counted from 1. */
  seq: number;
}

export type PostOrigin = 'operator' | 'agent' | 'system';

/** A post and the tasks that it led to. */
export interface PostResult extends Post {
  /** False if an earlier call with the same idempotency key created the post. */
  created: boolean;
  /** Calls that were not made, each with the reason. */
  notes: string[];
  /** The agents that were called, each with its task. */
  tasks: CalledAgent[];
  /** Mentioned names that no agent has. */
  unknown: UnknownName[];
}

/** Trust level of a post. */
export type PostTrust = 'operator' | 'key' | 'agent' | 'system';

/** The present run of a job. */
export interface PresentRun {
  /** When it was claimed. */
  claimed_at: string;
  /** The host of the worker. */
  host?: string | null;
  /** The lease that it holds. */
  lease: number;
  /** When its worker has to have renewed the lease. */
  lease_until?: string | null;
  /** The process of the worker. */
  pid?: number | null;
  /** The worker of the run. */
  worker_id: string;
}

export interface PreviewAgentContext {
  /** The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`. */
  agent: string;
  instance?: string;
  /** The prompt. Without it, `…` stands for it. */
  prompt?: string | null;
}

export interface PreviewedBulkAction {
  action: TaskAction;
  filter: TaskFilter;
}

export type PriceOrigin = 'configured' | 'published' | 'charged';

export interface PriorityChange {
  /** 0 is the most urgent; 100 is the default. */
  priority: number;
}

export interface Problem {
  /** Stable: programs decide by it. */
  code: string;
  /** For people: what happened here, and what to do next. */
  detail: string;
  /** The parts of the request that are wrong, where that can be said. */
  errors?: FieldError[];
  /** The id in the header `X-Request-Id` of the answer and in the log of the service. */
  request_id?: string | null;
  /** True if the same request can succeed later. */
  retryable: boolean;
  status: number;
  title: string;
  /** No page says more than `code` and `detail` do (RFC 9457). */
  type: string;
}

/** The prompt cache of the provider, as far as the turn would read from it. */
export interface PromptCache {
  state: PromptCacheState;
  /** Tokens at the beginning of the resumed conversation that are probably still cached. */
  tokens: number;
  /** The moment at which the cache expires or has expired. */
  until?: string | null;
}

export type PromptCacheState = 'none' | 'empty' | 'valid' | 'expired' | 'changed';

/** The text of a version of an agent's prompt. */
export interface PromptText {
  /** True: sessions that open now are made with it. */
  is_current: boolean;
  /** The hash of the version. */
  prompt_hash: string;
  /** Null: no context of a call with this version is stored. */
  text?: string | null;
}

/** A version of an agent's prompt that sessions were made with. Versions end with the last of their sessions. */
export interface PromptVersion {
  /** The opening of its first session. */
  first_used_at: string;
  /** True: sessions that open now are made with it. */
  is_current: boolean;
  /** The session that was used last. */
  last_session_id: string;
  /** Number of the last turn of that session. */
  last_session_turns: number;
  /** The last use of one of its sessions. */
  last_used_at: string;
  /** SHA-256 of the prompt; for the lead's main instance of prompt and roster. */
  prompt_hash: string;
  sessions: number;
  /**
   * The session that was used last of those with a stored context. Null: no call has one, or an older version
   * has answered.
   */
  stored_session_id?: string | null;
  /** Number of its newest turn with a stored context. */
  stored_turn?: number | null;
  turns: number;
}

/** At most 100 versions. */
export interface PromptVersions {
  items: PromptVersion[];
}

/** Name of a provider, as agents' files, sessions and settings have it. */
export type Provider = string;

/** A request to a provider. For Claude it is what the CLI is given. */
export interface ProviderRequest {
  body: string;
  /** Further headers that the server requires. */
  headers?: string[];
  /** Header with the key, in which `$KEY` stands for the key; null if the request has none. */
  key_header?: string | null;
  /** SHA-256 of the body. */
  sha256: string;
  /** Address; null for a program. */
  url?: string | null;
}

/** The part of a provider's own transcript that leads to the answer of a turn. */
export interface ProviderTranscript {
  /** Entries in order, ending with the answer. */
  entries: TranscriptEntry[];
  /** Name of the provider's file. */
  file: string;
  model: string;
  /** The first difference, or the reason why there is no comparison. */
  problem?: string | null;
  provider: string;
  session_id: string;
  state: ProviderTranscriptState;
  turn: number;
}

/** The result of comparing a provider's transcript with the stored messages. */
export type ProviderTranscriptState = 'equal' | 'differs' | 'not_compared';

export interface PutCampaignUser {
  /** English letters, digits, and `. _ @ + -` behind the first; null: no user in particular. */
  user?: string | null;
}

/** One queue, as `queue ls` shows it. */
export interface Queue {
  /** Jobs behind the head of their lane. */
  blocked: number;
  /** Dead letters. */
  dead: number;
  /** Jobs that wait for a person. */
  held: number;
  /** Waiting time of the oldest ready job, in seconds. */
  oldest_ready_secs?: number | null;
  /** Why it is paused. */
  pause_reason?: string | null;
  /** Since when nothing is claimed from it, if it is paused. */
  paused_at?: string | null;
  /** The name. */
  queue: string;
  /** Jobs that a free slot would take now. */
  ready: number;
  /** Jobs in a worker. */
  running: number;
  /** Jobs that wait for a time. */
  scheduled: number;
  /** Live workers that serve it. */
  workers: number;
}

/** All queues: there are a handful. */
export interface Queues {
  items: Queue[];
}

export interface Ready {
  migrations: MigrationState;
  status: string;
}

export interface RecurringTask {
  /** Seconds after a missed moment during which the task is still added. */
  catch_up_secs?: number;
  /** Second, minute, hour, day of month, month, day of week. */
  cron: string;
  task: AddTask;
  time_zone?: string;
}

/**
 * A task that failed at a budget and whose call the budget still does not allow: a retry would fail again, or
 * wait. Or a step, which only its flow retries.
 */
export interface RefusedRetry {
  /** The present amounts of the budget. Of a step, the reason for the retry of its flow. */
  because: string;
  /**
   * The budget by its owner and key: `agent/writer`, `campaign/` and an id, `day`. Null for the budget in an
   * agent's file.
   */
  budget?: string | null;
  /**
   * The command that raises the limit, alike for all tasks of the budget: the limit is enough for each of their
   * calls alone. For a step, the retry of its flow, which also reads the budget in the agent's file again.
   */
  command: string;
  /** The flow of which the task is a step. Bulk actions leave steps out. */
  flow_id?: string | null;
  task_id: string;
  /** The task would wait for space in the budget, and not fail. */
  waits?: boolean;
}

export interface RejectedAttempt {
  faults: string[];
  /** The author: the model at `first` and `retry`, another one at `alternate`, none at `extract`. */
  step: string;
}

/** The rejected summaries of a compaction. */
export interface RejectedSummaries {
  attempts: RejectedAttempt[];
  created_at: string;
  /** The number of the compaction in its session. */
  generation: number;
  /** True if what passed is an extract, without a model. */
  is_extract?: boolean;
  session_id: string;
  turn: number;
  /** True if a later attempt passed the checks. */
  was_accepted_later: boolean;
}

export interface ReleasedLane {
  released: string;
}

export interface ReplacedMessage {
  /** The first 200 characters. */
  beginning: string;
  place: MessagePlace;
  role: string;
  seq: number;
  /** Number of its exact values, such as names and amounts. */
  values?: number;
  /** Number of those that the new context has word for word, in the summary or in kept texts. */
  values_shown?: number;
}

/** The text that replaces the messages. */
export interface Replacement {
  /** The position in the work, from rows: ids, hand-offs, the node's instructions, the waiting message. */
  flow?: Record<string, unknown> | null;
  /** Texts of people, word for word: whole prompts, and sentences of others. */
  prompts?: Record<string, unknown> | null;
  summary: string;
}

export interface ReplaySince {
  since: string;
}

export interface ReplayedMany {
  replayed: number;
  webhook_id: string;
}

/** A call of a turn that was made again, or will be. */
export interface Rerun {
  /** The text of the agent file that replaced the agent's own. Null: none. */
  agent_file?: string | null;
  /** The text of the answer; empty if it has only tool calls. */
  answer?: string | null;
  cache_creation_tokens?: number | null;
  cache_read_tokens?: number | null;
  /** The call of the turn, from 1. */
  call: number;
  cost_micros: number;
  created_at: string;
  ended_at?: string | null;
  /** The reason why there is no answer. */
  error?: string | null;
  id: string;
  /** Unknown token counts are null. */
  input_tokens?: number | null;
  /** True if the request had the same bytes as that of the turn. Null: one of the two was not sent. */
  is_same_request?: boolean | null;
  /** True if the cost is 0 only because no price was set for the model. */
  is_unpriced?: boolean;
  /** Number of the row in the ledger. */
  ledger_id?: number | null;
  /** The words of the one who asked. */
  metadata: Record<string, unknown>;
  model: string;
  /** Number of the rerun among those of the turn, from 1. */
  number: number;
  output_tokens?: number | null;
  /** True if the answer broke off at the limit for its length. */
  partial: boolean;
  provider: string;
  session_id: string;
  state: RerunState;
  /** The temperature that replaced the one of the call. Null: it was not replaced. */
  temperature?: number | null;
  /** Milliseconds until the end of the answer. */
  took_ms?: number | null;
  /** Tool calls of the answer. They are not executed. */
  tool_calls: ToolCall[];
  turn: number;
}

export type RerunState = 'queued' | 'done' | 'failed';

export interface RerunTurn {
  /** The text of an agent file: its prompt, skills, tools, model and options replace those of the call. */
  agent_file?: string | null;
  /** Number of the call in its turn, from 1. Without it, the first. */
  call?: number | null;
  /** Your own words, to find the rerun by: a JSON object of at most 4096 bytes. */
  metadata?: Record<string, unknown>;
  /** The model, of the same provider unless the agent file names another one. */
  model?: string | null;
  temperature?: number | null;
  /** Number of reruns. Without it, one. */
  times?: number | null;
}

export interface ResetAgent {
  /** True: the successors remember nothing. */
  fresh?: boolean;
}

export interface ResetAgents {
  /** True: the successors remember nothing. */
  fresh?: boolean;
}

export interface ResetSession {
  /** True: the successor remembers nothing. */
  fresh?: boolean;
}

export interface ResumeCredential {
  /** Its provider. Required if credentials of several providers with this name are paused. */
  provider?: string | null;
}

export interface ResumeOutcome {
  /** The name of the queue or the group. */
  resumed: string;
  was_paused: boolean;
}

export interface ResumedCredential {
  name: string;
  woken_tasks: number;
}

/** Result of retrying a job. */
export interface RetriedJob {
  /** The job that was named. */
  id: number;
  /** The job that runs the task now. */
  job_id?: number | null;
  /**
   * State of the job that runs now. `removed`: the task has moved on, nothing runs, and the dead letter is
   * deleted.
   */
  state: string;
  /** The task that the job runs or ran. */
  task_id?: string | null;
  task_state?: TaskState | null;
}

export type Role = 'system' | 'user' | 'assistant' | 'tool' | 'notice' | 'posts';

/** Ended runs of one step of a chart: a minute, if it shows one hour. */
export interface RunMinute {
  /** Runs that were done. */
  done: number;
  /** Runs whose job is a dead letter. */
  failed: number;
  /** Age of the step: 0 is the one that ends now. */
  minutes_ago: number;
}

/** One ended attempt. */
export interface RunRecord {
  /** Its number. */
  attempt: number;
  /** When it ended. */
  ended_at: string;
  /** Error of the run. */
  error?: string | null;
  /** The host of the worker, as long as the worker is kept. */
  host?: string | null;
  /** The lease it held. */
  lease: number;
  /** Outcome of the run. */
  outcome: string;
  /** The process of the worker. */
  pid?: number | null;
  /** When it was claimed. */
  started_at?: string | null;
  /** The worker of the run. */
  worker_id?: string | null;
}

export interface Schedule {
  catch_up_secs: number;
  created_at: string;
  cron: string;
  kind: string;
  lane?: string | null;
  last_fired_at?: string | null;
  last_job_id?: number | null;
  /** The latest slot that has fired; `last_fired_at` and `last_job_id` belong to it. */
  last_slot?: string | null;
  name: string;
  /** The next slot. Null while the schedule is paused. */
  next_slot?: string | null;
  pause_reason?: string | null;
  paused_at?: string | null;
  payload: unknown;
  queue: string;
  source: ScheduleSource;
  time_zone: string;
}

/** A schedule with its latest run by hand. */
export interface ScheduleDetail extends Schedule {
  last_manual_run?: ManualRun | null;
}

/** The origin of a schedule's timetable. */
export type ScheduleSource = 'built_in' | 'user';

/** All schedules: there are a handful. */
export interface Schedules {
  items: Schedule[];
}

export type Scope = 'read' | 'enqueue' | 'operate' | 'admin' | 'mcp';

export interface SecretRotation {
  /** Seconds during which the previous secret signs too: at most 30 days. */
  overlap_secs?: number;
}

/** The context of a call, as it was sent. */
export interface SentContext {
  /** Number of the call in its turn, from 1. Null for calls for summaries and facts. */
  call?: number | null;
  /** Number of calls of the turn with a stored context. Null for calls for summaries and facts. */
  calls?: number | null;
  /** The provider's own count of the prompt. Null if it reports none. */
  counted_tokens?: number | null;
  created_at: string;
  estimated_tokens: number;
  /** Number of the row in the ledger of a call for a summary or for facts. */
  ledger_id?: number | null;
  messages: Message[];
  model: string;
  /**
   * Each part with its source, and the reason why it was sent or left out. Calls for summaries and facts have
   * no parts.
   */
  parts: ContextPart[];
  /** The reason why the context cannot be shown exactly. */
  problem?: string | null;
  provider: string;
  purpose: UsagePurpose;
  request?: ProviderRequest | null;
  session_id: string;
  state: ContextState;
  system?: string | null;
  tools: ToolSpec[];
  /** The turn. Calls for summaries and facts are charged to the turn before them. */
  turn: number;
}

export interface Session {
  agent: string;
  campaign_id: string;
  closed_at?: string | null;
  closed_because?: SessionReason | null;
  context_tokens: number;
  /**
   * Cost of all calls of the session, also for summaries, facts and reruns, as the ledger records it. In
   * millionths of the currency.
   */
  cost_micros?: number;
  created_at: string;
  ephemeral: boolean;
  expires_at: string;
  external_session_id?: string | null;
  forked_at_turn?: number | null;
  /**
   * The session of which this one is a fork: it began with the messages up to `forked_at_turn`. That session
   * may be gone.
   */
  forked_from_session?: string | null;
  generation: number;
  id: string;
  instance: string;
  model: string;
  opened_because: SessionReason;
  /** The session that this one continues. Null also if that one was removed. */
  predecessor_id?: string | null;
  /**
   * SHA-256 of the prompt of the agent's file, for the lead together with the roster. Another one opens another
   * session.
   */
  prompt_hash?: string;
  provider: string;
  rebuild_because?: SessionReason | null;
  /**
   * Turns whose messages are not sent again. The provider has rejected their prompt, or a later prompt before
   * it had answered anything.
   */
  rejected_turns: number[];
  state: SessionState;
  successor_id?: string | null;
  token_count: number;
  turns: number;
  used_at: string;
}

/** Data of `session.compacted`. The context of a session shows a summary in place of older messages from now on. */
export interface SessionCompactedData {
  /**
   * `auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
   * `manual`: a person; `inherited`: of the predecessor.
   */
  cause: 'auto' | 'overflow' | 'manual' | 'inherited';
  /** Number of the compaction in its session, counted from 1. */
  generation: number;
  /** Generation that it continues. 0: none. */
  parent: number;
  /** Prompts of people that the context still has. Null: the compaction is older than this count. */
  prompts?: { archived: number; kept: number; sentences: number; shortened: number; } | null;
  /**
   * Step that wrote the summary: `first`, `retry`, `alternate` (another model) or `extract` (no model). Null:
   * unknown.
   */
  rung?: string | null;
  /** Tokens after. Null: unknown. */
  tokens_after?: number | null;
  /** Tokens of the history before. */
  tokens_before: number;
}

/**
 * Data of `session.compaction_not_needed`. A person asked for a compaction, and the session has nothing to
 * compact.
 */
export interface SessionCompactionNotNeededData {
  /** Reason in words. */
  because: string;
  /**
   * `auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
   * `manual`: a person; `inherited`: of the predecessor.
   */
  cause: 'auto' | 'overflow' | 'manual' | 'inherited';
  /** Job of the request. */
  job_id: number;
}

/**
 * Data of `session.compaction_refused`. At least one summary of a compaction was refused by the checks, also if
 * another one was accepted.
 */
export interface SessionCompactionRefusedData {
  /** Step whose summary was accepted. Null: none, and a person has to decide. */
  accepted?: string | null;
  /**
   * `auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long;
   * `manual`: a person; `inherited`: of the predecessor.
   */
  cause: 'auto' | 'overflow' | 'manual' | 'inherited';
  /** Number of the compaction in its session, counted from 1. */
  generation: number;
  /** The refused summaries. */
  refused: { refusals: string[]; rung: string; }[];
}

export interface SessionDetail extends Session {
  /** Compactions in the order of their creation, including refused ones. */
  compactions: Compaction[];
  /** The newest first. */
  last_turns: Turn[];
  /** The nodes of the session, in order. */
  nodes: NodeStay[];
  /** Numbers of those whose cost is 0 only because no price was set for their model. */
  unpriced_turns?: number[];
}

/** The explanation of a session's state. */
export interface SessionExplanation {
  /** The reason of the state. */
  because: string;
  /** The next step, and who takes it. */
  next: string;
  session_id: string;
  state: SessionState;
}

/** Data of `session.forked`. A new conversation has begun from a turn of another one. */
export interface SessionForkedData {
  /** Agent of the new conversation. */
  agent: string;
  /** Last turn that it has taken over. */
  forked_at_turn: number;
  /** Session that it was made from. */
  forked_from_session: string;
  /** Messages that it has taken over. */
  inherited_messages: number;
  /** It has taken over a summary. */
  inherited_summary: boolean;
  /** Its instance. */
  instance: string;
}

/** The session that a task asks for. */
export type SessionMode = 'continue' | 'fresh' | 'none';

/**
 * Data of `session.opened`. The turn that begins has opened the first session of its conversation, or a session
 * that no later task continues.
 */
export interface SessionOpenedData {
  /** The session belongs to this task alone (`session_mode` `none`). */
  ephemeral: boolean;
}

/** Reason why a session was opened, is to be rebuilt, or was closed. */
export type SessionReason =
  | 'new'
  | 'prompt_changed'
  | 'model_changed'
  | 'provider_changed'
  | 'context_full'
  | 'expired'
  | 'reset'
  | 'lost'
  | 'poisoned'
  | 'fresh'
  | 'ended'
  | 'campaign_closed';

/**
 * Data of `session.rebuilt`. The turn that begins has opened a new session for a conversation that had one
 * before.
 */
export interface SessionRebuiltData {
  /**
   * Reason for the new session: `lost`: the provider no longer has the old one; `poisoned`: it rejects the old
   * conversation; `ended`: the old one was made for one task.
   */
  because: 'new' | 'prompt_changed' | 'model_changed' | 'provider_changed' | 'context_full' | 'expired' | 'reset' | 'lost' | 'poisoned' | 'fresh' | 'ended' | 'campaign_closed';
  /** Messages that the new session has taken over. */
  inherited_messages: number;
  /** It has taken over a summary. */
  inherited_summary: boolean;
  /** Older messages that were too long to be taken over. Null: none. */
  left_out?: { first_turn: number; last_turn: number; messages: number; } | null;
}

/** Data of `session.reset`. A person has requested that the next task of a session opens a successor. */
export interface SessionResetData {
  /** The successor begins empty. */
  fresh: boolean;
}

export type SessionState = 'idle' | 'running' | 'interrupted' | 'error' | 'closed';

/** Data of `session.uncompacted`. A person has undone the compaction that a session shows. */
export interface SessionUncompactedData {
  /** Generation that the session shows now. 0: none. */
  generation: number;
}

/** The messages in order, in the form that other systems use. */
export type SessionView = Record<string, unknown>[];

export type SetBudgetOutput = OwnedBudget | null;

/** A setting of the process with its origin. Secrets are not shown. */
export interface Setting {
  /** True if the value is the built-in default. */
  is_default?: boolean;
  key: string;
  /** The built-in defaults, a file, a variable or a flag, in words. */
  origin: string;
  value: unknown;
}

/** A key with its text, which no other answer has. */
export interface ShownKey extends ApiKey {
  secret: string;
}

export interface SignIn {
  /** The name that the browser gave. */
  browser?: string | null;
  created_at: string;
  ended_at?: string | null;
  expires_at: string;
  id: string;
  /** The API key that was exchanged. Null: the key of the configuration. */
  key_id?: string | null;
  /** The address that signed in. */
  peer?: string | null;
}

export interface Skill {
  description: string;
  name: string;
}

/** An entry that a turn has skipped. */
export interface SkippedEntry {
  because: string;
  /** `provider/model`. */
  entry: string;
  /** Null: unknown, or only this turn skips it. */
  usable_at?: string | null;
}

/** A part of a snippet. */
export interface SnippetPart {
  is_match: boolean;
  text: string;
}

/** A file of an agent, a skill, a node or a flow template. */
export interface SourceFile {
  /** True: the file comes with Dalsegno. A folder of the installation replaces all files of its kind. */
  is_built_in: boolean;
  /** The object that a file describes. */
  kind: 'agent' | 'skill' | 'node' | 'flow';
  name: string;
  /** The path on the host of the service. */
  path: string;
  /** A file with problems is refused. */
  problems: AgentFileProblem[];
}

/** A file with its text. */
export interface SourceText extends SourceFile {
  /** Null: the file cannot be read. */
  text?: string | null;
}

export interface StepEstimate {
  agent: string;
  charge?: ChargeRange | null;
  model: string;
  provider: string;
  step: string;
  tasks: number;
}

/** One row of a transcript. */
export interface StoredMessage extends Message {
  created_at: string;
  id: string;
  /** True if the answer broke off when its turn was interrupted. */
  partial: boolean;
  /**
   * True if the message is not sent again. The provider has rejected the prompt of its task, or a later prompt
   * before it had answered anything.
   */
  rejected: boolean;
  seq: number;
  turn: number;
}

export interface SummaryCounts {
  applied: number;
  /** Compactions without any summary that passed the checks. */
  refused: number;
  /** Attempts that failed a check. A better one may have followed. */
  rejected_attempts: number;
  /** Applied ones whose messages are shown again. */
  undone: number;
}

/** A table with its size. */
export interface TableSize {
  /** Rows that were added since the statistics began. */
  added: number;
  /** With indexes and long texts. */
  bytes: number;
  /** Its sizes on days of the last month on which a cleanup ran, the earliest first. */
  days?: DaySize[];
  index_bytes: number;
  /** Rows that were removed since then. */
  removed: number;
  /** As the statistics of the server estimate them. */
  rows: number;
  table: string;
}

export interface Task {
  agent: string;
  budget_micros?: number | null;
  budget_tokens?: number | null;
  campaign_id: string;
  created_at: string;
  ended_at?: string | null;
  error?: string | null;
  id: string;
  instance: string;
  job_id: number;
  prompt: string;
  /** The answer. Of a failed task: its last answer, which does not match the schema. */
  result?: string | null;
  /** The answer as JSON, if the task has a result schema and the answer matches it. */
  result_json?: Record<string, unknown> | null;
  session_id?: string | null;
  session_mode: SessionMode;
  spent_micros: number;
  spent_tokens: number;
  started_at?: string | null;
  state: TaskState;
  turn?: number | null;
}

export type TaskAction = 'cancel' | 'retry';

/** The wait of a task for a batch. */
export interface TaskBatch {
  /** The task waits for the batch until then, and then makes an ordinary call. */
  answer_by: string;
  /** The provider's id. Null: it is unknown if the provider has received the request. */
  batch_id?: string | null;
  /** The time at which the batch was cancelled, because that moment has passed. */
  cancelled_at?: string | null;
  model: string;
  /** The error of the last look at the batch. */
  problem?: string | null;
  provider: string;
  sent_at: string;
}

/** Result of the cancellation of a task. */
export interface TaskCancellation {
  /** Results for its descendants: its children and continuations. */
  below: CancelledBelow;
  /** Result for the named task. */
  cancel: TaskCancelled;
}

export type TaskCancelled = 'at_once' | 'requested' | 'at_safe_point' | 'had_ended';

/** Data of `task.cancelled`. A task was cancelled while no turn of it ran. */
export interface TaskCancelledData {
  /** In place of `reason`: a worker found the task cancelled, or its job had ended. */
  because?: string;
  /** Reason of the cancellation by a person, a program or another task. */
  reason?: string;
}

export interface TaskDetail extends Task {
  /** The author, as in the audit log. Null if the task was added neither through the API nor the command line. */
  added_by?: string | null;
  batch?: TaskBatch | null;
  /** The reason of the cancellation, from the caller or from the task that it waited for. */
  cancelled_because?: string | null;
  /** The tasks that it has added as children, in order, at most 200. */
  children?: WaitedFor[];
  /** The task that this one continues. */
  continues_id?: string | null;
  /** The output files: those that its agent has written, and those that could not be stored. */
  files?: TaskFile[];
  /** The flow that it is a part of. */
  flow_id?: string | null;
  /** The flow templates that the agent may start in the task. Null: those of the agent's file. */
  flow_templates?: string[] | null;
  metadata: Record<string, unknown>;
  /** The node that the task belongs to. Null: the session stays at its node. */
  node?: string | null;
  /** Named values that its calls contain. */
  parameters?: Record<string, unknown>;
  /** The parent: the task that added this one as a child. */
  parent_id?: string | null;
  /** 0 is the most urgent; 100 is the default. */
  priority?: number;
  /**
   * The version of the agent's prompt that its last attempt used: the hash with which the session was made.
   * Null: no attempt has reached a session, the session was removed, or an older version has answered.
   */
  prompt_hash?: string | null;
  /** The fault of the last answer, while the task waits for a corrected one. */
  result_fault?: string | null;
  /** The JSON Schema that the answer has to match. Null: that of the agent's file, if it has one. */
  result_schema?: Record<string, unknown> | null;
  /** The earliest start. Null: at once. */
  run_at?: string | null;
  /** Its step in the flow. */
  step?: string | null;
  tags: string[];
  /** The attempts that reached a session, in order. */
  turns: Turn[];
  /** The calls of its attempts for whose model no price was set: their cost counts as 0. */
  unpriced_calls?: UnpricedCalls[];
  waiting?: TaskWaiting | null;
  /** Seconds that the answer may take. Null: no time was given. */
  within_secs?: number | null;
}

/** The explanation of a task's state. */
export interface TaskExplanation {
  /** The reason of the state. */
  because: string;
  /** The next step, and who has to take it. */
  next: string;
  state: TaskState;
  task_id: string;
}

/**
 * Data of `task.failed`. A task has failed outside of a turn: no turn of it can begin, or its worker was lost
 * in the last attempt.
 */
export interface TaskFailedData {
  /** In place of `error`: error of the job that was lost. */
  because?: string;
  /** Error of the task, if its turn could not begin. */
  error?: string;
}

/** A file of a task, or one that could not be stored. */
export interface TaskFile {
  direction?: FileDirection;
  /** By its content. Null: it is not stored. */
  media_type?: string | null;
  n_bytes?: number | null;
  /** A relative path, with `/` between its parts. */
  name: string;
  /** The reason why it is not stored. */
  problem?: string | null;
  /** In hexadecimal. */
  sha256?: string | null;
  stored_at: string;
  /** The turn that has written it last. Null: it is an attachment. */
  turn?: number | null;
}

export interface TaskFiles {
  items: TaskFile[];
}

/** A filter for tasks. Absent keys match everything. */
export interface TaskFilter {
  agent?: string | null;
  campaign_id?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  /** Tasks that ended at this moment or later. */
  ended_after?: string | null;
  /** All campaigns but this one. */
  except_campaign_id?: string | null;
  instance?: string | null;
  /** All of these keys with these values. */
  metadata?: Record<string, unknown> | null;
  state?: TaskState | null;
  /** All of these. */
  tags?: string[];
  /** In the prompt, whether in capitals or not. */
  text?: string | null;
}

/**
 * Data of `task.interrupted`. A person has interrupted the running turn of a task. `turn.interrupted` or
 * another end follows.
 */
export interface TaskInterruptedData {
  /** `hard`: at once; `soft`: at the next point at which nothing is cut in two. */
  how: 'soft' | 'hard';
  /** Reason, as the person gave it. */
  reason: string;
}

export interface TaskLimitChange {
  micros?: number | null;
  /** Spending in money at which a warning is written, once. */
  soft_micros?: number | null;
  /** Spending in tokens at which a warning is written, once. */
  soft_tokens?: number | null;
  tokens?: number | null;
}

/** A task in one line. */
export interface TaskLine {
  agent: string;
  campaign_id: string;
  ended_at?: string | null;
  /** The beginning of the error. */
  error?: string | null;
  id: string;
  instance: string;
  /** Its last job; beside the runs of a worker the job of the run, after which a retried task has others. */
  job_id?: number;
  /** The beginning of the prompt, or of its line that mentions the agent. */
  prompt: string;
  session_id?: string | null;
  started_at?: string | null;
  turn?: number | null;
}

/** A task that another one waits for. */
export type TaskLink = string | { item: number; } | { key: string; };

/** A waiting task after a change of its priority. */
export interface TaskPriority {
  /** The priority before the change. */
  before: number;
  priority: number;
  task_id: string;
}

/** Data of `task.queued`. A task was added, in any way, or was put on the queue again. */
export interface TaskQueuedData {
  /** `true`: the task had ended and is retried. Missing for a new task. */
  again?: boolean;
  /** Agent of a new task. Missing if it was put on the queue again. */
  agent?: string;
  /** Its instance, with the agent. */
  instance?: string;
}

export type TaskState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

/** The tasks that a task waits for or has waited for, without their results. */
export interface TaskWaiting {
  /** In the order in which the task gets their results. */
  depends_on: WaitedFor[];
  on_failure: OnFailure;
  /** True while the task waits. */
  waits: boolean;
}

/**
 * Data of `task.waiting`. The turn of a task may not begin yet: its agent or flow is paused, its provider is
 * busy, or a budget or rate limit has no space. Written once, until the turn begins or the task ends. Also
 * written once for a turn that has begun, when it waits for a message batch.
 */
export interface TaskWaitingData {
  /** Reason in words. */
  because: string;
}

export interface Template {
  description: string;
  improvement?: FlowImprovement | null;
  inputs: FlowInput[];
  name: string;
  /** Steps in an order in which each waits only for earlier ones. */
  steps: FlowStep[];
}

/** A text that was found. */
export interface TextHit {
  /** When it was written; of a task: when it was added. */
  at: string;
  /**
   * The agent of a task, a message or a summary; the user that a fact is about; the sender or author of the
   * others. Empty if no author is known.
   */
  author: string;
  /** Null for a fact that was stated outside of campaigns. */
  campaign_id?: string | null;
  /**
   * Id of the task, the post, the item, the fact or the message; of the session for a summary, of the campaign
   * for a brief or a blackboard.
   */
  id: string;
  kind: TextKind;
  /**
   * The place of a message in its transcript, or of a post on its board; the generation of a summary; the
   * version of a brief or a blackboard.
   */
  seq?: number | null;
  /** The session of a message or a summary. */
  session_id?: string | null;
  /** The passages that match. */
  snippet: SnippetPart[];
}

export type TextKind = 'task' | 'post' | 'memory' | 'message' | 'summary' | 'brief' | 'blackboard' | 'fact';

export type Think = 'off' | 'on' | 'low' | 'medium' | 'high';

export interface ToolCall {
  arguments: unknown;
  id: string;
  name: string;
  /**
   * Thinking before the call, in the form of the provider that made it. Only that provider reads it, and sends
   * it back unchanged.
   */
  thinking?: unknown;
}

/** A tool that the service ran for a turn, as the progress of the turn tells. */
export interface ToolRun {
  /** Time of the event that reported the end, which may be about a second late. */
  ended_at: string;
  is_error: boolean;
  took_ms: number;
  tool: string;
}

/** A tool that a model may call, as described to the model. */
export interface ToolSpec {
  description: string;
  /** JSON schema of its arguments, which are an object. */
  input_schema: unknown;
  name: string;
}

/** A message in the provider's transcript. */
export interface TranscriptEntry extends Message {
  /** True if the provider's program has added it in the user's name. */
  added: boolean;
  /** Id of its first line. */
  line_id: string;
}

export interface Turn {
  attempt: number;
  cache_creation_tokens: number;
  cache_read_tokens: number;
  calls: number;
  chain?: ChainChoice | null;
  cost_micros: number;
  ended_at?: string | null;
  error?: string | null;
  /** Notes for people. `put_off`: the turn failed only because its provider is busy, or its budget has no space. */
  flags: string[];
  history_check?: HistoryCheck | null;
  input_tokens: number;
  job_id: number;
  lease: number;
  number: number;
  output_tokens: number;
  session_id: string;
  started_at: string;
  state: TurnState;
  task_id: string;
}

/** A turn with its calls, and what each of them was sent. */
export interface TurnDetail extends ListedTurn {
  /**
   * Time at which the worker claimed the job for this run. Null while it runs, and after
   * `queue.keep.runs_days`.
   */
  claimed_at?: string | null;
  /**
   * The contexts of the calls for the answer, stored with the end of the turn. Empty while it runs, and if its
   * worker was lost.
   */
  contexts: CallContext[];
  /**
   * Posts since the turn before that the agent did not see, because they are addressed to others: the newest
   * 20.
   */
  hidden_posts?: HiddenPost[];
  /**
   * The rows of the ledger. Calls for summaries and facts are charged to the turn before them, and are not part
   * of its counters.
   */
  ledger: LedgerCall[];
  /** Place of the prompt in the transcript of the session. Null if the turn ended before it was stored. */
  prompt_seq?: number | null;
  /** The turn that stored the prompt. It is earlier if the turn repeats a task. */
  prompt_turn?: number | null;
  /**
   * The tools that the service ran, in the order of their ends, at most 200. Empty if the provider ran its own
   * tools, and after the events of the turn were removed from the feed.
   */
  tools?: ToolRun[];
}

/** Data of `turn.done`. A turn has ended with an answer, and its task is done. */
export interface TurnDoneData {
  /** On Claude: the CLI was started before the turn. Null elsewhere. */
  ahead?: boolean | null;
  /**
   * On Claude: state of the transcript at the begin. `restored`: it was missing or damaged; `rewritten`: it was
   * lost and made again from the messages. Null elsewhere.
   */
  began?: 'new' | 'resumed' | 'restored' | 'rewritten' | null;
  /** Calls of the provider. Null on Claude, whose CLI makes them itself. */
  calls?: number | null;
  /** Number of output files, if there are any. */
  files?: number;
  /** Tokens of all prompts of the turn, cached ones included. Null: the provider reported none. */
  input_tokens?: number | null;
  /** Tokens of all answers of the turn. Null: the provider reported none. */
  output_tokens?: number | null;
  /** Structured result of a task with a result schema. */
  result_json?: unknown;
  /** Tool calls that the service ran. Null on Claude. */
  tools?: number | null;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

/** Data of `turn.failed`. A turn has failed. With `again` the task continues; otherwise it has failed. */
export interface TurnFailedData {
  /**
   * The task gets another turn: a retry, a correction of its structured result, or a turn with a smaller
   * context.
   */
  again: boolean;
  /** Error, with its causes. */
  error: string;
  /** Reason for which the next turn opens a new session; null if it continues this one. Only of retries. */
  rebuild?: string | null;
  /** The provider rejects the prompt, so the next task is told that it was not answered. Only without `again`. */
  rejected?: boolean;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

/**
 * Data of `turn.interrupted`. A running turn was stopped: its task was cancelled, its worker shuts down, or an
 * attempt was cut off.
 */
export interface TurnInterruptedData {
  /** The task gets another turn. `false`: it was cancelled. */
  again: boolean;
  /** Reason in words. */
  because: string;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

/** A part of a turn, as far as its cost goes. */
export type TurnPart =
  | 'compaction'
  | 'provider'
  | 'tools'
  | 'system'
  | 'summary'
  | 'messages'
  | 'posts'
  | 'state'
  | 'prompt'
  | 'further_calls'
  | 'answer';

/**
 * Data of `turn.progress`. A running turn has more text, another state or an ended tool. Written about once a
 * second at most, and at the end of each tool. The whole answer is the `result` of the task.
 */
export interface TurnProgressData {
  /** Size of the answer so far, in bytes. Begins again with each call of the turn. */
  bytes: number;
  /** `text` lacks the end of the new text: it has at most 2,000 characters. */
  cut: boolean;
  /** Tools that have ended since the last event, in this order. */
  ended_tools: { is_error: boolean; name: string; took_ms: number; }[];
  /** State of the model, as far as the provider tells it. */
  status?: 'thinking' | 'answering' | null;
  /** New text of the answer since the last event. */
  text: string;
  /** Tool that the model is calling. Null: none. */
  tool?: string | null;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

/** Reruns of a call of a turn, in order. */
export interface TurnReruns {
  /** The reason why reruns with another temperature are refused. Null: the temperature can be set. */
  fixed_temperature?: string | null;
  original: OriginalCall;
  reruns: Rerun[];
}

/**
 * Data of `turn.snoozed`. A turn has ended without an answer and is tried again later, without using up an
 * attempt.
 */
export interface TurnSnoozedData {
  /** Seconds until then. Missing if a budget has to have space first. */
  again_after_secs?: number;
  /** Reason in words. */
  because: string;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

/**
 * Data of `turn.started`. A turn has begun: its session is locked, its budget is reserved, and the call of the
 * provider follows.
 */
export interface TurnStartedData {
  /** Name of the model. */
  model: string;
  /** Name of the provider. */
  provider: string;
  /** Number of the turn in its session, counted from 1. */
  turn: number;
}

export type TurnState = 'running' | 'done' | 'interrupted' | 'failed';

/** A mentioned name that no agent has. */
export interface UnknownName {
  name: string;
  /** The closest known name. */
  nearest?: string | null;
}

/** Calls of a turn for whose model no price was set, and for which the provider reports no cost. */
export interface UnpricedCalls {
  model: string;
  provider: string;
  session_id: string;
  turn: number;
}

export type UsageOutcome = 'done' | 'failed' | 'interrupted';

export type UsagePurpose = 'turn' | 'summary' | 'facts' | 'rerun';

/** Cost of all calls of one agent, model and purpose. */
export interface UsageTotal {
  agent: string;
  cache_creation_tokens: number;
  cache_read_tokens: number;
  calls: number;
  cost_micros: number;
  input_tokens: number;
  model: string;
  output_tokens: number;
  provider: string;
  purpose: UsagePurpose;
}

/** A rate limit that workers use, and the tasks that wait for it. */
export interface UsedRateLimit {
  /** Per minute; of concurrent calls, at once. */
  amount: number;
  /** Neither used nor leased by a worker. Negative: a debt, which flows off before a further call begins. */
  available: number;
  /** The campaign, if it limits the calls of one. */
  campaign_id?: string | null;
  /** Its identity: provider, model, credential, campaign and measure, with `*` for all. */
  key: string;
  /** The amount that a limit counts. */
  measure: 'requests' | 'input_tokens' | 'output_tokens' | 'concurrent_calls';
  /** The calls that it limits, in words. */
  subject: string;
  /** The time from which the first of them has waited. */
  waiting_since?: string | null;
  waiting_tasks: number;
}

/** All limits, in one page: rules make a few, and one per campaign at most. */
export interface UsedRateLimits {
  items: UsedRateLimit[];
}

export type UserOfCampaign = CampaignUser | null;

/** The place of an exact value in the new context, word for word. */
export type ValuePlace = 'summary' | 'kept_text' | 'archive';

/** The results of a variant in a run. */
export interface VariantResult {
  agent: string;
  /** Finished answers. */
  answers: number;
  /** Median time from the start of a task or of a call to its end. */
  median_ms?: number | null;
  /** Cost in millionths, without the judge. */
  micros: number;
  /** Answers that passed all checks. */
  passed: number;
  tokens: number;
  variant: string;
}

/** The result of assembling a stored call again. */
export interface VerifiedCall {
  /** Number of the call in its turn, from 1. Null for calls for summaries and facts. */
  call?: number | null;
  /** Number of the row in the ledger of a call for a summary or for facts. */
  ledger_id?: number | null;
  /** The reason why the context cannot be shown exactly. */
  problem?: string | null;
  purpose: UsagePurpose;
  state: ContextState;
  /** The turn. Calls for summaries and facts are charged to the turn before them. */
  turn: number;
}

/** The waiting jobs of a queue with one reason. */
export interface WaitCount {
  /** Number of jobs. */
  jobs: number;
  /** When the first of them is due, if they wait for a time. */
  next_at?: string | null;
  /** When the oldest of them was put on the queue. */
  oldest_at: string;
  /** The queue. */
  queue: string;
  /** Since when the first of them is ready, if they wait for a slot or for the end of a pause. */
  ready_at?: string | null;
  /** The reason. */
  reason: WaitReason;
}

/**
 * The longest wait for a start among the tasks that were added in one step of a chart: in a minute, if it shows
 * one hour.
 */
export interface WaitMinute {
  longest_secs: number;
  /** Age of the step: 0 is the one that ends now. */
  minutes_ago: number;
}

/** A reason for which a job waits. */
export type WaitReason =
  | 'slot'
  | 'pause'
  | 'lane'
  | 'lane_hold'
  | 'later'
  | 'retry'
  | 'snooze'
  | 'provider'
  | 'batch'
  | 'condition'
  | 'crash'
  | 'signal'
  | 'person'
  | 'failure';

export interface WaitedFor {
  agent: string;
  instance: string;
  state: TaskState;
  task_id: string;
}

/** Waiting jobs by queue and reason. */
export interface WaitingJobs {
  items: WaitCount[];
  /** Tasks that wait for space in a budget; their jobs have the reason `condition`. */
  waiting_for_budget?: number;
  /** Tasks that wait for a rate limit; their jobs have the reason `condition`, too. */
  waiting_for_rate_limit?: number;
}

/** A way in which the turn could begin. */
export type Way = 'resume' | 'compact_first' | 'new_session';

/** The estimate of one way. */
export interface WayEstimate {
  charge?: ChargeRange | null;
  /** Likely input of each call of the turn. */
  first_call_tokens?: number | null;
  /** Tokens by which the input of each further call is likely to grow. */
  further_call_tokens?: number | null;
  /** The reason why the way is not possible now. All numbers are then null. */
  impossible?: string | null;
  /** True for the way that the next turn takes by itself. */
  is_next: boolean;
  /**
   * The parts of the turn, in the order in which they are sent. Each range stands for itself: lows and highs do
   * not add up to those of the turn.
   */
  parts: PartEstimate[];
  way: Way;
}

/** A webhook, without its secrets. */
export interface Webhook {
  /** Limits the webhook to the tasks of this campaign. Null: all campaigns. */
  campaign_id?: string | null;
  created_at: string;
  disabled_because?: string | null;
  enabled: boolean;
  failing_since?: string | null;
  id: string;
  kinds: string[];
  /** Time until which two secrets sign side by side. */
  rotates_until?: string | null;
  url: string;
}

/** Kind of message that a webhook subscribes to. */
export type WebhookKind = 'task.done' | 'task.failed' | 'task.cancelled' | 'budget.warning';

/** The message about the end of a task, as a delivery sends it. */
export interface WebhookMessage {
  /** The body, byte for byte: a JSON object. */
  body: string;
  /** `task.done`, `task.failed` or `task.cancelled`. */
  kind: string;
  task_id: string;
}

/** A webhook with its secret, which no other answer has. */
export interface WebhookWithSecret extends Webhook {
  secret: string;
}

/** All webhooks: there are a handful. */
export interface Webhooks {
  items: Webhook[];
}

/** A stretch of a text. */
export interface WordChange {
  kind: WordChangeKind;
  text: string;
}

export type WordChangeKind = 'same' | 'added' | 'removed';

/** One incarnation of a worker process. */
export interface Worker {
  /** When it stopped, or was declared lost. */
  gone_at?: string | null;
  /** `stopped` or `lost`. */
  gone_reason?: string | null;
  /** The host of the process. */
  host: string;
  /** Made when it started; never used again. */
  id: string;
  /** Its process there. */
  pid: number;
  /** Queues that it serves. */
  queues: string[];
  /** When it started. */
  started_at: string;
}

/** Workers with their runs, over the last minutes. */
export interface WorkerActivity {
  /** Running ones first; at most 500, and at most 500 that have ended. */
  runs: WorkerRun[];
  since: string;
  /**
   * The tasks of the runs of one worker, by the job of the run: also those that were retried as another job
   * since, if the run had a turn or was the first one.
   */
  tasks?: TaskLine[];
  /** Live workers first, those that started last first; at most 50. */
  workers: WorkerLoad[];
}

/** A worker process with what it runs and what it has run. */
export interface WorkerLoad {
  /** True: it takes no more jobs, and ends. */
  draining: boolean;
  /** When it stopped, or was declared lost. */
  gone_at?: string | null;
  /** `stopped` or `lost`. */
  gone_reason?: string | null;
  /** Its host. */
  host: string;
  /** The process. */
  id: string;
  /** Its jobs are given to others after this time, unless it renews its lease. */
  lease_until: string;
  /** Its process there. */
  pid: number;
  /** Queues that it serves. */
  queues: string[];
  /** Jobs that it runs at once. */
  slots: number;
  /** When it started. */
  started_at: string;
  /** Its version. */
  version: string;
}

/** A run of a job, which may not have ended yet. */
export interface WorkerRun {
  /** When it ended. Null while it runs. */
  ended_at?: string | null;
  /** The job. */
  job_id: number;
  /** Its kind. */
  kind: string;
  /** Its lane. */
  lane?: string | null;
  /** `done`, `retry`, `failed` and so on. Null while it runs. */
  outcome?: string | null;
  /** When it was claimed. */
  started_at: string;
  /** The worker. */
  worker_id: string;
}

/** The data of events, by kind. Newer services may send further kinds and fields. */
export interface EventData {
  'agent.paused': AgentPausedData;
  'agent.resumed': AgentResumedData;
  'blackboard.changed': BlackboardChangedData;
  'budget.refused': BudgetRefusedData;
  'budget.warning': BudgetWarningData;
  'campaign.edited': CampaignEditedData;
  'campaign.erasing': CampaignErasingData;
  'conversation.moved': ConversationMovedData;
  'facts.read': FactsReadData;
  'facts.refused': FactsRefusedData;
  'flow.ended': FlowEndedData;
  'flow.paused': FlowPausedData;
  'flow.resumed': FlowResumedData;
  'flow.retried': FlowRetriedData;
  'flow.started': FlowStartedData;
  'memory.published': MemoryPublishedData;
  'memory.revoked': MemoryRevokedData;
  'node.entered': NodeEnteredData;
  'post.added': PostAddedData;
  'session.compacted': SessionCompactedData;
  'session.compaction_not_needed': SessionCompactionNotNeededData;
  'session.compaction_refused': SessionCompactionRefusedData;
  'session.forked': SessionForkedData;
  'session.opened': SessionOpenedData;
  'session.rebuilt': SessionRebuiltData;
  'session.reset': SessionResetData;
  'session.uncompacted': SessionUncompactedData;
  'task.cancelled': TaskCancelledData;
  'task.failed': TaskFailedData;
  'task.interrupted': TaskInterruptedData;
  'task.queued': TaskQueuedData;
  'task.waiting': TaskWaitingData;
  'turn.done': TurnDoneData;
  'turn.failed': TurnFailedData;
  'turn.interrupted': TurnInterruptedData;
  'turn.progress': TurnProgressData;
  'turn.snoozed': TurnSnoozedData;
  'turn.started': TurnStartedData;
}
