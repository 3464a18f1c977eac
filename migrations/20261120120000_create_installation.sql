comment on schema dalsegno is
  'Dalsegno: durable conversations for agents on a job queue. Everything of the service is in this schema.';

create table dalsegno.installation (
  singleton boolean not null default true
    constraint installation_is_one_row primary key
    constraint installation_singleton_is_true check (singleton),
  id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now()
);

comment on table dalsegno.installation is
  'One row: which installation this database belongs to. Its id names the service in telemetry and signatures.';
comment on column dalsegno.installation.singleton is 'Always true: the primary key admits one row.';

insert into dalsegno.installation default values;
