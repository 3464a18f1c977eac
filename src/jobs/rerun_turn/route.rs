//! The provider and model of a rerun.

use std::sync::Arc;

use crate::{
    domain::{
        agents::{self, DraftAgent},
        reruns::{CallRoute, Error, RerunOptions, RerunRoute, RerunRoutes},
    },
    jobs::Services,
};

/// Builds the routes of a process.
pub fn rerun_routes(services: Arc<Services>) -> RerunRoutes {
    RerunRoutes::new(move |own, options| find_route(&services, own, options))
}

/// Finds the route of a rerun. The options come before the agent file, and the file before the call itself.
fn find_route(
    services: &Services,
    own: &CallRoute,
    options: &RerunOptions,
) -> Result<RerunRoute, Error> {
    let draft = options.agent_file.as_deref().map(|text| read_draft(services, text)).transpose()?;
    let first = draft.as_ref().and_then(|draft| draft.agent.chain.first());
    let of_file = first.and_then(|entry| entry.provider.as_ref());
    let provider_name = of_file.map_or(own.provider.as_str(), agents::Provider::as_str);
    let Some(provider) = services.providers.find(provider_name) else {
        return Err(Error::UnknownProvider(provider_name.to_owned()));
    };
    if let Some(reason) =
        provider.fixed_temperature_reason().filter(|_| options.temperature.is_some())
    {
        return Err(Error::NoTemperature { provider: provider_name.to_owned(), reason });
    }
    let of_file = || match first {
        Some(first) if provider_name != own.provider => services.entry_route(first).1,
        first => first.and_then(|first| first.model.clone()),
    };
    let own_model = || (provider_name == own.provider).then(|| own.model.clone());
    let model = options.model.clone().or_else(of_file).or_else(own_model);
    let model = model.ok_or_else(|| Error::NoModel { provider: provider_name.to_owned() })?;
    Ok(RerunRoute {
        has_price: provider.reports_costs() || services.price(provider_name, &model).is_some(),
        route: CallRoute { provider: provider_name.to_owned(), model },
    })
}

/// Reads the text of an agent file as the service's own files are read.
pub(super) fn read_draft(services: &Services, text: &str) -> Result<DraftAgent, Error> {
    let catalogue = services.library.current();
    DraftAgent::parse(text, &catalogue, &services.agents).map_err(Error::AgentFile)
}
