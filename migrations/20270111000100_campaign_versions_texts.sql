-- no-transaction
-- Search in briefs and client contexts. The search finds the latest version of each campaign.
--
-- Adds: campaign_versions_texts.
create index concurrently if not exists campaign_versions_texts on dalsegno.campaign_versions
  using gin (dalsegno.text_words(brief || E'\n' || coalesce(client_context, ''), changed_at));
