-- Adds up amounts and counts without the numeric values of sum(), which cost more than the rest of a cost report.
--
-- Adds: bigint_sum. A sum beyond the range of a bigint is an error, as its cast is.

create aggregate dalsegno.bigint_sum(bigint) (sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = int8pl, parallel = safe);
comment on aggregate dalsegno.bigint_sum(bigint) is 'The sum as a bigint: 0 without values.';
