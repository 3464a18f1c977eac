select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'A summary.',
  depends_on => array['00000000-0000-7000-8000-000000000101']::uuid[], parent_id => '00000000-0000-7000-8000-000000000003')
 where (select status = 'active' from dalsegno.campaigns where id = '00000000-0000-7000-8000-000000000001');
