-- Reads through the index.
select count(*) from dalsegno.messages
 where (role = 'tool' or tool_calls is not null or partial) and dalsegno.text_words(text, created_at) @@ dalsegno.text_query('part');
