-- no-transaction
-- Search in ended tasks uses dalsegno.search_words. Older versions search without an index until they are replaced.
--
-- Removes: tasks_texts.
drop index concurrently if exists dalsegno.tasks_texts;
