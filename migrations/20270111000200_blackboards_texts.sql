-- no-transaction
-- Search in the current blackboards.
--
-- Adds: blackboards_texts.
create index concurrently if not exists blackboards_texts on dalsegno.blackboards using gin (dalsegno.text_words(document::text, changed_at));
