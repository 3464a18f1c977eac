//! The page of the audit log: filters by names, all actions, details in words.

use serde_json::{Value, json};

use super::scenery::{HOSTILE, Scenery, USER};

/// Returns the texts of the options of a choice.
fn has_option(page: &str, value: &str) -> bool {
    page.contains(&format!("<option value=\"{value}\""))
}

/// Returns the actions of the lines that a page lists.
fn actions(page: &str) -> Vec<&str> {
    let links = page.split("<a href=\"/audit?action=").skip(1);
    links.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn the_log_is_filtered_by_the_names_of_campaigns_agents_and_users() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let pause = json!({ "reason": "legal reads it first" });
    let path = format!("/v1/campaigns/{campaign}/agents/planner/pause");
    scenery.send("POST", &path, &pause).await;
    scenery.send("POST", "/v1/agents/reviewer/pause", &pause).await;
    let of = async |subject: &str| scenery.page(&format!("/audit?subject={subject}")).await;
    // The world adds its campaign without the operation, so the first line is an edit.
    let page = of("harbour").await;
    let found = actions(&page);
    assert!(found.contains(&"campaign.edit") && found.contains(&"agent.pause"), "{found:?}");
    assert!(!found.contains(&"fact.state"), "{found:?}");
    assert_eq!(actions(&of("planner").await), ["agent.pause"]);
    assert_eq!(actions(&of("reviewer").await), ["agent.pause"]);
    assert_eq!(actions(&of(&USER.replace('@', "%40")).await), ["fact.state"]);
    let by_id = of(&campaign.to_string()).await;
    assert!(actions(&by_id).contains(&"campaign.edit"), "{by_id}");
    assert!(of("nothing").await.contains("No line matches these filters"));
    // A user may be named by a UUID, and the owner of a budget is part of its subject.
    let user = "00000000-0000-4000-8000-000000000001";
    let fact = json!({ "attribute": "Diet", "text": "Eats no meat." });
    scenery.send("POST", &format!("/v1/users/{user}/facts"), &fact).await;
    assert_eq!(actions(&of(user).await), ["fact.state"]);
    let budget = json!({ "owner": "user", "key": user, "tokens": 9000 });
    scenery.send("PATCH", "/v1/budgets", &budget).await;
    assert_eq!(actions(&of(user).await), ["budget.set", "fact.state"]);
    let budget = json!({ "owner": "agent", "key": "reviewer", "tokens": 9000 });
    scenery.send("PATCH", "/v1/budgets", &budget).await;
    assert_eq!(actions(&of("reviewer").await), ["budget.set", "agent.pause"]);
    // The id of a campaign finds the same lines as its name; a campaign with the name of an agent is another thing.
    let flows = |page: &str| actions(page).iter().filter(|action| **action == "flow.start").count();
    let (by_name, by_id) = (of("harbour").await, of(&campaign.to_string()).await);
    assert_eq!((flows(&by_name), flows(&by_id)), (1, 1), "{by_id}");
    assert_eq!(actions(&by_name), actions(&by_id));
    let other = scenery.send("POST", "/v1/campaigns", &json!({ "name": "planner" })).await;
    let other = of(other["id"].as_str().unwrap()).await;
    assert_eq!(actions(&other), ["campaign.create"]);
    // An API key and a webhook, by their names and by the digits that lists show.
    let key =
        scenery.send("POST", "/v1/keys", &json!({ "name": "shop", "scopes": ["read"] })).await;
    let hook = json!({ "url": "https://shop.example/hooks" });
    let hook = scenery.send("POST", "/v1/webhooks", &hook).await;
    let end = |made: &Value| made["id"].as_str().unwrap()[24..].to_owned();
    for (subject, action) in [
        ("shop".to_owned(), "key.create"),
        (end(&key), "key.create"),
        ("shop.example".to_owned(), "webhook.add"),
        (end(&hook), "webhook.add"),
        (campaign.to_string()[24..].to_owned(), actions(&by_id)[0]),
    ] {
        let found = of(&subject).await;
        assert_eq!(actions(&found)[0], action, "{subject}: {found}");
    }
    assert_eq!(actions(&of(&campaign.to_string()[24..]).await), actions(&by_id));
    // Digits may also be a name.
    let digits = end(&key);
    scenery.send("POST", "/v1/campaigns", &json!({ "name": digits })).await;
    assert_eq!(actions(&of(&digits).await), ["campaign.create", "key.create"]);
    assert!(of("0000deadbeef").await.contains("its last 8 or more digits"));
    // The names are suggested, and lines name their campaign.
    assert!(has_option(&page, "Harbour") && has_option(&page, "planner"), "{page}");
    let link = format!("href=\"/campaigns/{campaign}\"><bdi>Harbour</bdi>");
    assert!(page.contains(&link), "{page}");
}

