//! Estimates of turns, against what the turns are charged.

mod distribution;
mod ways;

use std::sync::Arc;

use dalsegno::{
    domain::{
        context_previews::{BeginTransaction, Error, PreviewSubject},
        estimates::{Estimate, Way, WayEstimate},
        transaction,
    },
    jobs::{Services, previews},
};

use crate::turns::fixture::Fixture;

async fn estimate_by(
    services: Arc<Services>,
    fixture: &Fixture,
    subject: PreviewSubject,
) -> Result<Estimate, Error> {
    let pool = fixture.pool.clone();
    let begin: Arc<BeginTransaction> = Arc::new(move || {
        let pool = pool.clone();
        Box::pin(async move { transaction::begin(&pool).await })
    });
    previews(services).estimate(subject, begin).await
}

fn subject(fixture: &Fixture, reader: &str, prompt: &str) -> PreviewSubject {
    let (agent, instance) = reader.split_once('/').unwrap_or((reader, "main"));
    PreviewSubject::Agent {
        campaign_id: fixture.campaign.id,
        agent: agent.to_owned(),
        instance: instance.to_owned(),
        prompt: Some(prompt.to_owned()),
        node: None,
        session: None,
        attachments: Vec::new(),
    }
}

/// Estimates a task of the writer, in the process of the test, on its clock.
pub async fn of_writer(fixture: &Fixture, settings: &[(&str, &str)]) -> Estimate {
    let services = fixture.services(settings);
    estimate_by(services, fixture, subject(fixture, "writer", "Write the next part."))
        .await
        .unwrap()
}

fn find(estimate: &Estimate, way: Way) -> &WayEstimate {
    estimate.ways.iter().find(|it| it.way == way).unwrap()
}

pub fn next(estimate: &Estimate) -> &WayEstimate {
    let mut next = estimate.ways.iter().filter(|it| it.is_next);
    let (Some(way), None) = (next.next(), next.next()) else { panic!("{:?}", estimate.ways) };
    assert_eq!(way.impossible, None, "the next turn takes this way");
    way
}
