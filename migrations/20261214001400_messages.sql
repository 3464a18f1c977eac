-- Messages: the transcripts of sessions, and what stands in for older messages in the context.
--
-- Messages and manifests are append-only. Compaction changes the view only, and can be undone. A turn writes a fixed number of narrow
-- rows, for a conversation of any length.

create function dalsegno.is_consistent_message(
  role text, weight bigint, digest bytea, has_calls boolean, answers_call boolean)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return role in ('system', 'user', 'assistant', 'tool', 'notice')
     and weight >= 0
     and octet_length(digest) = 32
     and (not has_calls or role = 'assistant')
     and (role = 'tool') = answers_call;
end
$body$;
comment on function dalsegno.is_consistent_message(text, bigint, bytea, boolean, boolean) is
  'Which columns of a message are set for which role.';

create table dalsegno.messages (
  session_id uuid not null,
  seq bigint not null,
  id uuid not null,
  created_at timestamptz not null,
  weight bigint not null,
  turn integer not null,
  partial boolean not null default false,
  role text not null,
  text text not null,
  tool_call_id text,
  tool_name text,
  digest bytea not null,
  tool_calls jsonb,
  posts bigint[],
  constraint messages_pkey primary key (session_id, seq),
  constraint messages_tools_fit_role check (
    dalsegno.is_consistent_message(role, weight, digest, tool_calls is not null, tool_call_id is not null))
);
comment on table dalsegno.messages is 'The transcript, append-only. Compaction changes which part of it is shown, never what is here.';
comment on column dalsegno.messages.seq is
  'Place in the conversation, by time of commit. Gaps are allowed. A successor keeps the places of what it inherits.';
comment on column dalsegno.messages.id is 'Of a prompt: the id of its task, so that a second attempt does not say it twice.';
comment on column dalsegno.messages.weight is 'Estimate of its tokens before calibration, in thousandths, measured when it was written.';
comment on column dalsegno.messages.turn is 'The turn that wrote it.';
comment on column dalsegno.messages.partial is 'The answer broke off: its turn was interrupted.';
comment on column dalsegno.messages.role is 'notice: words of the service itself.';
comment on column dalsegno.messages.tool_name is
  'Of a tool''s result: the tool. Of a prompt: the agent that asked it on the board. Of a notice: the kind of its JSON.';
comment on column dalsegno.messages.digest is 'SHA-256 of it, made when it was written.';
comment on column dalsegno.messages.posts is
  'The places on the board of the posts that the model was shown in this notice, whose text is their JSON. NULL: no posts are in it.';

create unique index messages_one_prompt_per_task on dalsegno.messages (session_id, id) where role = 'user';

create trigger messages_append_only before update or delete or truncate on dalsegno.messages
  for each statement execute function dalsegno.refuse_change();

-- A server may have been built without lz4; then Postgres compresses with its default.
do $body$
begin
  alter table dalsegno.messages alter column text set compression lz4;
exception when feature_not_supported then
  raise notice 'this server has no lz4: long texts are packed by pglz';
end
$body$;

---------------------------------------------------------------------------------------- compactions
create table dalsegno.compactions (
  id bigint generated always as identity constraint compactions_pkey primary key,
  session_id uuid not null constraint compactions_session references dalsegno.sessions (id),
  from_seq bigint not null,
  to_seq bigint not null,
  tokens_before bigint not null,
  tokens_after bigint,
  created_at timestamptz not null,
  applied_at timestamptz,
  undone_at timestamptz,
  generation integer not null constraint compactions_generation_positive check (generation > 0),
  parent integer not null,
  turn integer not null,
  cause text not null constraint compactions_cause_known check (cause in ('auto', 'overflow', 'manual', 'inherited')),
  outcome text not null constraint compactions_outcome_known check (outcome in ('prepared', 'applied', 'stale', 'refused')),
  rung text,
  model text,
  summary text,
  pins jsonb not null default '[]',
  refusals jsonb not null default '[]',
  node text,
  flow jsonb,
  prompts jsonb,
  constraint compactions_lineage check (parent >= 0 and parent < generation and from_seq <= to_seq),
  constraint compactions_outcome_complete check (
    (outcome = 'refused') = (summary is null)
    and (outcome = 'refused') = (tokens_after is null)
    and (outcome = 'applied') = (applied_at is not null)
    and (undone_at is null or outcome = 'applied'))
);
comment on table dalsegno.compactions is
  'Summaries that stand in for older messages, and attempts that were refused. Nothing is taken out of dalsegno.messages.';
