-- Metadata of reruns: the words of the one who asked, to find a rerun by. An eval writes its run, variant and case there.
--
-- Changes: reruns.

alter table dalsegno.reruns add column metadata jsonb not null default '{}'
  constraint reruns_metadata check (dalsegno.is_metadata(metadata));
comment on column dalsegno.reruns.metadata is 'The words of the one who asked, to find the rerun by. They are part of no prompt.';
