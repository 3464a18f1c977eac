-- The jobs for later of a lane, for the index.
select lane_id, id from dalsegno.jobs where lane_id is not null and lane_seq is null order by lane_id, id;
