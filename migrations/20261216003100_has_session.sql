-- Records of readings for facts have no foreign key to their session, and stay when it goes. The cleanup keeps the last one of each session
-- that is still there.
--
-- Adds: has_session.

create function dalsegno.has_session(of_session uuid) returns boolean language sql stable as $body$
  select exists (select from dalsegno.sessions as s where s.id = of_session);
$body$;
comment on function dalsegno.has_session(uuid) is 'True as long as the cleanup or an erasure has not removed the session.';
