insert into dalsegno.campaigns (id, name) values ('00000000-0000-7000-8000-000000000006', 'Made elsewhere');
