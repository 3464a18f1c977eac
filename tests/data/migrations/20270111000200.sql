-- Reads through the index.
select count(*) from dalsegno.blackboards where dalsegno.text_words(document::text, changed_at) @@ dalsegno.text_query('stage');
