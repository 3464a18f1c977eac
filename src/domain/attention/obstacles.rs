//! Waits of many tasks for one thing: a budget without space, a held lane.

use sqlx::PgConnection;

use super::{Attention, Error, Kind, MAX_OF_KIND};
use crate::{
    domain::{
        Amount,
        amount::{OnLimit, Refusal},
        budgets::{self, AwaitedBudget, OwnerKind},
        campaigns::{self, SpentBudget},
        tasks,
        text::count,
    },
    queue::admin::{self, HeldLane},
};

/// Lists the budgets that tasks wait for, and those that are used up.
pub(super) async fn budgets(conn: &mut PgConnection) -> Result<Vec<Attention>, Error> {
    let mut all = Vec::new();
    for awaited in budgets::list_waits(&mut *conn, MAX_OF_KIND).await? {
        all.extend(of_awaited(&mut *conn, awaited).await?);
    }
    for spent in campaigns::spent_budgets(&mut *conn, MAX_OF_KIND).await? {
        if all.iter().all(|known| known.campaign_id != Some(spent.campaign_id)) {
            all.push(of_spent(spent));
        }
    }
    Ok(all)
}

/// Describes the wait for a budget. `None`: the budget has space by now.
async fn of_awaited(
    conn: &mut PgConnection,
    awaited: AwaitedBudget,
) -> Result<Option<Attention>, Error> {
    if awaited.owner == "task" {
        return of_task_budget(conn, awaited).await;
    }
    let kind = OwnerKind::ALL.into_iter().find(|kind| kind.as_str() == awaited.owner);
    let Some(kind) = kind else { return Ok(None) };
    let Some(budget) = budgets::find(conn, kind, &awaited.key, None).await? else {
        return Ok(None);
    };
    let Err(refusal) = budget.check(awaited.needed) else { return Ok(None) };
    let name = match (kind, &budget.name) {
        (_, Some(name)) => name.clone(),
        (OwnerKind::Day, None) => "the budget of the day".to_owned(),
        (kind, None) => format!("{} {}", kind.as_str(), budget.key),
    };
    let campaign_id = (kind == OwnerKind::Campaign).then(|| budget.key.parse().ok()).flatten();
    let attention = of_refusal(Kind::SpentBudget, &awaited, &refusal);
    Ok(Some(Attention { name, campaign_id, ..attention }))
}

async fn of_task_budget(
    conn: &mut PgConnection,
    awaited: AwaitedBudget,
) -> Result<Option<Attention>, Error> {
    let Ok(id) = awaited.key.parse() else { return Ok(None) };
    let task = match tasks::get(conn, id).await {
        Err(tasks::Error::Unknown(_)) => return Ok(None),
        found => found?,
    };
    let Err(refusal) = task.check_budget(Amount::ZERO, awaited.needed) else { return Ok(None) };
    let attention = of_refusal(Kind::SpentTaskBudget, &awaited, &refusal);
    let (name, agent) = (task.prompt, Some(task.agent));
    Ok(Some(Attention { name, agent, campaign_id: Some(task.campaign_id), ..attention }))
}

fn of_refusal(kind: Kind, awaited: &AwaitedBudget, refusal: &Refusal) -> Attention {
    let waiting = count(awaited.tasks, "task waits", "tasks wait");
    let because = format!("{waiting}: {}", refusal.amounts());
    let command = refusal.raise_command().trim_matches('`').to_owned();
    let attention = Attention::of(kind, &awaited.key, because, command);
    let budget = Some(refusal.owner.subject());
    Attention { budget, since: Some(awaited.since), count: Some(awaited.tasks), ..attention }
}

fn of_spent(SpentBudget { campaign_id, name, in_money, on_limit }: SpentBudget) -> Attention {
    let because = match on_limit {
        OnLimit::Wait => "the budget is used up: further tasks of the campaign wait",
        OnLimit::Fail => "the budget is used up: further tasks of the campaign fail",
    };
    let flag = if in_money { "--money AMOUNT" } else { "--tokens NUMBER" };
    let command = format!("dalsegno campaign budget {campaign_id} {flag}");
    let subject = campaign_id.to_string();
    let attention = Attention::of(Kind::SpentBudget, &subject, because.to_owned(), command);
    Attention { name, campaign_id: Some(campaign_id), ..attention }
}

/// Lists held lanes. Without any, which is usual, it reads nothing.
pub(super) async fn held_lanes(
    conn: &mut PgConnection,
    n_held: i64,
) -> Result<Vec<Attention>, Error> {
    if n_held == 0 {
        return Ok(Vec::new());
    }
    Ok(admin::held_lanes(conn, MAX_OF_KIND).await?.into_iter().map(of_lane).collect())
}

fn of_lane(HeldLane { lane, reason, held_at, jobs }: HeldLane) -> Attention {
    let waiting = count(jobs, "job waits", "jobs wait");
    let because = match reason.as_str() {
        "" => format!("the lane is held, and {waiting}"),
        reason => format!("the lane is held, and {waiting}: {reason}"),
    };
    let command = format!("dalsegno lane release {lane}");
    let attention = Attention::of(Kind::HeldLane, &lane, because, command);
    Attention {
        campaign_id: lane.split('/').next().and_then(|part| part.parse().ok()),
        agent: lane.split('/').nth(1).map(str::to_owned),
        since: held_at,
        count: Some(jobs),
        ..attention
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_a_spent_budget_has_its_unit() {
        let spent = |in_money| {
            let name = "Harbour".to_owned();
            of_spent(SpentBudget {
                campaign_id: uuid::Uuid::nil(),
                name,
                in_money,
                on_limit: OnLimit::Wait,
            })
        };
        assert!(spent(true).command.ends_with("--money AMOUNT"));
        assert!(spent(false).command.ends_with("--tokens NUMBER"));
    }
}
