-- Finds the session that ran the turn with a given number: this session, or for a turn before it was opened, one of its predecessors or the
-- session that was forked.
-- $1 uuid session, $2 integer number
-- Result: no row if the turn was removed.
with recursive line as (
  select s.id, coalesce(s.predecessor_id, s.forked_from_session) as before, s.forked_at_turn from dalsegno.sessions as s where s.id = $1
  union all
  select b.id, coalesce(b.predecessor_id, b.forked_from_session), b.forked_at_turn
    from line join dalsegno.sessions as b on b.id = line.before
   where $2 <= coalesce(line.forked_at_turn, $2)
     and not exists (select from dalsegno.turns as t where t.session_id = line.id and t.number = $2))
select t.session_id from line join dalsegno.turns as t on t.session_id = line.id and t.number = $2
