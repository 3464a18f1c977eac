//! Flows: sets of tasks that are made from a template.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, QueueReservation, Refusal, Spec,
    Success, by_request, page_limit,
};
use crate::domain::{
    Page,
    agents::LookupError,
    amount,
    audit::Action,
    campaigns,
    class::{BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT, QUEUE_FULL},
    flows::{
        self, BrokenTemplate, CancelledFlow, Error, Filter, Flow, FlowDetail, Inputs, State,
        Template, Templates,
    },
    keys::Scope,
    text,
};

const TAG: &str = "flows";

/// Lists the flow templates with their inputs and steps.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFlowTemplates {}

/// All templates: there are a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AllTemplates {
    pub items: Vec<Template>,
    /// Those that cannot be started, and why.
    pub broken: Vec<BrokenTemplate>,
}

/// Lists flows, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFlows {
    pub campaign_id: Option<Uuid>,
    #[schema(inline)]
    pub state: Option<State>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a flow with the current tasks of its steps.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowFlow {
    pub id: Uuid,
}

/// Starts a flow: adds all its tasks; each waits for the steps that it depends on.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFlow, example = json!({ "template": "reviewed-text", "inputs": { "task": "Write about the harbour." } }))]
pub struct StartFlow {
    /// The campaign.
    pub id: Uuid,
    pub template: String,
    /// Texts, and lists of texts for the inputs that are lists. One text for a list is its only item.
    #[serde(default)]
    pub inputs: Inputs,
    /// Loaded once, before the transaction begins if it can be.
    #[serde(skip)]
    pub templates: OnceCell<Templates>,
}

/// Pauses a flow: no task starts until it is resumed. Running turns go on.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseFlow {
    pub id: Uuid,
}

/// Resumes a paused flow.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeFlow {
    pub id: Uuid,
}

/// Runs the tasks of a step again, and all that depend on them. Those that have not ended are cancelled first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowRetry)]
pub struct RetryFlow {
    pub id: Uuid,
    /// The step to go on from.
    pub from: String,
}

/// Cancels all open tasks of a flow: waiting tasks at once, running tasks through their workers.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelFlow {
    pub id: Uuid,
    #[serde(default = "by_request")]
    pub reason: String,
}

impl AllTemplates {
    pub fn of(templates: &Templates) -> Self {
        let (items, broken) = (templates.all().cloned(), templates.broken().cloned());
        Self { items: items.collect(), broken: broken.collect() }
    }
}

impl Operation for ListFlowTemplates {
    const SPEC: Spec = Spec::read("list_flow_templates", "/v1/flow-templates", "flow templates")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[Error::BAD_TEMPLATES]);
    type Output = AllTemplates;

    async fn run(self, call: &Call) -> Result<AllTemplates, Refusal> {
        Ok(AllTemplates::of(&flow_templates(call).await?))
    }
}

impl Operation for ListFlows {
    const SPEC: Spec = Spec::read("list_flows", "/v1/flows", "flow ls").tag(TAG).for_bound_keys();
    type Output = Listing<Flow>;

    async fn run(self, call: &Call) -> Result<Listing<Flow>, Refusal> {
        let limit = page_limit(self.limit)?;
        let Self { campaign_id, state, cursor, .. } = self;
        let filter = Filter { campaign_id, state, within: call.reach.campaigns() };
        let page = Page { after: cursor, limit: limit + 1 };
        let mut transaction = call.begin_search().await?;
        let flows = flows::list(&mut *transaction, filter, page).await?;
        Ok(Listing::of(flows, limit, |flow| flow.id))
    }
}

impl Operation for ShowFlow {
    const SPEC: Spec =
        Spec::read("show_flow", "/v1/flows/{id}", "flow show").tag(TAG).refuses(&[Error::UNKNOWN]);
    type Output = FlowDetail;

    async fn run(self, call: &Call) -> Result<FlowDetail, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(flows::show(&mut transaction, self.id).await?)
    }
}

