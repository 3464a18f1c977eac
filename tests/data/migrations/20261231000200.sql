-- Fails unless each budget has its shares, whose parts of the limit are within it.
select 1 / (count(*) = 0)::integer
  from dalsegno.budgets as b
  join lateral (select count(*) as n, sum(s.allowed_micros) as micros, sum(s.allowed_tokens) as tokens
                  from dalsegno.budget_shares as s where s.budget_id = b.id) as s on true
 where s.n <> 32 or s.micros > b.limit_micros or s.tokens > b.limit_tokens;
insert into dalsegno.budgets (owner, key, created_at, limit_tokens) values ('user', 'mary', now(), 640);
select 1 / (sum(s.allowed_tokens) = 640)::integer
  from dalsegno.budget_shares as s join dalsegno.budgets as b on b.id = s.budget_id where b.key = 'mary';
