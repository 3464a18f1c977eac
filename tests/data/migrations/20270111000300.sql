-- Reads through the index.
select count(*) from dalsegno.compactions where outcome = 'applied' and dalsegno.text_words(summary, created_at) @@ dalsegno.text_query('part');