impl Change for StartFlow {
    const SPEC: Spec = Spec::change("start_flow", "/v1/campaigns/{id}/flows", "flow start")
        .tag(TAG)
        .needs(&[Scope::Enqueue])
        .answers(Success::Created)
        .located("/v1/flows/{id}")
        .refuses(&[
            campaigns::Error::UNKNOWN,
            Error::NO_TEMPLATE,
            LookupError::UNKNOWN_AGENT,
            LookupError::UNKNOWN_NODE,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            Error::BAD_TEMPLATES,
            LookupError::BROKEN_AGENT,
            LookupError::BROKEN_NODE,
            text::Error::TOO_LONG,
            Error::INPUTS,
            Error::TOO_MANY,
            text::Error::EMPTY,
            BAD_VALUE,
            QUEUE_FULL,
        ]);
    const ACTION: Action = Action::FlowStart;
    type Output = Flow;

    async fn reserve_queue_space(&self, call: &Call) -> Result<Option<QueueReservation>, Refusal> {
        let templates = self.templates.get_or_try_init(|| flow_templates(call)).await?;
        let (catalogue, template) = (call.catalogue()?, templates.get(&self.template)?);
        let n_tasks = flows::n_tasks(&catalogue, template, &self.inputs)?;
        Ok(Some(call.admit(n_tasks as u64).await?))
    }

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Flow> {
        let (catalogue, added_by) = (call.catalogue()?, call.actor.label());
        let templates = self.templates.get_or_try_init(|| flow_templates(call)).await?;
        let new = flows::New {
            campaign_id: self.id,
            template: templates.get(&self.template)?,
            inputs: &self.inputs,
            added_by: Some(&added_by),
            parent_id: None,
        };
        let output = flows::start(conn, &call.config.tasks, &catalogue, &new, call.now).await?;
        let data = json!({ "template": output.template, "campaign_id": self.id });
        Ok(ChangeOutput::of(output.id, output, data))
    }
}

impl Change for PauseFlow {
    const SPEC: Spec = Spec::change("pause_flow", "/v1/flows/{id}/pause", "flow pause")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::ENDED, Error::PAUSED]);
    const ACTION: Action = Action::FlowPause;
    type Output = Flow;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Flow> {
        let output = flows::pause(conn, self.id, call.now).await?;
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for ResumeFlow {
    const SPEC: Spec = Spec::change("resume_flow", "/v1/flows/{id}/resume", "flow resume")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::NOT_PAUSED]);
    const ACTION: Action = Action::FlowResume;
    type Output = Flow;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Flow> {
        let output = flows::resume(conn, self.id, call.now).await?;
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for RetryFlow {
    const SPEC: Spec =
        Spec::change("retry_flow", "/v1/flows/{id}/retry", "flow retry").tag(TAG).refuses(&[
            Error::UNKNOWN,
            Error::NO_STEP,
            LookupError::UNKNOWN_AGENT,
            LookupError::UNKNOWN_NODE,
            Error::PAUSED,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            LookupError::BROKEN_AGENT,
            LookupError::BROKEN_NODE,
            BAD_VALUE,
            QUEUE_FULL,
        ]);
    const ACTION: Action = Action::FlowRetry;
    type Output = Flow;

    async fn reserve_queue_space(&self, call: &Call) -> Result<Option<QueueReservation>, Refusal> {
        let n_tasks = flows::n_more(&call.pool, self.id, &self.from).await?;
        Ok(Some(call.admit(n_tasks as u64).await?))
    }

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Flow> {
        let Self { id, from } = self;
        let (catalogue, added_by) = (call.catalogue()?, call.actor.label());
        let (config, by) = (&call.config.tasks, Some(added_by.as_str()));
        let output = flows::retry(conn, config, &catalogue, (id, &from), by, call.now).await?;
        Ok(ChangeOutput::of(id, output, json!({ "from": from })))
    }
}

impl Change for CancelFlow {
    const SPEC: Spec = Spec::change("cancel_flow", "/v1/flows/{id}/cancel", "flow cancel")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::ENDED, NUL_IN_TEXT, BAD_ARGUMENT]);
    const ACTION: Action = Action::FlowCancel;
    type Output = CancelledFlow;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<CancelledFlow> {
        let output = flows::cancel(conn, self.id, &self.reason, call.now).await?;
        let data = json!({ "reason": self.reason });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

/// Reads the flow templates of the installation.
pub(super) async fn flow_templates(call: &Call) -> Result<Templates, Refusal> {
    let loaded = Templates::load_in_thread(&call.config.flows, call.catalogue()?).await;
    Ok(loaded.map_err(Error::from)?)
}
