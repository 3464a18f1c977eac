-- no-transaction
-- The jobs for later of a lane, in the order in which its page lists them. The page read all of them to list the first hundred. Takes the place of
-- jobs_future_in_lane, which has no order.
--
-- Adds: jobs_later_in_lane.
create index concurrently if not exists jobs_later_in_lane on dalsegno.jobs (lane_id, id) where lane_id is not null and lane_seq is null;
