//! The pages of costs: figures with links to their calls, the CSV file, and budgets that are set in the browser.

use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{HTML, KEYS, form_token, key, open, post, sign_in},
};
use crate::{
    app::{TestApp, TestDatabase},
    http::{client::send, key_setup::ADMIN_KEY},
};

/// Calls of three agents on the last 20 days.
const CALLS: &str = "insert into dalsegno.usage
      (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, input_tokens, output_tokens, cache_read_tokens,
       session_id, turn)
    select '2026-11-20 10:00+00'::timestamptz - make_interval(days => n / 6), $1, (array['planner', 'copywriter', 'reviewer'])[1 + n % 3],
           (array['sim-1', 'opus'])[1 + n % 2], 'sim', (array['turn', 'turn', 'summary'])[1 + n % 3], 'done', 30000 * (1 + n % 7), 9000, 400, 12000,
           $2, 1
      from generate_series(0, 119) as n";

impl Scenery {
    pub async fn charge(&self) {
        sqlx::query(CALLS)
            .bind(self.world.campaign.id)
            .bind(self.session_id)
            .execute(&self.app.pool)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn figures_lead_to_the_calls_behind_them() {
    let scenery = Scenery::new().await;
    scenery.charge().await;
    let page = scenery.page("/cost?by=agent&days=7").await;
    assert!(page.contains("/cost/calls?days=7&amp;agent=reviewer"), "{page}");
    let of_day = "/cost/calls?from=2026-11-20&amp;to=2026-11-20&amp;agent=planner";
    assert!(page.contains(of_day), "a part of a bar is a link");
    let calls = scenery.page("/cost/calls?from=2026-11-20&to=2026-11-20&agent=planner").await;
    assert!(calls.contains(&format!("/sessions/{}/turns/1", scenery.session_id)), "{calls}");
    assert!(!calls.contains("bdi>reviewer"), "only calls of the agent: {calls}");
    let costliest = scenery.page("/cost/calls?days=30&order=costliest").await;
    let (first, second) = (costliest.find("$0.210").unwrap(), costliest.find("$0.180").unwrap());
    assert!(first < second);
    let without = scenery.page("/cost/calls?days=30&no_user=true&agent=stranger").await;
    assert!(without.contains("dalsegno cost --calls"), "{without}");
}

#[tokio::test]
async fn the_csv_file_has_the_lines_of_the_page() {
    let scenery = Scenery::new().await;
    scenery.charge().await;
    let reply =
        send(scenery.app.address, "GET", "/cost/report.csv?by=model&days=30", &[], "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("text/csv"), "{reply:?}");
    assert!(reply.head.contains("cost-2026-10-22-2026-11-20-by-day-and-model.csv"), "{reply:?}");
    assert!(reply.body.starts_with("day,model,calls,input_tokens"), "{}", reply.body);
    let micros = |line: &str| line.rsplit(',').nth(2).unwrap().parse::<i64>().unwrap();
    let sum: i64 = reply.body.lines().skip(1).map(micros).sum();
    let all = "select sum(cost_micros)::bigint from dalsegno.usage";
    let stored: i64 = sqlx::query_scalar(all).fetch_one(&scenery.app.pool).await.unwrap();
    assert_eq!(sum, stored);
    let path = "/cost/report.csv?by=campaign&days=30";
    let named = send(scenery.app.address, "GET", path, &[], "").await.body;
    assert!(named.starts_with("day,campaign,campaign_name,calls,"), "{named}");
    let campaign = &scenery.world.campaign;
    assert!(named.contains(&format!("{},{},", campaign.id, campaign.name)), "{named}");
    let page = scenery.page("/cost?by=campaign&days=30").await;
    let total = "/cost/report.csv?by=campaign&days=30&total=true";
    for (words, path) in [("CSV by campaign", total), ("CSV by day and campaign", path)] {
        let link = format!("href=\"{}\" download>{words}</a>", path.replace('&', "&amp;"));
        let has_link = page.replace("download=\"\"", "download").contains(&link);
        assert!(has_link, "{link} in {page}");
    }
    let totals = send(scenery.app.address, "GET", total, &[], "").await;
    assert!(totals.head.contains("cost-2026-10-22-2026-11-20-by-campaign.csv"), "{totals:?}");
    assert!(totals.body.starts_with("campaign,campaign_name,calls,"), "{}", totals.body);
    let of_campaign = totals.body.lines().filter(|line| line.contains(&campaign.id.to_string()));
    assert_eq!(of_campaign.count(), 1, "{}", totals.body);
}

#[tokio::test]
async fn rows_of_calls_without_a_price_have_no_amount() {
    let scenery = Scenery::new().await;
    scenery.charge().await;
    let free = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
                select called_at, campaign_id, 'free', 'local', 'sim', purpose, outcome, 0, 5 from dalsegno.usage order by id desc limit 3";
    sqlx::raw_sql(free).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/cost?by=model&days=90").await;
    let row = page.split("<tr>").skip(1).find(|row| row.contains("model=local")).unwrap();
    assert!(row.contains(">no price<"), "{row}");
    assert!(!row.contains("without a price"), "none has one: {row}");
    let sums = page.split("<tfoot>").nth(1).unwrap().split("</tfoot>").next().unwrap();
    assert!(sums.contains(" calls without a price<"), "{sums}");
    assert!(page.contains(" Most of it: "), "{page}");
    assert!(
        page.contains("calls had no price") && page.contains("setting=prices.models"),
        "{page}"
    );
    // The link leads to a section that can be copied, with the names of the models. The simulation is free.
    let path = "/installation?setting=prices.models";
    let free = scenery.page(path).await;
    let nothing = "Nothing has to be set for <code><bdi>sim/";
    assert!(free.contains(nothing) && !free.contains("[prices]"), "{free}");
    let charged = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
                select '2026-11-20 10:00+00', campaign_id, 'free', 'gpt-x', 'west', purpose, outcome, 0, 5 from dalsegno.usage order by id desc limit 1";
    sqlx::raw_sql(charged).execute(&scenery.app.pool).await.unwrap();
    let setting = scenery.page(path).await;
    for part in ["[prices]", "provider = &quot;west&quot;, model = &quot;gpt-x&quot;", "30 days"] {
        assert!(setting.contains(part), "{part} in {setting}");
    }
    assert!(setting.contains(nothing), "{setting}");
    assert!(!setting.contains("model = &quot;local&quot;"), "{setting}");
    assert!(!scenery.page("/installation").await.contains("[prices]"));
    let csv = send(scenery.app.address, "GET", "/cost/report.csv?by=model&days=90", &[], "").await;
    assert!(csv.body.lines().next().unwrap().ends_with(",calls_without_price"), "{}", csv.body);
    let of_free = csv.body.lines().filter(|line| line.contains(",local,"));
    let counts = of_free.map(|line| line.rsplit(',').next().unwrap().parse::<i64>().unwrap());
    assert_eq!(counts.sum::<i64>(), 3, "{}", csv.body);
    // Nothing has a price: there is no largest share.
    let campaign = scenery.hostile_campaign;
    let unpriced = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
                select '2026-11-20 10:00+00', $1, 'free', model, 'sim', 'turn', 'done', 0, 5 from unnest(array['local', 'other']) as model";
    sqlx::query(unpriced).bind(campaign).execute(&scenery.app.pool).await.unwrap();
    let of_campaign = format!("/cost?by=model&days=90&measure=money&campaign_id={campaign}");
    let page = scenery.page(&of_campaign).await;
    assert!(page.contains(" for 2 calls ") && !page.contains("Most of it"), "{page}");
    // The overview and the list of campaigns have the same words.
    let overview = scenery.page("/").await;
    assert!(overview.contains("<b>no price</b>"), "{overview}");
    let campaigns = scenery.page("/campaigns").await;
    let amount = format!("campaign_id={campaign}\">no price<");
    assert!(campaigns.contains(&amount), "{campaigns}");
}

#[tokio::test]
async fn empty_pages_of_costs_name_a_command() {
    let app = TestApp::start_on(TestDatabase::migrated().await).await;
    for (path, command) in [
        ("/cost", "dalsegno cost --since 90d"),
        ("/cost/calls", "dalsegno cost --calls"),
        ("/cost/budgets", "dalsegno budget set day"),
    ] {
        let reply = send(app.address, "GET", path, &[HTML], "").await;
        assert!(reply.status == 200 && reply.body.contains(command), "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn a_report_of_many_values_lists_the_highest_and_adds_up_the_others() {
    let scenery = Scenery::new().await;
    let calls = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros)
        select '2026-11-20 10:00+00'::timestamptz - make_interval(days => day), $1, 'agent_' || n, 'sim-1', 'sim', 'turn', 'done', 1000000 + n
          from generate_series(1, 400) as n cross join generate_series(0, 29) as day";
    sqlx::query(calls).bind(scenery.world.campaign.id).execute(&scenery.app.pool).await.unwrap();
    // Each agent on each day would be more lines than a report may have.
    let url = "/v1/costs?by=day&and=agent&since=2026-10-22T00:00:00Z";
    let refused = send(scenery.app.address, "GET", url, &[], "").await;
    assert!(refused.status == 422 && refused.body.contains("number of top values"), "{refused:?}");
    let top = send(scenery.app.address, "GET", &format!("{url}&top=2"), &[], "").await;
    let top: serde_json::Value = serde_json::from_str(&top.body).unwrap();
    let n_lines = |field: &str| top[field].as_array().unwrap().len();
    assert_eq!((n_lines("lines"), n_lines("others"), &top["n_others"]), (60, 30, &json!(399)));
    let zero = send(scenery.app.address, "GET", &format!("{url}&top=0"), &[], "").await;
    assert!(zero.status == 400 && zero.body.contains("from 1 to 1000"), "{zero:?}");
    let month = scenery.page("/cost?by=agent&days=30").await;
    assert!(month.contains(">agent_371<") && !month.contains(">agent_370<"), "{month}");
    assert!(month.contains(">371 others, in the CSV files<"), "{month}");
    assert!(month.contains(">395 others<b>"), "the legend names six: {month}");
    let page = scenery.page("/cost?by=agent&days=1").await;
    assert_eq!(page.matches("November, others: ").count(), 1, "one part of the bar: {page}");
    let csv = send(scenery.app.address, "GET", "/cost/report.csv?by=agent&days=1", &[], "").await;
    assert!(csv.body.contains(",agent_9,"), "{}", csv.body);
}

#[tokio::test]
async fn the_most_urgent_budget_of_all_is_first() {
    let scenery = Scenery::new().await;
    for letter in 'a'..='q' {
        let budget =
            json!({ "owner": "user", "key": format!("user-{letter}"), "micros": 1_000_000 });
        scenery.send("PATCH", "/v1/budgets", &budget).await;
    }
    let spend = "update dalsegno.budget_shares as s set spent_micros = b.limit_micros from dalsegno.budgets as b
        where b.id = s.budget_id and b.key = 'user-q'";
    sqlx::query(spend).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/cost/budgets").await;
    let place = |key: &str| page.find(&format!("<b><bdi>{key}</bdi></b>"));
    assert!(place("user-q").is_some_and(|first| first < place("user-a").unwrap()), "{page}");
    assert!(page.contains("1 budget has") && page.contains("cursor=15"), "{page}");
    assert!(place("user-p").is_none(), "it is on the next page");
    assert!(scenery.page("/cost/budgets?cursor=15").await.contains("<b><bdi>user-p</bdi></b>"));
}

#[tokio::test]
async fn a_budget_that_is_used_up_is_first_among_hundreds_and_all_can_be_reached() {
    let scenery = Scenery::new().await;
    let pool = &scenery.app.pool;
    for statement in [
        "insert into dalsegno.campaigns (id, name) select gen_random_uuid(), 'Letter ' || n from generate_series(1, 250) as n",
        "update dalsegno.campaign_budgets set limit_micros = 1000000000 where limit_micros is null",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    for budget in [
        json!({ "owner": "day", "micros": 1_000_000 }),
        json!({ "owner": "user", "key": "zoe", "micros": 1_000_000 }),
    ] {
        scenery.send("PATCH", "/v1/budgets", &budget).await;
    }
    let spend = "update dalsegno.budget_shares as s set spent_micros = b.limit_micros from dalsegno.budgets as b
        where b.id = s.budget_id and b.owner = 'day'";
    sqlx::query(spend).execute(pool).await.unwrap();
    let is_day_first = |page: &str| {
        let rows = page.split("class=\"rows budgets\"").nth(1).unwrap();
        let place = |words: &str| rows.find(words).unwrap_or_else(|| panic!("{words}: {rows}"));
        place("Each day") < place("Campaign")
    };
    let page = scenery.page("/cost/budgets").await;
    assert!(page.contains("<b>1 budget has</b> reached the limit."), "{page}");
    assert!(!page.contains("No budget has reached its limit"), "{page}");
    assert!(is_day_first(&page), "{page}");
    let n_budgets = "select count(*) from dalsegno.list_budgets(now())";
    let n_budgets: i64 = sqlx::query_scalar(n_budgets).fetch_one(pool).await.unwrap();
    let last = (n_budgets - 1) / 15 * 15;
    let last = scenery.page(&format!("/cost/budgets?cursor={last}")).await;
    assert!(last.contains("<b><bdi>zoe</bdi></b>") && !last.contains("rel=\"next\""), "{last}");
    assert!(last.contains("<b>1 budget has</b> reached the limit."), "{last}");
    let beyond = scenery.page("/cost/budgets?cursor=100000").await;
    assert!(is_day_first(&beyond), "{beyond}");
    let unknown = scenery.page("/cost/budgets?of=user%2F%00").await;
    assert!(unknown.contains("This budget has no limit."), "{unknown}");
}

#[tokio::test]
async fn what_is_unexpected_about_new_limits_stands_in_the_list() {
    let scenery = Scenery::new().await;
    let user =
        json!({ "owner": "user", "key": "kim", "micros": 2_000_000, "soft_micros": 2_000_000 });
    let set = scenery.send("PATCH", "/v1/budgets", &user).await;
    assert_eq!(set["has_campaign"], false, "{set}");
    let unchanged = json!({ "owner": "user", "key": "kim" });
    assert_eq!(scenery.send("PATCH", "/v1/budgets", &unchanged).await, set);
    let of_user = scenery.page("/cost/budgets?of=user%2Fkim").await;
    for words in [
        "No campaign works for the user <code>kim</code> now",
        "The soft limit of $2.00 is not below the hard limit of $2.00",
        "Counts all calls of all time",
        "which are not in this list; an eval with a limit",
    ] {
        assert!(of_user.contains(words), "{words} in {of_user}");
    }
    let campaign = scenery.world.campaign.id;
    let put = json!({ "user": "kim" });
    scenery.send("PUT", &format!("/v1/campaigns/{campaign}/user"), &put).await;
    let of_user = scenery.page("/cost/budgets?of=user%2Fkim").await;
    assert!(!of_user.contains("No campaign works"), "{of_user}");
    let day = json!({ "owner": "day", "micros": 3_000_000 });
    let day_set = scenery.send("PATCH", "/v1/budgets", &day).await;
    assert_eq!(day_set["has_campaign"], json!(null), "{day_set}");
    let of_day = scenery.page("/cost/budgets?of=day").await;
    assert!(of_day.contains("Begins again ") && !of_day.contains("Counts all calls"), "{of_day}");
    let path = format!("/v1/campaigns/{campaign}/budget");
    let limit = json!({ "micros": 1_000_000, "soft_micros": 4_000_000 });
    scenery.send("PATCH", &path, &limit).await;
    let page = scenery.page(&format!("/campaigns/{campaign}")).await;
    assert!(page.contains("The soft limit of $4.00 is not below"), "{page}");
}

#[tokio::test]
async fn budgets_are_set_with_the_scope_only() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let set = |token: &str, money: &'static str| {
        vec![
            ("form_token", token.to_owned()),
            ("then", "/cost/budgets".to_owned()),
            ("owner", "agent".to_owned()),
            ("key", "copywriter".to_owned()),
            ("money:micros", money.to_owned()),
        ]
    };
    let (_, secret) = key(app, "ben", "read").await;
    let reader = sign_in(app, &secret).await;
    let page = open(app, "/cost/budgets", &reader).await.body;
    assert!(!page.contains("/do/set_budget") && !page.contains("/do/change_budget"), "{page}");
    let fields = set(&form_token(&page), "2,50");
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(post(app, "/do/set_budget", &reader, &fields, &[]).await.status, 403);

    let (_, secret) = key(app, "ann", "operate").await;
    let operator = sign_in(app, &secret).await;
    let page = open(app, "/cost/budgets", &operator).await.body;
    assert!(page.contains("/do/set_budget"), "{page}");
    let admin = sign_in(app, ADMIN_KEY).await;
    let token = form_token(&page);
    for (money, shown) in [("2,50", true), ("", false)] {
        let fields = set(&token, money);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = post(app, "/do/set_budget", &operator, &fields, &[]).await;
        assert_eq!(reply.status, 303, "{reply:?}");
        let page = open(app, "/cost/budgets", &operator).await.body;
        assert_eq!(page.contains("left of $2.50"), shown, "{page}");
        // The audit log is for administrators.
        assert!(!page.contains("Last changed by"), "{page}");
        let page = open(app, "/cost/budgets", &admin).await.body;
        let is_named = page
            .contains("Last changed by <a href=\"/audit?subject=agent%2Fcopywriter\"><bdi>ann<");
        assert_eq!(is_named, shown, "{page}");
    }
}

#[tokio::test]
async fn costs_fit_into_each_width() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.charge().await;
    let body = r#"{"owner":"day","micros":20000000,"soft_micros":1000000,"tokens":900000}"#;
    send(scenery.app.address, "PATCH", "/v1/budgets", &[], body).await.expect(200);
    let reached = r#"{"owner":"agent","key":"copywriter","micros":100000}"#;
    send(scenery.app.address, "PATCH", "/v1/budgets", &[], reached).await.expect(200);
    for (name, path) in [
        ("cost-agents", "/cost"),
        ("cost-days", "/cost?by=day&days=7"),
        ("cost-list", "/cost/calls?order=costliest"),
        ("cost-limits", "/cost/budgets"),
    ] {
        browser.open(&scenery.url(path)).await;
        browser.save_in_all_looks(name).await;
    }
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/cost/budgets")).await;
    browser.click("[popovertarget=new-budget]").await;
    browser.wait_until("document.querySelector('#new-budget:popover-open')").await;
    browser.save_picture("cost-new-budget").await;
    browser.write("#budget-key", "planner").await;
    browser.run("document.getElementById('budget-owner').value = 'agent'").await;
    browser.write("#new-budget-money", "4").await;
    browser.click("#new-budget .primary").await;
    browser.wait_until("document.querySelectorAll('.budgets > li').length === 4").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn the_budget_that_is_nearest_to_its_limit_is_the_first() {
    let scenery = Scenery::new().await;
    scenery.charge().await;
    for (key, micros) in [("planner", 90_000_000), ("copywriter", 10_000), ("reviewer", 9_000_000)]
    {
        let budget = serde_json::json!({ "owner": "agent", "key": key, "micros": micros });
        scenery.send("PATCH", "/v1/budgets", &budget).await;
        let spend =
            "update dalsegno.budget_shares as s set spent_micros = 5000 from dalsegno.budgets as b
             where s.budget_id = b.id and s.share = 0 and b.owner = 'agent' and b.key = $1";
        sqlx::query(spend).bind(key).execute(&scenery.app.pool).await.unwrap();
    }
    let page = scenery.page("/cost/budgets").await;
    let place = |agent: &str| page.find(&format!("/catalogue/agent/{agent}\"")).unwrap();
    assert!(place("copywriter") < place("reviewer"), "{page}");
    assert!(place("reviewer") < place("planner"), "{page}");
    assert!(page.contains("agent=copywriter&amp;without_reruns=true"), "{page}");
}

#[tokio::test]
async fn reruns_are_left_out_of_the_calls_that_a_budget_pays() {
    let scenery = Scenery::new().await;
    let call = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros)
        select '2026-11-20 10:00+00', $1, 'planner', 'sim-1', 'sim', purpose, 'done', 70000 from unnest(array['turn', 'rerun']) as purpose";
    let call = sqlx::query(call).bind(scenery.world.campaign.id);
    call.execute(&scenery.app.pool).await.unwrap();
    let all = scenery.page("/cost/calls?agent=planner").await;
    assert!(all.contains(">rerun</td>"), "{all}");
    for order in ["", "&order=costliest"] {
        let paid = format!("/cost/calls?agent=planner&without_reruns=true{order}");
        let paid = scenery.page(&paid).await;
        assert!(!paid.contains(">rerun</td>") && paid.contains(">turn</td>"), "{paid}");
        assert!(paid.contains("without reruns<span"), "{paid}");
    }
}