#[tokio::test]
async fn a_change_of_a_budget_has_both_amounts_and_leads_to_the_budget() {
    let scenery = Scenery::new().await;
    for (micros, tokens) in [(5_000_000, json!(9000)), (10_000_000, json!(null))] {
        let budget =
            json!({ "owner": "agent", "key": "reviewer", "micros": micros, "tokens": tokens });
        scenery.send("PATCH", "/v1/budgets", &budget).await;
    }
    let other = json!({ "owner": "agent", "key": "copywriter", "micros": 1_000_000 });
    scenery.send("PATCH", "/v1/budgets", &other).await;
    let campaign = format!("/v1/campaigns/{}/budget", scenery.world.campaign.id);
    scenery.send("PATCH", &campaign, &json!({ "on_limit": "fail" })).await;
    let page = scenery.page("/audit?action=budget").await;
    let (money, removed) = ("$5.00 → $10.00", "9000 tokens → none");
    assert!(page.contains(money) && page.contains(removed), "{page}");
    assert!(page.contains("none → $5.00"), "{page}");
    let link = "/cost/budgets?of=agent%2Freviewer";
    assert!(page.contains(&format!("href=\"{link}\"")), "{page}");
    let budgets = scenery.page(link).await;
    assert!(
        budgets.contains("Last changed by ") && budgets.contains("Only the budget of"),
        "{budgets}"
    );
    assert_eq!(budgets.matches("class=\"budget-bar\"").count(), 1, "{budgets}");
    let of_campaign = scenery.page("/audit?action=campaign.limit").await;
    assert!(of_campaign.contains("tasks wait → tasks fail"), "{of_campaign}");
    let nothing = scenery.page("/cost/budgets?of=planet%2Freviewer").await;
    assert!(nothing.contains("This budget has no limit"), "{nothing}");
    // A line that changes no amount shows its fields.
    let same = "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
         values ('2026-11-20 12:00+00', 'cli', 'ann', 'budget.set', 'budget', 'agent/reviewer', '{\"limit\": {\"micros\": 7}, \"before\": {\"limit\": {\"micros\": 7}}}')";
    sqlx::query(same).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/audit?action=budget&actor=ann").await;
    assert!(page.contains("<dt>Limit</dt>") && page.contains("<dt>Before</dt>"), "{page}");
}

/// Filters that match nothing would read the whole log.
#[tokio::test]
async fn a_page_of_the_log_checks_a_limited_number_of_lines() {
    let scenery = Scenery::new().await;
    let add = "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject)
         select '2026-11-20 12:00+00'::timestamptz + n * interval '1 second', 'cli', $2, 'lane.hold', 'lane', 'lane-' || n from generate_series(1, $1) as n";
    for (n, actor) in [(1, "cleo"), (100_000, "dan")] {
        sqlx::query(add).bind(n).bind(actor).execute(&scenery.app.pool).await.unwrap();
    }
    let page = scenery.page("/audit?actor=cleo").await;
    assert!(page.contains("No match among the next 100,000 lines"), "{page}");
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap_or_else(|| panic!("{page}"));
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    let older = scenery.page(&next).await;
    assert_eq!(actions(&older), ["lane.hold"], "{older}");
    assert!(!older.contains("rel=\"next\""), "{older}");
    // Times are found by their index: no page is spent on the lines outside of them.
    let path = "/audit?actor=cleo&before=2026-11-20T12:00:10Z";
    let early = scenery.page(path).await;
    assert_eq!(actions(&early), ["lane.hold"], "{early}");
    let unmatched = scenery.page("/audit?actor=nobody&after=2026-11-21T12:00:00Z").await;
    assert!(unmatched.contains("No line matches these filters"), "{unmatched}");
}

#[tokio::test]
async fn a_time_that_cannot_be_read_is_refused_and_the_form_keeps_its_fields() {
    let scenery = Scenery::new().await;
    let path = "/audit?subject=planner&action=budget.set&after=";
    let reply = scenery.app.get(&format!("{path}yesterday")).await;
    assert_eq!(reply.status, 422, "{reply:?}");
    let page = reply.body.replace("<code>", "`").replace("</code>", "`");
    assert!(page.contains("`yesterday` is not a time"), "{page}");
    assert!(actions(&page).is_empty(), "{page}");
    for kept in [
        "type=\"text\" name=\"after\" value=\"yesterday\"",
        "name=\"subject\" list=\"subjects\" value=\"planner\"",
        "<option value=\"budget.set\" selected",
    ] {
        assert!(page.contains(kept), "{kept} in {page}");
    }
    let read = scenery.page(&format!("{path}2026-11-27T09:00")).await;
    assert!(read.contains("type=\"datetime-local\" name=\"after\""), "{read}");
}

#[tokio::test]
async fn every_action_can_be_chosen_and_details_are_words() {
    let scenery = Scenery::new().await;
    let bulk = json!({ "action": "cancel", "filter": { "agent": "planner", "text": "no task has these words" }, "reason": HOSTILE });
    scenery.send("POST", "/v1/bulk-actions", &bulk).await;
    let page = scenery.page("/audit?action=bulk_action").await;
    assert_eq!(actions(&page), ["bulk_action.create"]);
    for action in ["bulk_action", "bulk_action.create", "budget.set", "eval", "credential.resume"] {
        assert!(has_option(&page, action), "{action} in {page}");
    }
    assert!(page.contains("<option value=\"bulk_action\" selected"), "{page}");
    let line = page.split("<dl class=\"facts\">").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(line.contains("<dt>Reason</dt>") && !line.contains("<script"), "{line}");
    let (_, raw) = line.split_once("<summary>as JSON</summary>").unwrap();
    let raw = raw.split_once("<pre class=\"code wrap\">").unwrap().1;
    let raw = raw.split("</pre>").next().unwrap();
    let text = raw.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    let raw: Value = serde_json::from_str(&text.replace("&amp;", "&")).unwrap();
    assert!(raw["reason"].as_str().unwrap().contains("<script>"), "{raw}");
    assert!(!line.contains("<details class=\"raw\" open"), "{line}");
}
