-- Notes that a call was refused, and until when the model is left alone.
-- $1 text provider · $2 text model · $3 timestamptz now · $4 timestamptz when the call began
-- $5, $6, $7 double precision seconds: what the provider asks for at least, the first wait, the longest · $8 text why
-- Result: the row as it is now.
insert into dalsegno.busy_models as b (provider, model, since, refused_at, until, refusals, why)
values ($1, $2, $3::timestamptz, $3, $3::timestamptz + make_interval(secs => greatest($5::float8, $6::float8 * (1 - random() / 2))), 1, $8)
on conflict (provider, model) do update
   set since = case when b.until < $3 - interval '1 hour' then excluded.since else b.since end,
       refused_at = greatest(b.refused_at, excluded.refused_at),
       until = case when b.until < $3 - interval '1 hour' then excluded.until
                    -- It had begun by the last refusal: both are of the same moment.
                    when b.refused_at >= $4::timestamptz then greatest(b.until, $3 + make_interval(secs => $5))
                    else $3 + make_interval(secs => greatest($5, least($6 * 2.0::float8 ^ least(b.refusals, 30), $7::float8) * (1 - random() / 2)))
               end,
       refusals = case when b.until < $3 - interval '1 hour' then 1
                       when b.refused_at >= $4 then b.refusals
                       else b.refusals + 1 end,
       why = excluded.why
returning b.provider, b.model, b.since, b.until, b.refusals, b.why
