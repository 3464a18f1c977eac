-- Finds the readable rows nearest to a query vector, nearest first. $1 text model · $2 real[] vector · $3 double precision greatest
-- distance · $4 bigint rows at most · from $5 on the parameters of the noun
--
-- No macro checks this statement: the type `vector` belongs to an optional extension. The names in braces are the length of the vector
-- and the rows of the noun. Postgres compares all of these rows unless an operator creates an index (docs/explanation/memory.md).
select n.id
  from (select i.id, e.vector::vector({n}) <=> (select $2::real[]::vector({n})) as distance
          from {near} and cardinality(e.vector) = {n} and e.model = $1
         order by distance limit $4) as n
 where n.distance <= $3 order by n.distance, n.id desc
