-- Reads through the index.
select count(*) from dalsegno.campaign_versions
 where dalsegno.text_words(brief || E'\n' || coalesce(client_context, ''), changed_at) @@ dalsegno.text_query('brief');
