select count(*) from dalsegno.session_states;
select count(*) from dalsegno.agent_states;
