//! The caller of a page.

use std::collections::HashMap;

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::form::form_token;
use crate::{
    app::App,
    domain::{
        amount,
        audit::{self, Entry, PauseSubject},
        budgets::{OwnedBudget, Ranking, RankingQuery},
        campaigns::{self, NameQuery},
        class::Kind,
        feed::Hub,
        keys::Scope,
        sign_ins::SignIn,
        task_files::attachments::Limits,
        tasks::{self, RefusedRetry, Task},
        webhooks,
    },
    http::{
        Problem, RouterState,
        auth::{Gate, PageAccess, unauthenticated_fault},
        operations::{CallState, base_call, extension},
        scopes::RequiredScope,
    },
    operations::{
        self, Call, Download, DownloadedFile, ExplainTask, Fields, FormFile, JsonOutput, ListAudit,
        ListBudgets, ListCampaigns, ListDeliveries, Operation, Refusal, Run, ShowOverview, Spec,
    },
};

/// The caller of a page, who runs operations with the scopes and the reach of the request.
pub struct PageCaller {
    app: App,
    newest_event: Option<i64>,
    call: Call,
    access: PageAccess,
}

impl PageCaller {
    pub fn now(&self) -> DateTime<Utc> {
        self.call.now
    }

    /// Returns the label of amounts of money.
    pub fn currency(&self) -> &str {
        &self.app.config.currency
    }

    /// Returns the newest event of the feed before the page was read, if open pages are followed.
    pub fn newest_event(&self) -> Option<i64> {
        self.newest_event
    }

    /// Returns the time zone of days.
    pub fn time_zone(&self) -> &str {
        &self.app.config.time_zone
    }

    /// Returns the limits of the attachments of a task.
    pub fn attachment_limits(&self) -> Limits {
        self.app.config.tasks.attachment_limits()
    }

    /// Returns the token for the forms of this page.
    pub fn form_token(&self) -> String {
        form_token(&self.access.cookie)
    }

    /// Returns the sign-in, where one is needed.
    pub fn sign_in(&self) -> Option<&SignIn> {
        self.access.sign_in.as_ref()
    }

    /// Returns the caller as the audit log names it.
    pub fn name(&self) -> &str {
        match self.access.actor.name.as_str() {
            "" if self.access.sign_in.is_some() => "admin key",
            name => name,
        }
    }

    /// Returns true if the caller has a scope for this operation.
    pub fn may(&self, spec: &Spec) -> bool {
        RequiredScope::Any(spec.scopes).is_met_by(&self.access.scopes)
    }

    /// Returns true if the caller has a scope for this operation, and a key that is not bound to campaigns where it covers all of them.
    pub fn may_reach(&self, spec: &Spec) -> bool {
        self.may(spec) && self.access.reach.covers(spec)
    }

    pub fn has_scope(&self, scope: Scope) -> bool {
        self.access.scopes.iter().any(|own| own.implies(scope))
    }

