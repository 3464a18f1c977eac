-- Comments of the functions and views that other systems and operators call: docs/reference/sql.md is made from them.
--
-- Changes comments only. In a comment of a function, a line with two blanks after its first word describes an argument.

-------------------------------------------------------------------------------------------- tasks
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb) is
$comment$Adds a task for an agent of a campaign, in the caller's transaction: the task and its job exist exactly if it commits.

campaign_id      an open campaign
agent            the name of an agent file. The database does not know the files: a task for an unknown agent is accepted and fails with
                 that reason
prompt           the request; at most dalsegno.max_prompt_bytes (262144)
instance         a numbered or named copy of the agent; each has a conversation of its own
session_mode     continue: the conversation continues; fresh: it begins without a history; none: a session that no later task continues.
                 The session mode of the agent file does not apply
budget_micros, budget_tokens  limits of the task: millionths of the currency, tokens. NULL: no limit
idempotency_key  at most 195 characters. The same key with the same request returns the same task (created = false); another request
                 under the key raises DS409. SQL, the command line and HTTP without an API key share their keys
priority         0 is the most urgent, 100 the default
run_at           the earliest start. NULL: now
tags             at most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters. No prompt contains them
metadata         a JSON object of at most 8192 bytes. No prompt contains it
flow_templates   the flow templates that the agent may start in this task; an empty array: none. NULL: those of the agent file. Names
                 without a file are ignored
result_schema    the JSON Schema that the answer has to match; the task then has the answer in result_json, too. NULL: that of the agent
                 file

Returns the id of the task, and in created whether this call added it.

Raises DS400 for a wrong argument, DS404 for an unknown campaign, DS409 for a closed campaign, for a budget that is used up and lets
tasks fail, and for a key of another request, DS413 for a prompt that is too long. Each has a hint.

Locks the lane of the conversation until the caller's transaction ends, so that tasks run in the order of commits: keep the transaction
short, and call the function near its end.$comment$;

comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb) is
$comment$Adds a task that waits for others. The arguments that are not listed here have the meaning that they have without depends_on.

depends_on       at most 1000 tasks of the same campaign, also of this transaction. When all of them have ended, the task runs, and its agent
                 gets their results in this order. It holds no slot meanwhile, and later tasks of its conversation may run before it. An
                 empty array: it waits for nothing
on_failure       run: it runs in any case, and the agent is told of the failures; cancel: it is cancelled when one of them has failed or
                 was cancelled
parent_id        the task that adds this one as a child: cancelling the parent cancels the child

Raises DS404 also for a task that does not exist, or belongs to another campaign.$comment$;

comment on function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text, text) is
$comment$The digest of a request, which an idempotency key compares: SHA-256 in hexadecimal over the parts of the request, each in UTF-8 with its
length in bytes before it (eight bytes, big-endian).

The parts, in this order:

campaign         in lower case with hyphens
agent, instance, prompt  as they are
limits           session mode, money and tokens with one blank between: Continue, Fresh or None; each limit None or Some(<decimal number>)
links            for a task that waits or has a parent: "after <ids, with commas> <run or cancel>", then " parent <id>"
node             over HTTP and the command line only: "node <name>"
flows            with flow_templates: "flows <names, with commas>"
schema           with result_schema: "result_schema <dalsegno.canonical_json>"

The form is the same in every version.$comment$;

comment on column dalsegno.tasks.id is 'The id that dalsegno.add_task returned.';
comment on column dalsegno.tasks.state is 'queued (also while it waits), running, done, failed, cancelled.';
comment on column dalsegno.tasks.result is 'The answer. NULL: the task is not done.';
comment on column dalsegno.tasks.error is 'The error of a failed task.';
comment on column dalsegno.tasks.created_at is 'The time at which the task was added.';
comment on column dalsegno.tasks.ended_at is 'The time at which the task ended. NULL: it is open.';

comment on table dalsegno.task_labels is 'Tags and metadata of tasks that have some, for finding them. Both are indexed.';
comment on column dalsegno.task_labels.task_id is 'The task.';
comment on column dalsegno.task_labels.tags is 'At most 16 short names.';
comment on column dalsegno.task_labels.metadata is 'A JSON object.';

----------------------------------------------------------------------------------- agents, sessions
comment on function dalsegno.agent_statuses(uuid, timestamptz) is
$comment$The current state of each agent of a campaign that has a conversation or open tasks, by instance. Agents without a row are idle.

of_campaign      the campaign
at               the time at which pauses of credentials are compared, usually now()

state is working (a job of the agent runs), limited (its credential is paused, or a rate limit has put off its next task), waiting (it has
open tasks, and none runs), error (its last task has failed, and none is open) or idle. task_id is the running task, waiting the number of
open tasks that do not run, until the time at which the next one may run again.$comment$;

