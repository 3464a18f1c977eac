-- Registers a worker process. A worker that lost its lease registers again with a new uuid.
-- $1 uuid, $2 double precision lease in seconds, $3 int slots, $4 text[] queues, $5 text host, $6 int pid, $7 text version, $8 text[] kinds with a handler
-- Result: renewed_at, lease_until (clock of the database).
INSERT INTO dalsegno.workers (id, lease_until, slots, queues, host, pid, version, kinds)
VALUES ($1::uuid, now() + make_interval(secs => $2::double precision), $3::integer, $4::text[], $5::text, $6::integer, $7::text, $8::text[])
RETURNING renewed_at, lease_until
