-- no-transaction
-- Search in answers and results of tools. Prompts are found as tasks, and notices have the texts of posts.
--
-- Adds: messages_texts.
create index concurrently if not exists messages_texts on dalsegno.messages using gin (dalsegno.text_words(text, created_at))
  where role in ('assistant', 'tool');
