insert into dalsegno.memory_embeddings (item_id, made_at, version, model, vector)
values ('00000000-0000-7000-8000-0000000000b1', now(), 2, 'all-minilm', '{0.5, 0.5}');
insert into dalsegno.fact_embeddings (fact_id, made_at, model, vector)
values ('00000000-0000-7000-8000-0000000000c2', now(), 'all-minilm', '{0.5, 0.5}');