    /// Runs an operation.
    pub async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        self.check_scope(&O::SPEC)?;
        let input = serde_json::to_value(&operation).unwrap_or_default();
        self.check_reach(&O::SPEC, input["id"].as_str()).await?;
        Ok(operation.perform(&self.call).await?.output)
    }

    /// Reads a file.
    pub async fn download<D: Download>(&self, download: D) -> Result<DownloadedFile, Refusal> {
        self.check_scope(&D::SPEC)?;
        let input = serde_json::to_value(&download).unwrap_or_default();
        self.check_reach(&D::SPEC, input["id"].as_str()).await?;
        download.download(&self.call).await
    }

    /// Runs a read, or returns `None` if the caller may not: pages leave that part out.
    pub async fn run_if_allowed<O: Operation>(
        &self,
        operation: O,
    ) -> Result<Option<O::Output>, Refusal> {
        match self.run(operation).await {
            Err(refusal) if refusal.kind == Kind::Forbidden => Ok(None),
            output => output.map(Some),
        }
    }

    /// Returns the author of a pause, if the log has it and the caller may read the log.
    pub async fn pause_author(
        &self,
        kind: PauseSubject,
        subject: &str,
        paused_at: DateTime<Utc>,
        reason: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        if !self.may_reach(&ListAudit::SPEC) {
            return Ok(None);
        }
        Ok(audit::pause_author(&self.app.pool, kind, subject, paused_at, reason).await?)
    }

    /// Returns the newest line about one of these actions for each subject that has one, if the caller may read the log.
    pub async fn last_lines(
        &self,
        subjects: &[String],
        actions: &[audit::Action],
    ) -> Result<Vec<Entry>, Refusal> {
        if !self.may_reach(&ListAudit::SPEC) {
            return Ok(Vec::new());
        }
        Ok(audit::last_of_each(&self.app.pool, subjects, actions).await?)
    }

    /// Ranks budgets by urgency, for a caller who may list them.
    pub async fn rank_budgets(&self, query: &RankingQuery<'_>) -> Result<Ranking, Refusal> {
        self.check_scope(&ListBudgets::SPEC)?;
        self.check_reach(&ListBudgets::SPEC, None).await?;
        operations::rank_budgets(&self.call, query).await
    }

    /// Finds budgets by owner and key, such as `agent/writer` and `day/`, for a caller who may list them.
    pub async fn find_budgets(&self, row_keys: &[String]) -> Result<Vec<OwnedBudget>, Refusal> {
        self.check_scope(&ListBudgets::SPEC)?;
        self.check_reach(&ListBudgets::SPEC, None).await?;
        operations::find_budgets(&self.call, row_keys).await
    }

    /// Lists ids and names of campaigns by words of their names, the newest first, if the caller may list campaigns. Only those that the caller
    /// reaches are read.
    pub async fn search_campaigns(
        &self,
        query: NameQuery<'_>,
    ) -> Result<Vec<(Uuid, String)>, Refusal> {
        // No name has a character that the database cannot store.
        let is_storable = query.words.iter().all(|word| !word.contains('\0'));
        if !is_storable || !self.may(&ListCampaigns::SPEC) {
            return Ok(Vec::new());
        }
        let within = self.call.reach.campaigns();
        Ok(campaigns::search_names(&self.app.pool, NameQuery { within, ..query }).await?)
    }

    /// Returns the names of the campaigns of these tasks of the caller, if the caller may list campaigns.
    pub async fn campaign_names(&self, tasks: &[&Task]) -> Result<HashMap<Uuid, String>, Refusal> {
        if !self.may(&ListCampaigns::SPEC) {
            return Ok(HashMap::new());
        }
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.campaign_id).collect();
        Ok(campaigns::names(&self.app.pool, &ids).await?)
    }

    /// Lists the refusals of budgets at which tasks failed since then, if the caller may see the overview, which has these tasks. Returns true if not
    /// all were read.
    pub async fn refusals_since(
        &self,
        since: DateTime<Utc>,
        max_read: i64,
    ) -> Result<(Vec<amount::Refusal>, bool), Refusal> {
        if !self.may_reach(&ShowOverview::SPEC) {
            return Ok((Vec::new(), false));
        }
        Ok(tasks::refusals_since(&self.app.pool, since, max_read).await?)
    }

    /// Finds those of these tasks of the caller whose retry would fail again or wait, if the caller may see explanations, which have the amounts, too.
    pub async fn refused_retries(&self, tasks: &[&Task]) -> Result<Vec<RefusedRetry>, Refusal> {
        if !self.may(&ExplainTask::SPEC) {
            return Ok(Vec::new());
        }
        let mut transaction = self.call.begin_read().await?;
        Ok(tasks::refused_retries(&mut transaction, tasks).await?)
    }

    /// Returns the time of the oldest event that a webhook which fails since then has missed, if the caller may see its deliveries.
    pub async fn oldest_missed(
        &self,
        webhook_id: Uuid,
        failing_since: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, Refusal> {
        if !self.may_reach(&ListDeliveries::SPEC) {
            return Ok(None);
        }
        Ok(webhooks::oldest_missed(&self.app.pool, webhook_id, failing_since).await?)
    }

    /// Runs the operation of a form by its id, with the fields of the form. Returns its output.
    ///
    /// Fields that are all texts are read as those of a query; others make up a JSON body.
    pub async fn run_form(
        &self,
        id: &str,
        fields: Vec<(String, Value)>,
        files: Vec<FormFile>,
    ) -> Result<Value, Refusal> {
        let entry = operations::ALL.iter().find(|entry| entry.spec.id == id);
        let (spec, run) = match entry.map(|entry| (&entry.spec, entry.run)) {
            Some((spec, Run::Once(run))) if !spec.has_secret => (spec, run),
            _ => {
                let detail = format!("no form runs an operation `{id}`: reload the page");
                return Err(Refusal::new(Kind::NotFound, "unknown_operation", detail));
            }
        };
        self.check_scope(spec)?;
        if !files.is_empty() && !spec.takes_files {
            let detail = format!("the operation `{id}` takes no files: reload the page");
            return Err(Refusal::new(Kind::Invalid, "bad_field", detail));
        }
        let in_path: Vec<&'static str> = spec.path_fields().collect();
        let (path, rest): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| in_path.contains(&name.as_str()));
        let text = |name: &str| {
            path.iter().find(|(field, _)| field == name).and_then(|(_, value)| value.as_str())
        };
        self.check_reach(spec, text("id")).await?;
        let path = in_path.iter().filter_map(|name| Some((*name, text(name)?.to_owned())));
        let path: Vec<_> = path.collect();
        let fields = match rest.iter().all(|(_, value)| value.is_string()) {
            true => Fields { path, query: texts(rest), files, ..Fields::default() },
            false => {
                let body: Map<String, Value> = rest.into_iter().collect();
                let json =
                    serde_json::to_vec(&body).map_err(|error| Refusal::fault(spec.id, &error))?;
                Fields { path, json: Some(json), files, ..Fields::default() }
            }
        };
        let JsonOutput { json, .. } = run(fields, self.call.clone()).await?;
        serde_json::from_slice(&json).map_err(|error| Refusal::fault(spec.id, &error))
    }

    fn check_scope(&self, spec: &Spec) -> Result<(), Refusal> {
        if self.may(spec) {
            return Ok(());
        }
        let scope = RequiredScope::Any(spec.scopes).scope();
        let detail = format!(
            "the key of this sign-in does not have the scope `{scope}`: sign out, and sign in with a key that has it"
        );
        Err(Refusal::new(Kind::Forbidden, "missing_scope", detail))
    }

    /// Checks the id of the input, as the API checks that of the path.
    async fn check_reach(&self, spec: &Spec, id: Option<&str>) -> Result<(), Refusal> {
        let reach = &self.access.reach;
        let checked = reach.check_operation(&self.app, spec, id).await;
        checked.map_err(|problem| match problem.code {
            "key_is_bound" => Refusal::new(Kind::Forbidden, problem.code, problem.detail),
            code => Refusal::new(
                operations::kind_of_status(problem.status.as_u16()),
                code,
                problem.detail,
            ),
        })
    }
}

fn texts(fields: Vec<(String, Value)>) -> Vec<(String, String)> {
    let text = |(name, value)| match value {
        Value::String(text) => Some((name, text)),
        _ => None,
    };
    fields.into_iter().filter_map(text).collect()
}

impl FromRequestParts<RouterState> for PageCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &RouterState) -> Result<Self, Problem> {
        let app = front.app()?;
        let access = parts.extensions.get::<PageAccess>().cloned();
        let access = access.ok_or_else(unauthenticated_fault)?;
        let newest_event = extension::<Hub>(parts)?.newest();
        let calls: CallState = extension(parts)?;
        let gate: Gate = extension(parts)?;
        parts.extensions.insert(gate.watch_of_page(access.holder));
        let call = base_call(&app, parts, &calls)?;
        Ok(Self { app, newest_event, call, access })
    }
}
