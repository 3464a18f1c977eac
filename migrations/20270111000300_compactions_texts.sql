-- no-transaction
-- Search in the summaries of compactions.
--
-- Adds: compactions_texts.
create index concurrently if not exists compactions_texts on dalsegno.compactions using gin (dalsegno.text_words(summary, created_at))
  where outcome = 'applied';
