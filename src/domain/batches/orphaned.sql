-- Lists batches whose turns have ended without them.
-- $1 the number of rows at most
select b.session_id, b.turn
  from dalsegno.batches as b join dalsegno.turns as t on t.session_id = b.session_id and t.number = b.turn
 where t.state <> 'running' order by b.session_id, b.turn limit $1
