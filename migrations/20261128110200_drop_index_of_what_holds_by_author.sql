-- Whoever asked it is answered by `memory_items_by_author_stored`, an older binary too.
drop index dalsegno.memory_items_by_author;
