-- Budgets by urgency, with numbers of all of them: those that refuse calls first, then by the used share of their tighter limit.
-- $1 moment · $2 owner, or null for all · $3 key, or null for all · $4 owners and keys of budgets at which tasks failed that would fail again
-- $5 budgets that are left out at the beginning · $6 budgets that are listed at most
with budget as materialized (
    select owner, key, n_waiting,
           coalesce(spent_micros + reserved_micros >= limit_micros, false) or coalesce(spent_tokens + reserved_tokens >= limit_tokens, false) as is_reached,
           least(greatest((spent_micros + reserved_micros) / limit_micros::double precision, (spent_tokens + reserved_tokens) / limit_tokens::double precision),
                 1) as used
      from dalsegno.list_budgets($1)
     where ($2::text is null or owner = $2) and ($3::text is null or key = $3)
)
select owner || '/' || key as "row_key!", count(*) over () as "n_budgets!", count(*) filter (where n_waiting > 0) over () as "n_awaited!",
       (sum(n_waiting) over ())::bigint as "n_waiting!", count(*) filter (where is_reached) over () as "n_reached!"
  from budget
 order by (n_waiting > 0 or owner || '/' || key = any ($4)) desc, used desc nulls last, owner, key
 offset $5 limit $6