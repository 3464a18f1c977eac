insert into dalsegno.table_sizes (day, bytes, table_name) values ('2026-12-31', 8192, 'campaigns');
