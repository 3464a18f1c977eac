-- Sizes of the tables by day, for their growth. The nightly cleanup writes today's and removes those that are older than 400 days.

create table dalsegno.table_sizes (
  day date not null,
  bytes bigint not null,
  table_name text not null,
  constraint table_sizes_pkey primary key (table_name, day)
);
comment on table dalsegno.table_sizes is 'The size of each table of the service, with its indexes, on each day of a cleanup.';
