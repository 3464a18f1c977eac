-- no-transaction
-- Search in results of tools, in answers before a tool and in interrupted ones. Prompts and other answers are found as tasks with their
-- results, and notices have the texts of posts. A turn without tools writes nothing into this index.
--
-- Adds: messages_texts.
create index concurrently if not exists messages_texts on dalsegno.messages using gin (dalsegno.text_words(text, created_at))
  where role = 'tool' or tool_calls is not null or partial;
