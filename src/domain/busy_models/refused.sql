-- Records a refused call and the moment until which the model gets no calls.
-- $1 text provider · $2 text model · $3 timestamptz now · $4 timestamptz begin of the call
-- $5, $6, $7 double precision seconds: the least wait that the provider asked for, the first wait, the longest wait · $8 text reason
-- Result: the updated row.
insert into dalsegno.busy_models as b (provider, model, since, refused_at, until, refusals, why)
values ($1, $2, $3::timestamptz, $3, $3::timestamptz + make_interval(secs => greatest($5::float8, $6::float8 * (1 - random() / 2))), 1, $8)
on conflict (provider, model) do update
   set since = case when b.until < $3 - interval '1 hour' then excluded.since else b.since end,
       refused_at = greatest(b.refused_at, excluded.refused_at),
       until = case when b.until < $3 - interval '1 hour' then excluded.until
                    -- The call began before the last refusal: both count as one refusal.
                    when b.refused_at >= $4::timestamptz then greatest(b.until, $3 + make_interval(secs => $5))
                    else $3 + make_interval(secs => greatest($5, least($6 * 2.0::float8 ^ least(b.refusals, 30), $7::float8) * (1 - random() / 2)))
               end,
       refusals = case when b.until < $3 - interval '1 hour' then 1
                       when b.refused_at >= $4 then b.refusals
                       else b.refusals + 1 end,
       why = excluded.why
returning b.provider, b.model, b.since, b.until, b.refusals, b.why
