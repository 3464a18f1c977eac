-- A job for later, in a lane of its own.
select dalsegno.enqueue('sample', lane => 'sample-for-later', run_at => now() + interval '1 day');
