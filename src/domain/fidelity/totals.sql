-- $1 campaign
with session as materialized (
    select s.id, s.closed_because from dalsegno.sessions as s where s.campaign_id = $1
), turn as (
    select count(*) filter (where t.history_check = 'seen') as seen,
           count(*) filter (where t.history_check = 'not_seen') as not_seen,
           count(*) filter (where t.history_check = 'not_provable') as not_provable,
           count(*) filter (where t.history_check = 'no_history') as no_history,
           count(*) filter (where t.history_check is null) as not_checked
      from session join dalsegno.turns as t on t.session_id = session.id
     where t.ended_at is not null
), estimate as (
    select count(*) as counted_calls, min(it.ratio) as smallest, percentile_cont(0.5) within group (order by it.ratio) as median,
           max(it.ratio) as largest
      from (select m.estimated_tokens::double precision / m.real_tokens as ratio
              from session join dalsegno.manifests as m on m.session_id = session.id
             where m.real_tokens > 0) as it
), summary as (
    select count(*) filter (where c.outcome = 'applied' and c.cause <> 'inherited') as applied,
           count(*) filter (where c.undone_at is not null) as undone,
           coalesce(sum(jsonb_array_length(c.refusals)), 0)::bigint as rejected_attempts,
           count(*) filter (where c.outcome = 'refused') as refused
      from session join dalsegno.compactions as c on c.session_id = session.id
)
select turn.seen as "seen!", turn.not_seen as "not_seen!", turn.not_provable as "not_provable!", turn.no_history as "no_history!",
       turn.not_checked as "not_checked!", estimate.counted_calls as "counted_calls!", estimate.smallest, estimate.median,
       estimate.largest, summary.applied as "applied!", summary.undone as "undone!",
       summary.rejected_attempts as "rejected_attempts!", summary.refused as "refused!",
       (select count(*) from session where closed_because = 'lost') as "lost_sessions!"
  from turn, estimate, summary
