-- Whether an agent repeats itself is asked of each answer that calls others.
create index posts_by_sender on dalsegno.posts (campaign_id, sender, posted_at) where origin = 'agent';
comment on index dalsegno.posts_by_sender is 'What an agent has said lately.';
