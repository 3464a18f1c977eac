-- Selects the sessions whose summary a successor may need: open sessions of conversations that can continue, unless a reset asked
-- for an empty one.
-- $1 uuid[] sessions, $2 timestamptz summaries of sessions that expired up to this moment are not kept
select s.id
  from dalsegno.sessions as s join dalsegno.campaigns as c on c.id = s.campaign_id
 where s.id = any ($1) and s.closed_at is null and not s.ephemeral and s.expires_at > $2
   and s.rebuild_because is distinct from 'fresh' and c.status <> 'closed'
   and (s.generation > 0
        or exists (select from dalsegno.messages as m where m.session_id = s.id and m.role in ('user', 'assistant') and m.text <> ''
                     and m.turn <> all (s.rejected_turns)))
