-- The end of the newest run of a queue, for the index.
select ended_at from dalsegno.runs where queue = 'turns' order by ended_at desc limit 1;
