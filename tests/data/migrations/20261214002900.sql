select dalsegno.remove_posts(campaign_id, 1), dalsegno.remove_events(campaign_id, 1) from dalsegno.erasures;
update dalsegno.erasures set removed = '{"sessions": 1}', ended_at = now(), step = null, covers = 20261214002900, vacuumed_at = now();
insert into dalsegno.erasure_hosts (erasure_id, host, swept_at, folders, bytes)
values ('00000000-0000-7000-8000-0000000000e1', 'host-1', now(), 1, 1000);
