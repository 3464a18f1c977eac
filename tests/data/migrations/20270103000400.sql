-- Reads through the index.
select count(*) from dalsegno.messages
 where role in ('assistant', 'tool') and dalsegno.text_words(text, created_at) @@ dalsegno.text_query('part');
