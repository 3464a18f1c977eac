-- The lanes that are held, for the index.
select key from dalsegno.lanes where hold_reason is not null;
