//! `/v1/campaigns/{id}/posts`.

use serde_json::{Value, json};

use super::{Fixture, client::Reply, key_setup::KeySetup};

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|post| post["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_board_is_written_paged_and_read_as_an_agent_sees_it() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/posts", fixture.world.campaign.id);
    let first = json!({ "audience": ["copywriter"], "text": "One." });
    let first = fixture.post(&path, &first).await.expect(201);
    assert_eq!((&first["sender"], &first["seq"]), (&json!("operator"), &json!(1)));
    let second = json!({ "audience": ["reviewer", "copywriter_2"], "text": "Two.", "reply_to": first["id"] });
    let second = fixture.post(&path, &second).await.expect(201);
    assert_eq!(second["reply_to"], first["id"]);
    assert_eq!(second["audience"], json!(["reviewer", "copywriter/2"]));
    // Without a name, the lead is addressed.
    let lead = fixture.post(&path, &json!({ "text": "Three." })).await.expect(201);
    assert_eq!(lead["audience"], json!(["planner"]));
    fixture
        .post(&path, &json!({ "audience": ["all", "reviewer"], "text": "Four." }))
        .await
        .expect(201);

    let page = fixture.get(&format!("{path}?limit=3")).await.expect(200);
    assert_eq!((texts(&page), &page["next"]), (vec!["Four.", "Three.", "Two."], &json!("2")));
    let rest = fixture.get(&format!("{path}?limit=3&cursor=2")).await.expect(200);
    assert_eq!((texts(&rest), &rest["next"]), (vec!["One."], &Value::Null));
    let page = fixture.get(&format!("{path}?order=oldest&cursor=1&limit=2")).await.expect(200);
    assert_eq!((texts(&page), &page["next"]), (vec!["Two.", "Three."], &json!("3")));
    let seen = async |viewer: &str| {
        let page = fixture.get(&format!("{path}?order=oldest&viewer={viewer}")).await.expect(200);
        texts(&page).join(" ")
    };
    assert_eq!(seen("copywriter").await, "One. Four.");
    assert_eq!(seen("copywriter%2F2").await, "Two. Four.");
    assert_eq!(seen("planner").await, "One. Two. Three. Four.");
    assert_eq!(seen("operator").await, "One. Two. Three. Four.");
    // The feed has an event for each post.
    let feed = "select count(*) from dalsegno.feed where kind = 'post.added'";
    let n_told: i64 = sqlx::query_scalar(feed).fetch_one(&fixture.app.pool).await.unwrap();
    assert_eq!(n_told, 4);
}

#[tokio::test]
async fn invalid_posts_and_reads_are_refused_with_a_reason() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/posts", fixture.world.campaign.id);
    let unknown = "00000000-0000-0000-0000-000000000000";
    let post = async |body: Value| fixture.post(&path, &body).await;
    let to = |names: &[&str]| json!({ "audience": names, "text": "Hello." });
    let words = post(to(&["copy", "planner", "stranger/2"])).await.problem(422, "unknown_names");
    assert!(words.contains("`copy`, `stranger/2`"), "{words}");
    post(to(&[])).await.problem(422, "no_audience");
    post(json!({ "text": "Hello.", "reply_to": unknown })).await.problem(404, "unknown_post");
    post(json!({ "text": " " })).await.problem(422, "empty_text");
    post(json!({ "text": "x".repeat(1024 * 1024 + 1) })).await.problem(413, "text_too_long");
    let elsewhere = format!("/v1/campaigns/{unknown}/posts");
    fixture.post(&elsewhere, &to(&["all"])).await.problem(404, "unknown_campaign");
    fixture.get(&elsewhere).await.problem(404, "unknown_campaign");
    fixture.get(&format!("{path}?viewer=stranger")).await.problem(422, "unknown_names");
    let close = format!("/v1/campaigns/{}/close", fixture.world.campaign.id);
    fixture.post(&close, &json!({})).await.expect(200);
    post(to(&["all"])).await.problem(409, "campaign_closed");
    assert_eq!(texts(&fixture.get(&path).await.expect(200)), Vec::<&str>::new());
}

async fn count(fixture: &Fixture, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&fixture.app.pool).await.unwrap()
}

const KEY: (&str, &str) = ("Idempotency-Key", "question-1");

