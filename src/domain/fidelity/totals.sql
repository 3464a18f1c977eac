-- $1 campaign · $2 newest ended turns that are read
with turn as materialized (
    select s.id as session_id, t.number, t.history_check
      from (select id from dalsegno.sessions where campaign_id = $1 order by id desc) as s
     cross join lateral (select number, history_check from dalsegno.turns where session_id = s.id and ended_at is not null order by number desc) as t
     order by s.id desc, t.number desc limit $2
), oldest as (
    select session_id from turn order by session_id limit 1
), session as materialized (
    select s.id, s.closed_because from dalsegno.sessions as s
     where s.campaign_id = $1 and ((select count(*) from turn) < $2 or s.id >= (select session_id from oldest))
), turn_counts as (
    select count(*) filter (where history_check = 'seen') as seen,
           count(*) filter (where history_check = 'not_seen') as not_seen,
           count(*) filter (where history_check = 'not_provable') as not_provable,
           count(*) filter (where history_check = 'no_history') as no_history,
           count(*) filter (where history_check is null) as not_checked,
           count(*) >= $2 as is_limited
      from turn
), estimate as (
    select count(*) as counted_calls, min(it.ratio) as smallest, percentile_cont(0.5) within group (order by it.ratio) as median,
           max(it.ratio) as largest
      from (select m.estimated_tokens::double precision / m.real_tokens as ratio
              from turn join dalsegno.manifests as m on m.session_id = turn.session_id and m.turn = turn.number
             where m.real_tokens > 0) as it
), summary as (
    select count(*) filter (where c.outcome = 'applied' and c.cause <> 'inherited') as applied,
           count(*) filter (where c.undone_at is not null) as undone,
           coalesce(sum(jsonb_array_length(c.refusals)), 0)::bigint as rejected_attempts,
           count(*) filter (where c.outcome = 'refused') as refused
      from session join dalsegno.compactions as c on c.session_id = session.id
)
select t.seen as "seen!", t.not_seen as "not_seen!", t.not_provable as "not_provable!", t.no_history as "no_history!",
       t.not_checked as "not_checked!", t.is_limited as "is_limited!", estimate.counted_calls as "counted_calls!", estimate.smallest,
       estimate.median, estimate.largest, summary.applied as "applied!", summary.undone as "undone!",
       summary.rejected_attempts as "rejected_attempts!", summary.refused as "refused!",
       (select count(*) from session where closed_because = 'lost') as "lost_sessions!"
  from turn_counts as t, estimate, summary
