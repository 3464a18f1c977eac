-- A key may be bound to campaigns, and then reaches nothing else. Its scopes have names of their own, so that an older version, which does
-- not know the column, accepts such a key for nothing.

alter table dalsegno.api_keys
  add column campaigns uuid[]
    constraint api_keys_campaigns_number check (cardinality(campaigns) between 1 and 100),
  drop constraint api_keys_scopes_known,
  add constraint api_keys_scopes_known
    check (cardinality(scopes) > 0
           and scopes <@ case when campaigns is null
                              then array['read', 'enqueue', 'operate', 'admin', 'mcp']
                              else array['campaign_read', 'campaign_enqueue', 'campaign_operate', 'campaign_admin', 'campaign_mcp'] end);
comment on column dalsegno.api_keys.campaigns is 'The campaigns that it is bound to. NULL: all.';
comment on column dalsegno.api_keys.scopes is
  'What it is good for: read, enqueue, operate, admin, mcp; with campaign_ in front where it is bound to campaigns.';
