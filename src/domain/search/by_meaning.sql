-- The rows that may be found and are near to a question in meaning, the nearest first. $1 text model · $2 real[] vector · $3 double
-- precision the greatest distance · $4 bigint how many · from $5 on the parameters of the noun
--
-- No macro checks it: the type `vector` is of an extension that a database need not have. The names in braces are the length of the vector
-- and the rows of the noun. All of them are looked at, one by one, unless an operator makes an index (docs/explanation/memory.md).
select n.id
  from (select i.id, e.vector::vector({n}) <=> (select $2::real[]::vector({n})) as distance
          from {near} and cardinality(e.vector) = {n} and e.model = $1
         order by distance limit $4) as n
 where n.distance <= $3 order by n.distance, n.id desc
