//! The permit of a turn: its shares of the rate limits of its calls.

use crate::{
    domain::rate_limits::CallScope,
    jobs::{
        Services,
        rate_limits::{CallSize, Permit},
        run_turn::{
            begin::provider_session::ProviderBinding, error::Error, load::assignment::Assignment,
        },
    },
};

/// Takes the shares of the first call. Makes no query. A turn without them is refused, and waits.
pub fn admit(
    services: &Services,
    assignment: &Assignment<'_>,
    bound: Option<&ProviderBinding>,
    estimated_tokens: u64,
) -> Result<Permit, Error> {
    let (task, route) = (&assignment.task, &assignment.route);
    let credential = bound.map(|bound| bound.credential.as_str());
    let call = CallScope {
        provider: &route.provider_name,
        model: &route.model,
        credential: credential.or_else(|| route.provider.credential_name()),
        campaign_id: task.campaign_id,
    };
    let size = CallSize { input_tokens: estimated_tokens, output_tokens: route.reserve_tokens };
    let grant = assignment.limit_grant.as_ref().map(|grant| (task.id, grant));
    let admitted = services.rate_limits.admit(call, size, grant);
    admitted.map_err(|refusal| Error::Refused(refusal.into()))
}
