-- Reads through the index.
select dalsegno.spent_of('day', '', now() - interval '1 day');