#[tokio::test]
async fn a_repeated_post_is_the_same_post_and_adds_no_task() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/posts", fixture.world.campaign.id);
    let question =
        json!({ "text": "@copywriter and @stranger: what is new?", "audience": ["reviewer"] });
    let sent = fixture.post_with(&path, &question, &[KEY]).await;
    assert!(!sent.head.contains("idempotent-replayed"));
    let mut first = sent.expect(201);
    assert_eq!(first["created"], true);
    first["created"] = json!(false);
    assert_eq!(first["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(first["unknown"][0]["name"], "stranger");
    let replayed = fixture.post_with(&path, &question, &[KEY]).await;
    assert!(replayed.head.contains("idempotent-replayed: true"), "{replayed:?}");
    assert_eq!(replayed.expect(200), first);

    let other = json!({ "text": "@copywriter: something else?" });
    let words = fixture.post_with(&path, &other, &[KEY]).await.problem(409, "idempotency_conflict");
    assert!(words.contains("another post"), "{words}");
    let to_others = json!({ "text": question["text"], "audience": ["operator"] });
    let refused = fixture.post_with(&path, &to_others, &[KEY]).await;
    refused.problem(409, "idempotency_conflict");
    let answers =
        json!({ "text": question["text"], "audience": ["reviewer"], "reply_to": first["id"] });
    fixture.post_with(&path, &answers, &[KEY]).await.problem(409, "idempotency_conflict");
    let long = "x".repeat(196);
    let too_long = fixture.post_with(&path, &question, &[("Idempotency-Key", &long)]).await;
    too_long.problem(422, "bad_idempotency_key");
    let empty = fixture.post_with(&path, &question, &[("Idempotency-Key", " ")]).await;
    empty.problem(400, "bad_idempotency_key");

    // A key belongs to its campaign, and its answer stays after the campaign is closed.
    let elsewhere = fixture.post("/v1/campaigns", &json!({ "name": "Another" })).await.expect(201);
    let elsewhere = format!("/v1/campaigns/{}/posts", elsewhere["id"].as_str().unwrap());
    fixture.post_with(&elsewhere, &question, &[KEY]).await.expect(201);
    let close = format!("/v1/campaigns/{}/close", fixture.world.campaign.id);
    fixture.post(&close, &json!({})).await.expect(200);
    assert_eq!(fixture.post_with(&path, &question, &[KEY]).await.expect(200), first);
    assert_eq!(count(&fixture, "select count(*) from dalsegno.posts").await, 2);
    assert_eq!(count(&fixture, "select count(*) from dalsegno.tasks").await, 2);
    let audited = "select count(*) from dalsegno.audit where action = 'campaign.post'";
    assert_eq!(count(&fixture, audited).await, 2);
}

#[tokio::test]
async fn concurrent_repetitions_of_a_post_create_one() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/posts", fixture.world.campaign.id);
    let question = json!({ "text": "@copywriter @reviewer what is new?" });
    let sent = (0..60).map(|_| fixture.post_with(&path, &question, &[KEY]));
    let replies = futures_util::future::join_all(sent).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(created, 1);
    let said: Vec<Value> = replies.iter().map(Reply::json).collect();
    let place = |one: &Value| (one["id"].clone(), one["seq"].clone());
    assert!(said.iter().all(|one| place(one) == (said[0]["id"].clone(), json!(1))), "{said:?}");
    assert_eq!(count(&fixture, "select count(*) from dalsegno.posts").await, 1);
    assert_eq!(count(&fixture, "select count(*) from dalsegno.tasks").await, 2);
}

#[tokio::test]
async fn a_post_names_its_author_and_how_far_it_is_trusted() {
    let setup = KeySetup::new().await;
    let path = format!("/v1/campaigns/{}/posts", setup.fixture.world.campaign.id);
    let (_, key) = setup.create_key("crm", &["operate"]).await;
    let post = json!({ "audience": ["copywriter"], "text": "One." });
    let by_key = setup.ask(Some(&key), "POST", &path, &post).await.expect(201);
    assert_eq!((&by_key["sender"], &by_key["trust"]), (&json!("operator"), &json!("key")));
    assert!(by_key["author"].as_str().unwrap().starts_with("key:crm:"), "{by_key}");
    let by_admin = setup.admin("POST", &path, &post).await.expect(201);
    assert_eq!(
        (&by_admin["trust"], &by_admin["author"]),
        (&json!("operator"), &json!("admin_key"))
    );
    let listed = setup.admin("GET", &path, &Value::Null).await.expect(200);
    assert_eq!(listed["items"][1]["trust"], "key");
}

#[tokio::test]
async fn the_archive_of_a_board_is_summarised_for_its_viewer_and_stays_readable() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/posts", fixture.world.campaign.id);
    let empty = fixture.get(&format!("{path}/archive")).await.expect(200);
    assert_eq!((&empty["posts"], &empty["archived_seq"]), (&json!(0), &json!(0)));
    for name in ["copywriter", "all", "reviewer"] {
        fixture.post(&path, &json!({ "audience": [name], "text": "Hello." })).await.expect(201);
    }
    let mut conn = fixture.app.pool.acquire().await.unwrap();
    let (id, now) = (fixture.world.campaign.id, crate::app::noon());
    dalsegno::domain::posts::archive(&mut *conn, id, (0, 2), now).await.unwrap();
    let all = fixture.get(&format!("{path}/archive")).await.expect(200);
    assert_eq!((&all["posts"], &all["archived_seq"]), (&json!(2), &json!(2)));
    assert_eq!(all["senders"][0]["sender"], "operator");
    let seen = fixture.get(&format!("{path}/archive?viewer=reviewer")).await.expect(200);
    assert_eq!(seen["posts"], 1);
    fixture.get(&format!("{path}/archive?viewer=stranger")).await.problem(422, "unknown_names");
    let listed = fixture.get(&path).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 3, "people still read all posts");
}
