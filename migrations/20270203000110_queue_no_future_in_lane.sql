-- no-transaction
-- jobs_later_in_lane, which begins with the same column, has taken its place.
--
-- Removes: jobs_future_in_lane.
drop index concurrently if exists dalsegno.jobs_future_in_lane;
