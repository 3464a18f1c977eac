-- What holds, may be read and is near to a question in meaning, the nearest first. $1 uuid campaign · $2 text kind or null · $3 text the
-- one journal that may be read, or null for all · $4 timestamptz now · $5 bigint how many · $6 text model · $7 real[] vector · $8 double
-- precision the greatest distance
--
-- No macro checks it: the type `vector` is of an extension that a database need not have. {n} is the length of the vector. The conditions
-- are those of search.sql. All of them are looked at, one by one, unless an operator makes an index (docs/MEMORY.md).
select n.id
  from (select m.id, e.vector::vector({n}) <=> (select $7::real[]::vector({n})) as distance
          from dalsegno.memory_embeddings as e join dalsegno.memory_items as m on m.id = e.item_id
         where cardinality(e.vector) = {n} and e.model = $6 and e.version = m.version
           and m.campaign_id = $1 and ($2::text is null or m.kind = $2) and (m.kind <> 'journal' or $3::text is null or m.owner = $3)
           and m.revoked_at is null and (m.expires_at is null or m.expires_at > $4)
         order by distance limit $5) as n
 where n.distance <= $8 order by n.distance, n.id desc
