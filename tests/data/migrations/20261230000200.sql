-- Sessions of an agent, for the index.
select prompt_hash, count(*) from dalsegno.sessions where agent_type = 'copywriter' group by prompt_hash;
