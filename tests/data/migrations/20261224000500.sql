-- A post of a person, and one of a program with an API key.
select dalsegno.add_post('00000000-0000-7000-8000-000000000001', gen_random_uuid(), now(), 'operator', 'operator', '{all}', 'By ' || a.author,
                         of_author => a.author)
  from (values ('cli:ann@host'), ('key:crm:3f0c2a9be1d4')) as a (author);
