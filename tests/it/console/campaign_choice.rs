//! Choices of a campaign that is not among the newest ones, or is closed.

use serde_json::json;

use super::{
    scenery::Scenery,
    sign_in::{KEYS, form_token, open, post, sign_in},
};
use crate::http::key_setup::ADMIN_KEY;

/// Returns the options of the choice with this attribute.
fn options<'a>(page: &'a str, attribute: &str) -> &'a str {
    let select = page.split(attribute).nth(1).unwrap_or_else(|| panic!("{attribute}: {page}"));
    select.split("</select>").next().unwrap()
}

#[tokio::test]
async fn a_form_chooses_no_other_campaign_in_place_of_an_older_or_closed_one() {
    let scenery = Scenery::new().await;
    let campaign = &scenery.world.campaign;
    let agent = &scenery.world.agent().name;
    let task = json!({ "campaign_id": campaign.id, "agent": agent, "prompt": "Plan the week." });
    let schedule = json!({ "cron": "0 0 9 * * Fri", "task": task });
    scenery.send("PUT", "/v1/schedules/weekly", &schedule).await;
    let closed = scenery.send("POST", "/v1/campaigns", &json!({ "name": "Last winter" })).await;
    let closed = closed["id"].as_str().unwrap();
    scenery.send("POST", &format!("/v1/campaigns/{closed}/close"), &json!({})).await;
    scenery.add_newer_campaigns().await;
    let chosen = format!("<option value=\"{}\" selected>{}</option>", campaign.id, campaign.name);
    let page = scenery.page("/schedules/weekly").await;
    let shown = options(&page, " id=\"schedule-campaign\"");
    assert!(shown.contains(&chosen) && shown.contains("Letter 200"), "{shown}");
    let start = async |campaign: &str| {
        let path = format!("/flows/start?template=article-series&campaign_id={campaign}");
        options(&scenery.page(&path).await, " id=\"flow-campaign\"").to_owned()
    };
    let shown = start(&campaign.id.to_string()).await;
    assert!(shown.contains(&chosen), "{shown}");
    let shown = start(closed).await;
    let first = shown.split("<option").nth(1).unwrap();
    assert!(
        first.starts_with(" value=\"\"") && first.contains("“Last winter” is closed"),
        "{shown}"
    );
    assert!(!shown.contains("selected"), "{shown}");
}

#[tokio::test]
async fn a_change_of_a_schedule_keeps_its_whole_task() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (campaign, agent) = (scenery.world.campaign.id.to_string(), &scenery.world.agent().name);
    let task = json!({ "campaign_id": campaign, "agent": agent, "instance": "two", "prompt": "Plan.", "session": "fresh" });
    let schedule = json!({ "cron": "0 0 9 * * Fri", "task": task });
    scenery.send("PUT", "/v1/schedules/weekly", &schedule).await;
    let admin = sign_in(app, ADMIN_KEY).await;
    let page = open(app, "/schedules/weekly", &admin).await.body;
    let stored = scenery.get_json("/v1/schedules/weekly").await["payload"].clone();
    for key in stored.as_object().unwrap().keys() {
        assert!(page.contains(&format!("name=\"task.{key}\"")), "no field `task.{key}`: {page}");
    }
    let hidden = |name: &str| {
        let field = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let value = page.split(&field).nth(1).unwrap_or_else(|| panic!("{name}: {page}"));
        value.split('"').next().unwrap().to_owned()
    };
    let (instance, session) = (hidden("task.instance"), hidden("task.session"));
    let token = form_token(&page);
    let fields = [
        ("form_token", token.as_str()),
        ("task.instance", &instance),
        ("task.session", &session),
        ("name", "weekly"),
        ("cron", "0+0+10+*+*+Fri"),
        ("time_zone", "UTC"),
        ("number:catch_up_secs", "60"),
        ("task.campaign_id", &campaign),
        ("task.agent", agent),
        ("task.prompt", "Plan."),
    ];
    let saved = post(app, "/do/put_schedule", &admin, &fields, &[]).await;
    assert_eq!(saved.status, 303, "{saved:?}");
    let changed = scenery.get_json("/v1/schedules/weekly").await;
    assert_eq!((&changed["cron"], &changed["payload"]), (&json!("0 0 10 * * Fri"), &stored));
}

#[tokio::test]
async fn a_filter_keeps_its_campaign_where_many_are_newer() {
    let scenery = Scenery::new().await;
    scenery.add_newer_campaigns().await;
    let campaign = scenery.world.campaign.id;
    for path in ["/cost?days=7", "/cost/calls?days=7", "/catalogue/agent/copywriter?part=prompt"] {
        let page = scenery.page(&format!("{path}&campaign_id={campaign}")).await;
        let shown = options(&page, "<select name=\"campaign_id\"");
        let chosen = format!("<option value=\"{campaign}\" selected>");
        assert!(shown.contains(&chosen), "{path}: {shown}");
    }
}

#[tokio::test]
async fn a_key_is_bound_to_an_older_campaign_by_its_id() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let admin = sign_in(app, ADMIN_KEY).await;
    let page = open(app, "/keys", &admin).await.body;
    assert!(!page.contains("older-campaigns"), "all campaigns are options: {page}");
    scenery.add_newer_campaigns().await;
    let page = open(app, "/keys", &admin).await.body;
    assert!(page.contains("id=\"older-campaigns\" name=\"campaigns\""), "{page}");
    let (token, first) = (form_token(&page), scenery.world.campaign.id.to_string());
    let ids = format!("{first}%20{}", scenery.hostile_campaign);
    let fields =
        [("form_token", token.as_str()), ("name", "shop"), ("scopes", "read"), ("campaigns", &ids)];
    let made = post(app, "/keys", &admin, &fields, &[]).await;
    assert_eq!(made.status, 200, "{made:?}");
    let keys = scenery.get_json("/v1/keys").await;
    let key = keys["items"].as_array().unwrap().iter().find(|key| key["name"] == "shop").unwrap();
    let bound = key["campaigns"].as_array().unwrap();
    assert!(bound.len() == 2 && bound.contains(&json!(first)), "{key}");
}
