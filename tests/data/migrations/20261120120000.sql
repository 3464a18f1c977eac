select 1 from dalsegno.installation; -- The step itself makes the one row.