comment on function dalsegno.running_tool(uuid) is
$comment$The tool that the running turn of a task is calling, from its latest progress, and the time of that progress. No row if it calls none.

of_task          the task$comment$;

comment on view dalsegno.agent_states is
  'The past states of agents, with start and reason. Derived from turns and pauses; it reaches as far back as these are kept. '
  'dalsegno.agent_statuses() has the current state.';
comment on column dalsegno.agent_states.agent is 'The agent.';
comment on column dalsegno.agent_states.campaign_id is 'NULL: a pause in all campaigns.';
comment on column dalsegno.agent_states.instance is 'NULL: all instances of the agent.';
comment on column dalsegno.agent_states.session_id is 'The session of the turn. NULL: a pause.';
comment on column dalsegno.agent_states.task_id is 'The task of the turn. NULL: a pause.';
comment on column dalsegno.agent_states.at is 'The start of the state.';
comment on column dalsegno.agent_states.state is 'working, idle, error, interrupted, paused, resumed.';
comment on column dalsegno.agent_states.because is 'The error of the turn, the reason of the pause, or the person that has ended it.';

comment on view dalsegno.session_states is
  'The past states of sessions, with start and reason. Derived from turns; it reaches as far back as these are kept.';
comment on column dalsegno.session_states.campaign_id is 'The campaign.';
comment on column dalsegno.session_states.agent is 'The agent.';
comment on column dalsegno.session_states.instance is 'Its instance.';
comment on column dalsegno.session_states.session_id is 'The session.';
comment on column dalsegno.session_states.turn is 'The turn that caused the state. NULL: the begin or the end of the session.';
comment on column dalsegno.session_states.at is 'The start of the state.';
comment on column dalsegno.session_states.place is 'The order of the states of a session.';
comment on column dalsegno.session_states.state is
  'idle, running, error, interrupted, closed. A turn that failed after it had used tools is error here, and interrupted in the session.';
comment on column dalsegno.session_states.because is 'The reason of the begin or end of the session, or the error of the turn.';

comment on view dalsegno.session_histories is 'Sessions with the history that the next call contains, as one JSON array.';
comment on column dalsegno.session_histories.id is 'The session.';
comment on column dalsegno.session_histories.campaign_id is 'The campaign.';
comment on column dalsegno.session_histories.instance is 'The instance of the agent.';
comment on column dalsegno.session_histories.provider is 'The provider.';
comment on column dalsegno.session_histories.model is 'The model.';
comment on column dalsegno.session_histories.state is 'idle, running, interrupted, error, closed.';
comment on column dalsegno.session_histories.created_at is 'The time at which it was opened.';
comment on column dalsegno.session_histories.expires_at is 'The time from which its next task opens a new session.';
comment on column dalsegno.session_histories.external_session_id is 'The id of the session at its provider. NULL: none.';
comment on column dalsegno.session_histories.agent_type is 'The agent.';
comment on column dalsegno.session_histories.message_history is
  'Objects with role and content: prompts that a compaction keeps, the summary as a system message, and the messages since.';
comment on column dalsegno.session_histories.token_count is 'Tokens that all turns of the session have used.';
comment on column dalsegno.session_histories.generation is 'The number of the compaction that is shown. 0: none.';

------------------------------------------------------------------------------------------- flows
comment on view dalsegno.flow_states is 'Flows with their state, which follows from their tasks, and the number of tasks in each state.';
comment on column dalsegno.flow_states.id is 'The flow.';
comment on column dalsegno.flow_states.campaign_id is 'The campaign.';
comment on column dalsegno.flow_states.template is 'The name of its template.';
comment on column dalsegno.flow_states.created_at is 'The time of its start.';
comment on column dalsegno.flow_states.paused_at is 'The time since which none of its tasks begins. NULL: it is not paused.';
comment on column dalsegno.flow_states.added_by is 'The author, written as in the audit log.';
comment on column dalsegno.flow_states.inputs is 'The inputs of its start.';
comment on column dalsegno.flow_states.tasks is 'The number of its tasks; of a retried step the latest counts.';
comment on column dalsegno.flow_states.done is 'Tasks that are done.';
comment on column dalsegno.flow_states.failed is 'Tasks that have failed.';
comment on column dalsegno.flow_states.cancelled is 'Tasks that were cancelled.';
comment on column dalsegno.flow_states.open is 'Tasks that have not ended.';
comment on column dalsegno.flow_states.state is
  'running, paused (open tasks, and none begins), done, failed (all have ended, one has failed), cancelled (one was cancelled, none failed).';
