-- Tasks ask this before they are retried: they know nothing of erasures.
create function dalsegno.is_erased(campaign uuid) returns boolean
    language sql stable
    set search_path = ''
return exists (select from dalsegno.erasures as e where e.campaign_id = is_erased.campaign);

comment on function dalsegno.is_erased(uuid) is
    'An erasure of the campaign was requested: its texts are gone, or will be.';
