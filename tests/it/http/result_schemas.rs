//! Result schemas of new tasks, at each way in.

use serde_json::{Value, json};

use super::Fixture;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"] })
}

fn ask(schema: &Value) -> Value {
    json!({ "agent": "copywriter", "prompt": "Part one.", "result_schema": schema })
}

/// Schemas that cannot be used, with the place that each refusal names.
fn invalid() -> [(Value, &'static str); 5] {
    [
        (json!({ "type": "text" }), "#/type"),
        (json!({ "properties": { "a": { "items": 7 } } }), "#/properties/a/items"),
        (
            json!({ "properties": { "a": { "$ref": "https://example.com/a.json" } } }),
            "#/properties/a/$ref",
        ),
        (json!({ "allOf": [{ "$ref": "#/$defs/none" }] }), "#/"),
        (json!({ "required": "title" }), "#/required"),
    ]
}

#[tokio::test]
async fn a_schema_is_shown_with_its_task_and_compared_under_a_key() {
    let fixture = Fixture::new().await;
    let key = [("Idempotency-Key", "part-1")];
    let added = fixture.post_with(&fixture.tasks(), &ask(&schema()), &key).await.expect(201);
    let again = fixture.post_with(&fixture.tasks(), &ask(&schema()), &key).await.expect(200);
    assert_eq!(added["id"], again["id"]);
    let other = fixture.post_with(&fixture.tasks(), &ask(&json!({})), &key).await;
    other.problem(409, "idempotency_conflict");
    let path = format!("/v1/tasks/{}", added["id"].as_str().unwrap());
    let shown = fixture.get(&path).await.expect(200);
    assert_eq!((&shown["result_schema"], &shown["result_json"]), (&schema(), &Value::Null));
    let line = json!([ask(&schema())]);
    fixture.post(&format!("{}/bulk", fixture.tasks()), &line).await.expect(201);
    let sql = "select dalsegno.add_task($1, 'copywriter', 'Six.', result_schema => $2)";
    let campaign = fixture.world.campaign.id;
    sqlx::query(sql).bind(campaign).bind(schema()).execute(&fixture.app.pool).await.unwrap();
    // The same key and question are the same task, in SQL and over HTTP.
    let odd = json!({ "b": 1, "a": { "é\n\"": [1, -2.5, true, null, {}], "Z": [] }, "aa": "ü/\\" });
    let odd = json!({ "type": "object", "default": odd });
    let sql = "select task_id from dalsegno.add_task($1, 'copywriter', 'Part one.', result_schema => $2, idempotency_key => 'odd')";
    let query = sqlx::query_scalar::<_, uuid::Uuid>(sql).bind(campaign).bind(&odd);
    let in_sql = query.fetch_one(&fixture.app.pool).await.unwrap();
    let key = [("Idempotency-Key", "odd")];
    let again = fixture.post_with(&fixture.tasks(), &ask(&odd), &key).await.expect(200);
    assert_eq!(again["id"], in_sql.to_string());
    let waiting =
        "select dalsegno.add_task($1, 'copywriter', 'Seven.', '{}'::uuid[], result_schema => $2)";
    sqlx::query(waiting).bind(campaign).bind(schema()).execute(&fixture.app.pool).await.unwrap();
    let with = "select count(*) from dalsegno.tasks where result_schema = $1";
    let with: i64 =
        sqlx::query_scalar(with).bind(schema()).fetch_one(&fixture.app.pool).await.unwrap();
    assert_eq!(with, 4);
}

#[tokio::test]
async fn an_unusable_schema_is_refused_at_each_way_in_with_its_place() {
    let fixture = Fixture::new().await;
    let campaign = fixture.world.campaign.id;
    for (wrong, place) in invalid() {
        let reply = fixture.post(&fixture.tasks(), &ask(&wrong)).await;
        let detail = reply.problem(422, "bad_result_schema");
        assert!(detail.contains(&format!("`{place}")), "{detail}");
        let line = json!([ask(&wrong)]);
        let reply = fixture.post(&format!("{}/bulk", fixture.tasks()), &line).await;
        reply.problem(422, "bad_items");
        assert!(reply.body.contains("bad_result_schema"), "{reply:?}");
        let sql = "select dalsegno.add_task($1, 'copywriter', 'x', result_schema => $2)";
        let query = sqlx::query(sql).bind(campaign).bind(&wrong).execute(&fixture.app.pool).await;
        let error = query.unwrap_err().to_string();
        assert!(error.contains(&format!("invalid: {place}")) || place == "#/", "{place}: {error}");
        assert!(error.contains("the result schema is invalid: "), "{error}");
    }
    for wrong in [json!([]), json!("text"), json!(true)] {
        let reply = fixture.post(&fixture.tasks(), &ask(&wrong)).await;
        reply.problem(422, "bad_result_schema");
    }
    let long = json!({ "description": "x".repeat(40_000) });
    fixture.post(&fixture.tasks(), &ask(&long)).await.problem(422, "bad_result_schema");
    let found: i64 = sqlx::query_scalar("select count(*) from dalsegno.tasks")
        .fetch_one(&fixture.app.pool)
        .await
        .unwrap();
    assert_eq!(found, 0);
}

/// SQL refuses what it cannot judge, and accepts nothing that the service would refuse.
#[tokio::test]
async fn sql_accepts_no_schema_that_the_service_refuses() {
    let fixture = Fixture::new().await;
    let usable = [
        json!({ "type": ["object", "null"], "additionalProperties": false, "$defs": { "a": { "type": "string", "minLength": 2 } }, "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "enum": [1, null] } } }),
        json!({ "type": "array", "items": { "anyOf": [{ "const": 1 }, true] }, "minItems": 1, "uniqueItems": true }),
        json!({ "type": "number", "minimum": -1.5, "multipleOf": 0.5, "title": "A number", "format": "x" }),
    ];
    let odd = [
        json!({ "type": [] }),
        json!({ "type": [null] }),
        json!({ "minLength": -1 }),
        json!({ "minLength": 1.5 }),
        json!({ "multipleOf": 0 }),
        json!({ "required": ["a", "a"] }),
        json!({ "anyOf": [] }),
        json!({ "properties": [] }),
        json!({ "pattern": "(" }),
        json!({ "$schema": "https://example.com/draft" }),
        json!({ "$schema": null }),
        json!({ "$id": 7 }),
        json!({ "additionalProperties": "no" }),
        json!({ "title": 7 }),
        json!({ "maximum": "7" }),
        json!({ "uniqueItems": 1 }),
        json!({ "items": { "properties": { "a": { "not": [] } } } }),
        json!({ "$ref": "#anchor" }),
        json!({ "dependentRequired": { "a": "b" } }),
    ];
    let faulty: Vec<Value> = odd.into_iter().chain(invalid().map(|(wrong, _)| wrong)).collect();
    let sql = "select dalsegno.fault_of_result_schema($1, $1, '#')";
    for schema in usable.iter().chain(&faulty) {
        let fault: Option<String> =
            sqlx::query_scalar(sql).bind(schema).fetch_one(&fixture.app.pool).await.unwrap();
        let refused = dalsegno::domain::result_schemas::check(schema).is_err();
        assert!(fault.is_some() || !refused, "SQL accepts {schema}");
        assert_eq!(usable.contains(schema), fault.is_none(), "{schema}: {fault:?}");
    }
    for schema in &usable {
        assert_eq!(dalsegno::domain::result_schemas::check(schema), Ok(()), "{schema}");
    }
}
