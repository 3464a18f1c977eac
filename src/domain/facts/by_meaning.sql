-- What holds of a user and is near to a question in meaning, the nearest first. $1 text user · $2 timestamptz now · $3 bigint how many ·
-- $4 text model · $5 real[] vector · $6 double precision the greatest distance
--
-- As in domain/memory/by_meaning.sql, no macro checks it; {n} is the length of the vector.
select n.id
  from (select f.id, e.vector::vector({n}) <=> (select $5::real[]::vector({n})) as distance
          from dalsegno.fact_embeddings as e join dalsegno.facts as f on f.id = e.fact_id
         where cardinality(e.vector) = {n} and e.model = $4
           and f.user_name = $1 and f.valid_until is null and (f.expires_at is null or f.expires_at > $2)
         order by distance limit $3) as n
 where n.distance <= $6 order by n.distance, n.id desc
