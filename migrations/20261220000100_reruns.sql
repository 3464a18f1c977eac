-- Reruns: calls of turns that were made again without a change of the conversation, and the budget that they are paid from.
--
-- Adds: reruns, experiment_budgets. Replaces: is_consistent_call, which knows their purpose in the ledger.

create or replace function dalsegno.is_consistent_call(purpose text, outcome text, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return purpose in ('turn', 'summary', 'facts', 'rerun') and outcome in ('done', 'failed', 'interrupted') and least_count >= 0;
end
$body$;

create table dalsegno.experiment_budgets (
  campaign_id uuid not null
    constraint experiment_budgets_pkey primary key
    constraint experiment_budgets_campaign references dalsegno.campaigns (id),
  limit_micros bigint constraint experiment_budgets_limit_positive check (limit_micros > 0),
  spent_micros bigint not null default 0 constraint experiment_budgets_spent_not_negative check (spent_micros >= 0)
);
comment on table dalsegno.experiment_budgets is
  'The budget of a campaign that pays for reruns, apart from the one that pays for its turns. No row: none was ever set, and nothing is spent.';
comment on column dalsegno.experiment_budgets.limit_micros is
  'Money, in micro-units. NULL: there is no budget, so models with a price are not called. Reservations are on the rows of dalsegno.reruns.';

create table dalsegno.reruns (
  id uuid not null constraint reruns_pkey primary key,
  session_id uuid not null constraint reruns_session references dalsegno.sessions (id) on delete cascade,
  campaign_id uuid not null,
  job_id bigint,
  reserved_micros bigint,
  ledger_id bigint,
  input_tokens bigint,
  output_tokens bigint,
  cache_read_tokens bigint,
  cache_creation_tokens bigint,
  cost_micros bigint not null default 0,
  created_at timestamptz not null,
  ended_at timestamptz,
  turn integer not null,
  call integer not null,
  number integer not null,
  took_ms integer,
  temperature real,
  is_same_request boolean,
  state text not null default 'queued',
  provider text not null,
  model text not null,
  agent_file text,
  answer text,
  tool_calls jsonb,
  error text,
  partial boolean not null default false,
  constraint reruns_number_unique unique (session_id, turn, number),
  constraint reruns_state_machine check (state in ('queued', 'done', 'failed') and (state = 'queued') = (ended_at is null)
    and (state = 'done') = (answer is not null) and (state = 'failed') = (error is not null))
);
comment on table dalsegno.reruns is
  'Calls of turns that were made again. One row per call. Nothing of the conversation refers to them.';
comment on column dalsegno.reruns.number is 'Counts the reruns of a turn, from 1.';
comment on column dalsegno.reruns.call is 'The call of the turn that is made again, from 1.';
comment on column dalsegno.reruns.reserved_micros is
  'Set aside of the budget for experiments while the call runs. The sum over the queued rows of a campaign counts beside what is spent.';
comment on column dalsegno.reruns.ledger_id is 'The row of the ledger. NULL: the provider has not accepted a call.';
comment on column dalsegno.reruns.agent_file is 'The text of an agent file whose prompt, skills, tools and options replaced those of the call. NULL: none.';
comment on column dalsegno.reruns.is_same_request is 'True if the request had the same bytes as that of the turn. NULL: one of the two was not sent.';
comment on column dalsegno.reruns.partial is 'True if the answer broke off at the limit for its length.';
comment on column dalsegno.reruns.tool_calls is 'Tool calls of the answer. They are stored, and never executed.';

create index reruns_reserved on dalsegno.reruns (campaign_id) where reserved_micros is not null;
