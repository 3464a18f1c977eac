select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'Part four.', priority => 5, run_at => '2027-01-01 12:00+00')
 where (select status = 'active' from dalsegno.campaigns where id = '00000000-0000-7000-8000-000000000001');
