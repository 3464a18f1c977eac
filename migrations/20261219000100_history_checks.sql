-- The result of comparing the provider's count of a turn's first prompt with the history that it was given.

alter table dalsegno.turns
  add column history_check text constraint turns_history_check_known check (
    history_check in ('seen', 'not_seen', 'not_provable', 'no_history'));
comment on column dalsegno.turns.history_check is
  'seen, not_seen: the count proves it; not_provable: it fits both, or there is none; no_history: nothing came before. NULL: no answer.';
