-- Lists the variants of eval runs with an answer that cost 0 because its calls had no price. $1 the runs
--
-- Answers of tasks are told by the last turn of the task, as lists of tasks do it; those of reruns by the reruns of the variant.
select r.id, v.name as "variant!"
  from dalsegno.eval_runs as r
 cross join lateral (select e ->> 'variant' as name from jsonb_array_elements(r.variants) as e) as v
 where r.id = any ($1)
   and exists (
     select from jsonb_to_recordset(r.answers) as a (variant text, task_id uuid, session_id uuid, turn integer, tokens bigint, micros bigint)
      where a.variant = v.name and a.micros = 0 and a.tokens > 0
        and (exists (select from dalsegno.tasks as t
                       join dalsegno.usage as u on u.campaign_id = t.campaign_id and u.session_id = t.session_id and u.turn = t.turn
                      where t.id = a.task_id and t.campaign_id = r.campaign_id and dalsegno.is_unpriced(u))
             or exists (select from dalsegno.reruns as x
                          join dalsegno.usage as u on u.id = x.ledger_id
                         where x.session_id = a.session_id and x.turn = a.turn
                           and x.metadata -> 'eval_place' ->> 'variant' = v.name and dalsegno.is_unpriced(u))))
 order by r.id, v.name
