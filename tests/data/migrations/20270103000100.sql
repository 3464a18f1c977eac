-- Fails unless a question finds the beginning of a longer word, and the week is a word of the text.
select 1 / (dalsegno.text_words('Two harbours', '2026-11-20') @@ (dalsegno.text_query('harbour -rain') && ''':w2968'''))::integer;
