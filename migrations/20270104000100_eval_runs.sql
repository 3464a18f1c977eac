-- Results of eval runs, so that they can be read without the eval file. `dalsegno eval run` writes them when it has checked the answers.
--
-- A row has names, numbers and ids, and no text of a campaign: the answers stay in their tasks and reruns. An erasure leaves it, as it leaves costs.

create table dalsegno.eval_runs (
  id bigint generated always as identity,
  campaign_id uuid not null constraint eval_runs_campaign references dalsegno.campaigns (id) on delete cascade,
  began_at timestamptz not null,
  recorded_at timestamptz not null,
  judge_micros bigint not null,
  unfinished integer not null,
  eval text not null,
  run text not null,
  variants jsonb not null,
  answers jsonb not null,
  constraint eval_runs_pkey primary key (id),
  constraint eval_runs_run_unique unique (campaign_id, eval, run)
);
comment on table dalsegno.eval_runs is
  'Results of eval runs: passed answers, tokens, cost and time of each variant, and the task or rerun of each answer. No texts.';
