insert into dalsegno.eval_runs (campaign_id, began_at, recorded_at, judge_micros, unfinished, eval, run, variants, answers)
select id, now(), now(), 0, 0, 'short', 'abc', '[]', '[]' from dalsegno.campaigns order by id limit 1;