comment on column dalsegno.flow_states.ended_at is 'The end of the last task. NULL: some are open.';
comment on view dalsegno.flow_steps is 'The current task at each place of each flow: after a retry the latest one.';
comment on column dalsegno.flow_steps.flow_id is 'The flow.';
comment on column dalsegno.flow_steps.task_id is 'The task.';
comment on column dalsegno.flow_steps.agent is 'The agent of the task.';
comment on column dalsegno.flow_steps.instance is 'Its instance.';
comment on column dalsegno.flow_steps.state is 'The state of the task: queued, running, done, failed, cancelled.';
comment on column dalsegno.flow_steps.created_at is 'The time at which the task was added.';
comment on column dalsegno.flow_steps.started_at is 'The time of its first turn. NULL: it had none.';
comment on column dalsegno.flow_steps.ended_at is 'The time at which it ended. NULL: it is open.';
comment on column dalsegno.flow_steps.place is 'The place in the flow.';
comment on column dalsegno.flow_steps.step is 'The name of the step in its template.';

------------------------------------------------------------------------------------------ erasures
comment on function dalsegno.contents_of_campaign(uuid) is
$comment$The contents of a campaign by kind of row: the number of rows, and a SHA-256 over their texts.

of_campaign      the campaign

On a database that was restored from a backup it returns the values of the receipt of the erasure. Reads all rows of the campaign.$comment$;
comment on function dalsegno.left_of_campaign(uuid) is
$comment$The kinds of rows that an erasure of a campaign has still to remove or to empty. An empty array: nothing is left.

of_campaign      the campaign

Messages and summaries belong to the kind sessions.$comment$;

-------------------------------------------------------------------------------------------- queue
comment on view dalsegno.queue_load is
  'The number of jobs of each queue that could run now, and of those that run: the input of an autoscaler. Jobs that wait for a credential or '
  'for their time do not count.';
comment on column dalsegno.queue_load.queue is 'The queue: turns or upkeep.';
comment on column dalsegno.queue_load.ready is 'Jobs that could run now. 0 while the queue is paused: more workers would not run more.';
comment on column dalsegno.queue_load.running is 'Jobs that run. An autoscaler counts them, too, so that it keeps busy workers.';
comment on function dalsegno.cancel(bigint, text) is
$comment$Cancels a job. The job of a task is cancelled with its task instead: `dalsegno task cancel`.

job_id           the job
reason           shown with the job

Returns cancelled (it did not run, and is gone), requested (it runs, and its worker was asked to stop), dead (it is a dead letter), ended or
unknown.$comment$;
comment on function dalsegno.retry(bigint) is
$comment$Runs a job again: a dead letter or a job that is held because it failed with new attempts, a job that waits for its time at once. A dead
letter goes to the end of its lane. The job of a task is retried with its task instead: `dalsegno task retry`.

job_id           the job

Returns the state that it has now: a job that is ready or runs stays as it is. Raises DS404 for an unknown job.$comment$;
comment on function dalsegno.pause(text, text, text) is
$comment$Stops the claims of a queue or of a group. Jobs that run continue. A pause that exists gets the new reason.

scope            queue or group
name             the queue (turns, upkeep), or the group: for tasks the id of the campaign
reason           shown with waiting jobs$comment$;
comment on function dalsegno.resume(text, text) is
$comment$Ends a pause and wakes the workers.

scope            queue or group
name             as for dalsegno.pause

Returns false if it was not paused.$comment$;
comment on function dalsegno.hold_job(bigint, text) is
$comment$Holds a job: at once if it is ready, otherwise when its turn comes. The jobs behind it in its lane wait.

job_id           the job
reason           required; shown with the held job

Returns the state that the job has now. Raises DS400 without a reason, DS404 for an unknown job, DS409 for one that runs.$comment$;
comment on function dalsegno.release_job(bigint) is
$comment$Releases a held job. One that was held because it failed gets new attempts.

job_id           the job

Returns the state that it has now. Raises DS404 for an unknown job, DS409 for one that is not held.$comment$;
comment on function dalsegno.hold_lane(text, text) is
$comment$Stops a lane after its running job. Waits for transactions that are adding jobs to this lane.

lane             the key of the lane, as `dalsegno job show` prints it
reason           required; shown with the held lane

Returns false if there is no such lane. Raises DS400 without a reason.$comment$;
comment on function dalsegno.release_lane(text) is
$comment$Lets a held lane continue with its next job. A failed job that held it becomes a dead letter.

lane             the key of the lane

Returns false if there is no such lane.$comment$;
comment on function dalsegno.set_lane_policy(text, text) is
$comment$Sets what a failed job does to its lane. The policy "hold" of a job kind takes precedence.

lane             the key of the lane
on_failure       continue: the next job runs; hold: the lane waits for a person$comment$;
