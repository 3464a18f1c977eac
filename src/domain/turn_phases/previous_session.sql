-- Finds the session that ran the turn with a given number: this session, or one of its predecessors for a turn before it was opened.
-- $1 uuid session, $2 integer number
-- Result: no row if the turn was removed.
with recursive line as (
  select s.id, s.predecessor_id from dalsegno.sessions as s where s.id = $1
  union all
  select b.id, b.predecessor_id
    from line join dalsegno.sessions as b on b.id = line.predecessor_id
   where not exists (select from dalsegno.turns as t where t.session_id = line.id and t.number = $2))
select t.session_id from line join dalsegno.turns as t on t.session_id = line.id and t.number = $2