comment on column dalsegno.compactions.undone_at is 'When a person went back to the view before it.';
comment on column dalsegno.compactions.generation is 'Counts the compactions of a session. A refused one uses up its number.';
comment on column dalsegno.compactions.parent is 'The generation whose view was folded; 0 is the whole transcript.';
comment on column dalsegno.compactions.turn is 'Number of turns of the session at that moment.';
comment on column dalsegno.compactions.outcome is
  'prepared: good, not shown yet; applied: shown, now or once; stale: the view changed before it was applied; refused: no summary was '
  'good enough.';
comment on column dalsegno.compactions.rung is 'Where the summary came from: first, retry, alternate, extract.';
comment on column dalsegno.compactions.pins is 'Parts that the summary had to keep word for word.';
comment on column dalsegno.compactions.refusals is 'Summaries that were not good enough, with the reasons.';
comment on column dalsegno.compactions.node is
  'The node whose exchanges are in the summary; others that were folded with them are not counted. NULL: the session was at no node.';
comment on column dalsegno.compactions.flow is
  'Where the work stood: ids, hand-offs, what the node asks for, the message that waited. Stands in front of the summary.';
comment on column dalsegno.compactions.prompts is
  'Texts of people, word for word: prompts, sentences of others, and how many are in the archive alone. Stands in front of the summary.';

create unique index compactions_one_per_generation on dalsegno.compactions (session_id, generation);

create view dalsegno.session_histories as
  select s.id, s.external_session_id, s.agent_type, s.campaign_id, s.model,
         coalesce((
           select jsonb_agg(jsonb_build_object('role', 'user', 'content', p.text) order by p.seq)
             from jsonb_to_recordset((c.prompts -> 'sentences') || (c.prompts -> 'kept')) as p (seq bigint, text text)), '[]')
         || case when c.summary is null then '[]'
              else jsonb_build_array(jsonb_build_object('role', 'system', 'content', c.summary)) end
         || coalesce((
              select jsonb_agg(
                       jsonb_build_object('role', case m.role when 'notice' then 'system' else m.role end, 'content', m.text)
                       || case when m.tool_calls is null then '{}' else jsonb_build_object('tool_calls', m.tool_calls) end
                       || case when m.tool_call_id is null then '{}'
                               else jsonb_build_object('tool_call_id', m.tool_call_id, 'tool_name', m.tool_name) end
                       order by m.seq)
                from dalsegno.messages as m
               where m.session_id = s.id and m.seq > coalesce(c.to_seq, 0) and m.turn <> all (s.rejected_turns)), '[]') as message_history,
         s.token_count, s.expires_at, s.created_at,
         s.instance, s.provider, s.state, s.generation
    from dalsegno.sessions as s
    left join dalsegno.compactions as c on c.session_id = s.id and c.generation = s.generation;
comment on view dalsegno.session_histories is
  'Sessions with their history as one JSON array, for other systems: what people wrote in older turns, the summary of those as a system '
  'message, then what was said since.';

------------------------------------------------------------------------------------------ manifests
create table dalsegno.manifests (
  session_id uuid not null,
  turn integer not null,
  call smallint not null,
  created_at timestamptz not null,
  estimated_tokens bigint not null,
  real_tokens bigint,
  sha256 bytea not null constraint manifests_sha256_length check (octet_length(sha256) = 32),
  manifest jsonb not null,
  constraint manifests_pkey primary key (session_id, turn, call)
);
comment on table dalsegno.manifests is
  'The record of a call''s context: ids, hashes, and why each part was in or out. Its size does not grow with the transcript.';
