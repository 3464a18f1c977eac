-- The next claim draws its lease beyond all that were given out.
select nextval('dalsegno.leases');
