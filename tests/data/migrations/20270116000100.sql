-- Versions of the sample campaign, which the function looks for.
select version from dalsegno.campaign_versions order by version;
