//! Estimates of flows that are not started.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec, context_previews::rolled_back, flows::flow_templates};
use crate::domain::{
    agents::LookupError,
    amount, campaigns,
    class::NUL_IN_TEXT,
    context_previews::{Error as PreviewError, PreviewSubject},
    estimates::{ChargeRange, Estimate},
    flows::{self, Error, Inputs, PlannedStep},
    keys::Scope,
    tasks, text,
};

/// Estimates tokens and cost of a flow that is not started: the sums of its steps.
///
/// Calls no model and changes nothing. Results of earlier steps are unknown, so the input of later steps is larger than estimated. Of the
/// tasks of a step for each item, the first one is estimated and multiplied.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowQuestion)]
pub struct EstimateFlow {
    /// The campaign.
    pub id: Uuid,
    pub template: String,
    #[serde(default)]
    pub inputs: Inputs,
}

/// The tokens and the cost that a flow would have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FlowEstimate {
    pub template: String,
    pub tasks: i64,
    /// The label of all costs.
    pub currency: String,
    /// The sum of the steps. Its lows and highs are those of all steps at once, so the range is wider than that of a turn. With a step that
    /// has no charge, the costs are null.
    pub charge: ChargeRange,
    /// The steps in the order of the template.
    pub steps: Vec<StepEstimate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepEstimate {
    pub step: String,
    pub agent: String,
    pub tasks: i64,
    pub provider: String,
    pub model: String,
    /// The sum of the step's tasks. Null: the next turn of the conversation is not possible now.
    pub charge: Option<ChargeRange>,
}

impl Operation for EstimateFlow {
    const SPEC: Spec =
        Spec::change("estimate_flow", "/v1/campaigns/{id}/flows/estimate", "flow start")
            .tag("flows")
            .needs(&[Scope::Read])
            .unaudited("it changes nothing")
            .refuses(&[
                campaigns::Error::UNKNOWN,
                campaigns::Error::CLOSED,
                Error::NO_TEMPLATE,
                Error::BAD_TEMPLATES,
                Error::INPUTS,
                Error::TOO_MANY,
                LookupError::UNKNOWN_AGENT,
                LookupError::BROKEN_AGENT,
                LookupError::UNKNOWN_NODE,
                LookupError::BROKEN_NODE,
                tasks::Error::BAD_INSTANCE,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
                amount::Refusal::CLASS,
                PreviewError::AGENT_PAUSED,
                PreviewError::TURN_RUNS,
                PreviewError::REFUSED,
            ]);
    type Output = FlowEstimate;

    async fn run(self, call: &Call) -> Result<FlowEstimate, Refusal> {
        let templates = flow_templates(call).await?;
        let (catalogue, template) = (call.catalogue()?, templates.get(&self.template)?);
        let mut estimate = FlowEstimate {
            template: template.name.clone(),
            tasks: 0,
            currency: String::new(),
            charge: ChargeRange::ZERO,
            steps: Vec::new(),
        };
        for planned in flows::plan(&catalogue, template, &self.inputs)? {
            let n_tasks = planned.tasks;
            let step = planned.step.clone();
            let first = estimate_first(call, self.id, planned).await?;
            estimate.add(step, n_tasks, first);
        }
        Ok(estimate)
    }
}

async fn estimate_first(
    call: &Call,
    campaign_id: Uuid,
    planned: PlannedStep,
) -> Result<Estimate, Refusal> {
    let PlannedStep { agent, instance, node, session, prompt, .. } = planned;
    let prompt = Some(prompt);
    let subject = PreviewSubject::Agent {
        campaign_id,
        agent,
        instance,
        prompt,
        node,
        session,
        attachments: Vec::new(),
    };
    Ok(call.previews.estimate(subject, rolled_back(call).await?).await?)
}

impl FlowEstimate {
    fn add(&mut self, step: String, n_tasks: i64, first: Estimate) {
        let next = first.ways.iter().find(|way| way.is_next);
        let charge = next.and_then(|way| way.charge).map(|charge| charge.times(n_tasks));
        self.tasks += n_tasks;
        self.charge = self.charge.plus(charge.unwrap_or(ChargeRange::UNKNOWN));
        self.currency = first.currency;
        let Estimate { agent, provider, model, .. } = first;
        self.steps.push(StepEstimate { step, agent, tasks: n_tasks, provider, model, charge });
    }
}
