-- Search over the texts of all campaigns: prompts and results of tasks, posts, items of the memory, messages.
--
-- An index has the words of a text as they are, without stems, and the week in which it was written as a word that no text has: no parser
-- makes a word that begins with a colon. A search goes back in time week by week, and finds the newest texts with common words without
-- reading the older ones.
--
-- Adds: text_words, task_words, text_query, text_snippet.

create function dalsegno.text_words(text text, at timestamptz) returns tsvector language sql immutable parallel safe as $body$
  -- A vector is limited to 1 MB. The words of so many characters always fit.
  select to_tsvector('pg_catalog.simple', left(text, 65536))
         || array_to_tsvector(array[':w' || (floor(extract(epoch from at at time zone 'UTC') / 604800)::bigint)::text])
$body$;
comment on function dalsegno.text_words(text, timestamptz) is
  'The words of a text, and the week since 1970 in which it was written: the expression of the indexes for the search over all campaigns.';

create function dalsegno.task_words(prompt text, result text, at timestamptz) returns tsvector
  language sql immutable parallel safe as $body$
  select dalsegno.text_words(left(prompt, 32768) || E'\n' || left(coalesce(result, ''), 32768), at)
$body$;
comment on function dalsegno.task_words(text, text, timestamptz) is 'The words of prompt and result of a task, as text_words.';

create function dalsegno.text_query(question text) returns tsquery language sql immutable parallel safe as $body$
  -- Words of four characters or more also find longer ones, because the index has no stems. Excluded words stay whole. No word has a space.
  select regexp_replace(websearch_to_tsquery('pg_catalog.simple', question)::text, '(?<!!)''([^ ''\\]{4,})''', '''\1'':*', 'g')::tsquery
$body$;
comment on function dalsegno.text_query(text) is 'The query of a question in words, with the operators of search engines.';

create function dalsegno.text_snippet(text text, query tsquery) returns text language sql immutable parallel safe as $body$
  select ts_headline('pg_catalog.simple', translate(left(text, 65536), chr(1) || chr(2), ''), query,
                     'StartSel=' || chr(1) || ', StopSel=' || chr(2)
                     || case when length(text) <= 300 then ', HighlightAll=true'
                             else ', MaxFragments=2, MinWords=8, MaxWords=24, FragmentDelimiter=" … "' end)
$body$;
comment on function dalsegno.text_snippet(text, tsquery) is
  'The passages of a text that match, or all of a short text. Each match is between the characters 1 and 2, which the text itself has no more.';
