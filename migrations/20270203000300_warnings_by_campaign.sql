-- no-transaction
-- The warnings of budgets about calls without a task, by campaign. An erasure removes them: they name the user, agent or campaign of the budget. Only
-- the text that is sent says which campaign they are about.
--
-- Adds: webhook_deliveries_without_task.
create index concurrently if not exists webhook_deliveries_without_task on dalsegno.webhook_deliveries ((body::jsonb #>> '{data,campaign_id}'))
  where kind = 'budget.warning' and task_id is null;
