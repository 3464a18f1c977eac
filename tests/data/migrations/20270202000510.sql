-- An urgent job of a group, for the index.
select dalsegno.enqueue('sample', group_key => 'sample-urgent', priority => 10);
