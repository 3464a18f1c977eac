-- no-transaction
-- Search in results of tools, and in answers that are no result of a task: those before a tool, and interrupted ones. Prompts and results
-- are found as tasks, and notices have the texts of posts. A turn without tools writes nothing into this index.
--
-- Adds: messages_texts.
create index concurrently if not exists messages_texts on dalsegno.messages using gin (dalsegno.text_words(text, created_at))
  where role = 'tool' or tool_calls is not null or partial;
