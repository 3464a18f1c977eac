update dalsegno.erasures set contents = dalsegno.contents_of_campaign(campaign_id), vacuumed_at = ended_at;
-- As versions before 20261213201000 stored them.
insert into dalsegno.idempotency_keys (key, job_id, fingerprint)
select 'task:of an older version', coalesce(t.first_job_id, t.job_id), '\x00' from dalsegno.tasks as t order by t.id limit 1;
insert into dalsegno.idempotency_keys (key, job_id, fingerprint) values ('task:of no task', 0, '\x00');
