-- Reads through the index.
select count(*) from dalsegno.posts where dalsegno.text_words(text, posted_at) @@ dalsegno.text_query('part');
