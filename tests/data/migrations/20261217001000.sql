-- Both functions still want a reason.
do $$
begin
  perform dalsegno.hold_lane('no-such-lane', ' ');
  raise exception 'a lane was held without a reason';
exception when sqlstate 'DS400' then
  null;
end
$$;
