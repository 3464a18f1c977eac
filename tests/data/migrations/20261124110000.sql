select dalsegno.add_task('00000000-0000-7000-8000-000000000001', 'copywriter', 'Part three.', idempotency_key => 'part-3');
