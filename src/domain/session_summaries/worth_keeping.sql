-- Which of these sessions have a summary that a successor may ask for: open ones of conversations that can go on, unless a person
-- wants the memory gone.
-- $1 uuid[] sessions, $2 timestamptz what expired until then is not remembered any more
select s.id
  from dalsegno.sessions as s join dalsegno.campaigns as c on c.id = s.campaign_id
 where s.id = any ($1) and s.closed_at is null and not s.ephemeral and s.expires_at > $2
   and s.rebuild_because is distinct from 'fresh' and c.status <> 'closed'
   and (s.generation > 0
        or exists (select from dalsegno.messages as m where m.session_id = s.id and m.role in ('user', 'assistant') and m.text <> ''
                     and m.turn <> all (s.rejected_turns)))
