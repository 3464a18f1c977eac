-- Two facts that hold may have the same words where they are about different things: `Porto.` is a city, and a birthplace. Of one
-- attribute one holds at a time as before, and whether a sentence says the same under another attribute is looked up by whoever writes.
--
-- Keys have more than before (`c++` is not `c`). Those that are there stay: what they were made of may be written down once more.
drop index dalsegno.facts_one_of_text;
comment on column dalsegno.facts.attribute_key is 'The attribute without case, repeated blanks and what does not change what a word says.';
comment on column dalsegno.facts.text_key is 'The text in the same way: two of one attribute with the same key say the same.';
