-- Facts that agents write with their tool. They are extracted facts for older versions of the service, which know no other source.

alter table dalsegno.facts
  add column is_written boolean not null default false
    constraint facts_written_by_agent check (not is_written or source = 'extracted');
comment on column dalsegno.facts.is_written is 'True: the agent of the session has written it with its tool. Its source is then extracted.';

comment on table dalsegno.fact_showings is
  'The facts that a session has been shown, or has written: they are not new if they are read from it.';
