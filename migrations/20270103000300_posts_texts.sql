-- no-transaction
-- Search in posts.
--
-- Adds: posts_texts.
create index concurrently if not exists posts_texts on dalsegno.posts using gin (dalsegno.text_words(text, posted_at));