comment on column dalsegno.manifests.call is 'Counts the calls of a turn from 0.';
comment on column dalsegno.manifests.real_tokens is 'The provider''s own count of the prompt, if it said.';

create trigger manifests_append_only before update or delete or truncate on dalsegno.manifests
  for each statement execute function dalsegno.refuse_change();

---------------------------------------------------------------------------------- session summaries
-- The memory of a conversation outlives its session. When a session expires, its successor begins with a summary. The successor or
-- the cleanup that removes the session comes first, and stores what the summary is made of. A successor takes the row over; a
-- cleanup removes rows without a successor some time after the expiry, and an erasure removes those of its campaign.

create table dalsegno.session_summaries (
  campaign_id uuid not null,
  session_id uuid not null,
  expired_at timestamptz not null,
  stored_at timestamptz not null,
  last_seq bigint not null,
  board_cursor bigint not null,
  context_tokens bigint not null,
  turn_count integer not null,
  interrupted boolean not null,
  agent text not null,
  instance text not null,
  rung text,
  model text,
  node text,
  summary text,
  pins jsonb not null default '[]',
  flow jsonb,
  prompts jsonb,
  excerpts jsonb not null default '[]',
  constraint session_summaries_pkey primary key (campaign_id, agent, instance),
  constraint session_summaries_not_empty check (summary is not null or excerpts <> '[]')
);
comment on table dalsegno.session_summaries is
  'Summaries of conversations whose session has expired: one row each, until a successor takes it over or its time is over.';
comment on column dalsegno.session_summaries.session_id is 'The session that has expired. It may be gone.';
comment on column dalsegno.session_summaries.expired_at is
  'When the session expired. The time for which the summary is kept begins here.';
comment on column dalsegno.session_summaries.last_seq is
  'Where a successor goes on counting messages; so turn_count, and board_cursor with the posts that it has seen.';
comment on column dalsegno.session_summaries.interrupted is 'The last turn was cut off.';
comment on column dalsegno.session_summaries.summary is
  'The newest accepted summary of the session, word for word. NULL: there was none.';
comment on column dalsegno.session_summaries.pins is 'Parts that a later summary has to keep word for word.';
comment on column dalsegno.session_summaries.flow is 'Where the work stood that the summary is about; node is its name.';
comment on column dalsegno.session_summaries.prompts is 'Texts of people that stood word for word beside that summary.';
comment on column dalsegno.session_summaries.excerpts is
  'Messages since that summary, shortened: the newest prompts and answers, and the first prompt. A successor makes an extract of it.';

create index session_summaries_by_expiry on dalsegno.session_summaries (expired_at);

-- Written by a cleanup for each session: the compression must not take longer than the removal.
do $body$
begin
  alter table dalsegno.session_summaries alter column excerpts set compression lz4, alter column summary set compression lz4;
exception when feature_not_supported then
  raise notice 'this server has no lz4: kept summaries are packed by pglz';
end
$body$;

----------------------------------------------------------------------------------- order of removal
create function dalsegno.refuse_orphans() returns trigger language plpgsql as $body$
begin
  -- A transaction that adds to a session has changed its row before: it waits for this removal, or this removal waits for it.
  if exists (select from dalsegno.messages as m where m.session_id = old.id)
     or exists (select from dalsegno.turns as t where t.session_id = old.id)
     or exists (select from dalsegno.manifests as m where m.session_id = old.id) then
    raise foreign_key_violation using
      message = format('session %s still has messages, turns or manifests', old.id),
      hint = 'Remove those first.';
  end if;
  return old;
end
$body$;
comment on function dalsegno.refuse_orphans() is 'No session goes before what belongs to it.';

create trigger sessions_go_last before delete on dalsegno.sessions
  for each row execute function dalsegno.refuse_orphans();
