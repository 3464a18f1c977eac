//! The page of a campaign: the statuses of its agents, and its fidelity.

use serde_json::{Value, json};

use super::scenery::Scenery;

impl Scenery {
    /// Returns the status of the copywriter.
    async fn status(&self) -> String {
        let path = format!("/v1/campaigns/{}/agents", self.world.campaign.id);
        let statuses = self.get_json(&path).await;
        let all = statuses["items"].as_array().unwrap();
        let own = |it: &&Value| it["agent"] == "copywriter" && it["instance"] == "main";
        all.iter().find(own).unwrap()["state"].as_str().unwrap().to_owned()
    }

    /// Leaves the copywriter without an open task.
    async fn cancel_flow(&self) {
        self.send("POST", &format!("/v1/flows/{}/cancel", self.flow), &json!({})).await;
    }

    async fn set_last_task(&self, state: &str) {
        let fail = "update dalsegno.sessions set state = 'error' where id = $1";
        sqlx::query(fail).bind(self.session_id).execute(&self.app.pool).await.unwrap();
        let end = "update dalsegno.tasks set state = $2, result = null, error = case when $2 = 'failed' then 'no login' end
               where id = (select task_id from dalsegno.turns where session_id = $1 order by number desc limit 1)";
        let end = sqlx::query(end).bind(self.session_id).bind(state);
        end.execute(&self.app.pool).await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_whose_last_task_was_cancelled_has_not_failed() {
    let scenery = Scenery::new().await;
    scenery.cancel_flow().await;
    scenery.set_last_task("failed").await;
    assert_eq!(scenery.status().await, "error");
    let page = scenery.page(&format!("/campaigns/{}", scenery.world.campaign.id)).await;
    assert!(page.contains("its last task failed"), "{page}");
    scenery.set_last_task("cancelled").await;
    assert_eq!(scenery.status().await, "idle");
}

#[tokio::test]
async fn an_agent_that_failed_in_a_session_for_one_task_has_failed() {
    let scenery = Scenery::new().await;
    scenery.cancel_flow().await;
    scenery.set_last_task("failed").await;
    let ephemeral = "update dalsegno.sessions as s set ephemeral = true,
                opened_by_task = (select task_id from dalsegno.turns where session_id = s.id order by number desc limit 1) where id = $1";
    sqlx::query(ephemeral).bind(scenery.session_id).execute(&scenery.app.pool).await.unwrap();
    assert_eq!(scenery.status().await, "error");
}

#[tokio::test]
async fn an_agent_whose_tasks_are_for_later_has_a_card() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let path = format!("/campaigns/{campaign}");
    assert!(!scenery.page(&path).await.contains("next task"));
    for day in ["2099-11-22", "2099-11-21"] {
        let task = json!({ "agent": "planner", "instance": "late", "prompt": "Plan.", "run_at": format!("{day}T12:00:00Z") });
        scenery.send("POST", &format!("/v1/campaigns/{campaign}/tasks"), &task).await;
    }
    let page = scenery.page(&path).await;
    assert!(page.contains("next task ") && page.contains(">21 Nov 2099 12:00<"), "{page}");
    assert!(page.contains("0 waiting, 2 later"), "{page}");
    let statuses = scenery.get_json(&format!("/v1/campaigns/{campaign}/agents")).await;
    let all = statuses["items"].as_array().unwrap();
    let own = all.iter().find(|it| it["instance"] == "late").unwrap();
    assert_eq!((&own["state"], &own["later"]), (&json!("idle"), &json!(2)), "{own}");
    assert_eq!(own["later_at"], "2099-11-21T12:00:00Z", "{own}");
}

/// A proof that no turn has would lead through all turns of the campaign.
#[tokio::test]
async fn the_fidelity_of_a_campaign_is_that_of_its_newest_turns() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let path = format!("/campaigns/{campaign}?part=fidelity&check=not_seen");
    let page = scenery.page(&path).await;
    assert!(page.contains("No ended turn has this proof"), "{page}");
    assert!(!page.contains("newest 10,000"), "{page}");
    let add = "insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, calls, state, history_check)
         select (select id from dalsegno.sessions where campaign_id = $1 order by id desc limit 1), gen_random_uuid(), 1000 + n, 1, n, n, now(), now(), 1,
                'done', case n when 0 then 'not_seen' else 'seen' end from generate_series(0, 10000) as n";
    sqlx::query(add).bind(campaign).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&path).await;
    assert!(page.contains("No match among the next 10,000 turns"), "{page}");
    assert!(page.contains("those of the newest 10,000 ended turns"), "{page}");
    let report = scenery.get_json(&format!("/v1/campaigns/{campaign}/fidelity")).await;
    assert_eq!(
        (&report["turns"]["seen"], &report["turns"]["not_seen"]),
        (&json!(10_000), &json!(0))
    );
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap_or_else(|| panic!("{page}"));
    let older = scenery.page(&next.split('"').next().unwrap().replace("&amp;", "&")).await;
    assert!(older.contains("/turns/1000\"") && !older.contains("rel=\"next\""), "{older}");
}
