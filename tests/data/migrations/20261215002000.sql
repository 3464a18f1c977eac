-- A task and a campaign with tags and metadata, and one task that another system has added with them.
insert into dalsegno.task_labels (task_id, tags, metadata)
values ('00000000-0000-7000-8000-000000000003', '{urgent,customer:acme}', '{"order": 17}');
update dalsegno.campaigns set tags = '{series}', metadata = '{"customer": "acme"}' where id = '00000000-0000-7000-8000-000000000001';
select dalsegno.add_task(id, 'copywriter', 'Part nine.', tags => '{urgent}', metadata => '{"order": 18}')
  from dalsegno.campaigns where status = 'active' limit 1;
