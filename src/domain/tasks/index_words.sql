-- Computes the words of up to $1 ended tasks for the search, the newest first.
-- Result: the number of tasks that were taken from the backlog.
--
-- Locked, so that no erasure comes between the reading of a text and the insert of its words, and in the order of an erasure.
with taken as (
    delete from dalsegno.search_backlog as b
     where b.task_id in (select task_id from dalsegno.search_backlog order by task_id desc limit $1 for update skip locked)
    returning b.task_id
), held as (
    select t.id, t.prompt, t.result, t.created_at from dalsegno.tasks as t join taken on taken.task_id = t.id order by t.id for share of t
), indexed as (
    insert into dalsegno.search_words as w (task_id, words)
    select h.id, dalsegno.task_words(h.prompt, h.result, h.created_at) from held as h
        on conflict (task_id) do update set words = excluded.words
)
select count(*) as "n!" from taken
