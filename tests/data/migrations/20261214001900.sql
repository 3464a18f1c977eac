select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'Part two.', idempotency_key => 'part-2');
select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'Part four.', priority => 5, run_at => '2027-01-01 12:00+00');
select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'A summary.',
  depends_on => array['00000000-0000-7000-8000-000000000101']::uuid[], parent_id => '00000000-0000-7000-8000-000000000003');
