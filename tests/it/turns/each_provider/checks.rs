//! The checks, each on a conversation of two turns whose first prompt states a fact.

use dalsegno::domain::{
    amount::Limit,
    estimates::{Estimate, PriceOrigin, Way},
    tasks::State,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Conversation, ENOUGH, FACT, PART, QUESTION};
use crate::{
    app::eventually,
    estimates::next,
    turns::{forks, previews::without_call_id, reruns},
};

/// The second turn is shown as it was sent, and the preview of the next task is what that task is sent.
pub async fn contexts(conversation: &mut Conversation) {
    let (case, capabilities) = (conversation.case, conversation.capabilities());
    let shown = conversation.show_context(2).await;
    let route = (&shown["provider"], &shown["model"]);
    assert_eq!(route, (&json!(case.provider), &json!(case.model)));
    let texts = shown["messages"].to_string();
    assert!(texts.contains(FACT) && texts.contains("Where is the ferry?"), "{shown}");
    let (state, body) = (&shown["state"], &shown["request"]["body"]);
    if capabilities.is_simulation {
        assert_eq!((state, body), (&json!("no_request"), &Value::Null));
    } else {
        assert_eq!(state, "exact", "{shown}");
    }
    if capabilities.holds_session {
        // The provider is given what is new, and sends the history itself.
        let given = body.as_str().unwrap();
        assert!(given.contains("Where is the ferry?") && !given.contains(FACT), "{given}");
    } else if !capabilities.is_simulation {
        assert_eq!(*body, conversation.server.bodies()[1]);
    }

    conversation.stop_worker().await;
    let task = conversation.fixture.add(QUESTION).await;
    let preview = conversation.get(&format!("/v1/tasks/{}/context/preview", task.id)).await;
    conversation.start_worker().await;
    let task = conversation.fixture.done(&task).await;
    conversation.assert_fact_was_sent(&task);
    let sent = conversation.show_context(task.turn.unwrap()).await;
    for field in ["session_id", "turn", "provider", "model", "system", "messages", "tools"] {
        assert_eq!(preview[field], sent[field], "{field}");
    }
    let body = match sent["request"]["body"].as_str() {
        Some(body) if capabilities.holds_session => json!(without_call_id(body)),
        body => json!(body),
    };
    assert_eq!(preview["request"]["body"], body, "{preview}");
}

/// The estimate of a task has its first call, and a cost that its charge does not exceed.
pub async fn estimates(conversation: &Conversation) {
    let (case, fixture) = (conversation.case, &conversation.fixture);
    let path = format!("/v1/campaigns/{}/estimate", fixture.campaign.id);
    let task = json!({ "agent": "writer", "prompt": QUESTION });
    let estimate: Estimate =
        serde_json::from_value(conversation.send("POST", &path, &task).await).unwrap();
    assert_eq!((estimate.provider.as_str(), estimate.model.as_str()), (case.provider, case.model));
    assert_eq!(estimate.session_id, conversation.second.session_id);
    let price = estimate.price.as_ref().unwrap();
    assert_eq!((price.origin, price.model.as_str()), (PriceOrigin::Configured, case.model));
    let way = next(&estimate);
    assert_eq!(way.way, Way::Resume);
    let charge = way.charge.unwrap();
    let costs = [charge.low, charge.likely, charge.high].map(|it| it.cost_micros.unwrap());
    assert!(costs[0] > 0 && costs.is_sorted(), "{charge:?}");

    let task = forks::run(fixture, "main", QUESTION).await;
    assert_eq!(task.turn, Some(estimate.turn));
    let sent = conversation.show_context(estimate.turn).await;
    let (counted, first) =
        (sent["counted_tokens"].as_i64().unwrap(), way.first_call_tokens.unwrap());
    assert!((counted / 2..=counted * 2).contains(&first), "{first} of {counted}");
    assert!((1..=costs[2]).contains(&task.spent_micros), "{task:?} {charge:?}");
}

/// A rerun of the second turn is sent what that turn was sent, and leaves the conversation as it is.
pub async fn reruns(conversation: &Conversation) {
    let (case, capabilities) = (conversation.case, conversation.capabilities());
    let fixture = &conversation.fixture;
    let budget = format!("/v1/campaigns/{}/budget", fixture.campaign.id);
    conversation.send("PATCH", &budget, &json!({ "experiments_micros": ENOUGH })).await;
    let before = reruns::rows(fixture).await;
    let n_calls = conversation.server.bodies().len();
    let path = format!("/v1/sessions/{}/turns/2/reruns", conversation.session_id());
    conversation.send("POST", &path, &json!({})).await;
    let ended = "select count(*) from dalsegno.reruns where state <> 'queued'";
    eventually("the rerun has ended", async || (fixture.count(ended).await == 1).then_some(()))
        .await;
    let listed = conversation.get(&path).await;
    let rerun = &listed["reruns"][0];
    assert_eq!((&rerun["state"], &rerun["model"]), (&json!("done"), &json!(case.model)), "{rerun}");
    assert!(rerun["cost_micros"].as_i64() > Some(0), "{rerun}");
    let answer = rerun["answer"].as_str().unwrap();
    assert!(answer.contains(case.answer), "{rerun}");
    assert_eq!(reruns::rows(fixture).await, before);
    let bodies = conversation.server.bodies();
    if capabilities.is_simulation {
        assert_eq!((answer.contains(FACT), &rerun["is_same_request"]), (true, &Value::Null));
        return;
    }
    assert_eq!(bodies.len(), n_calls + 1);
    if capabilities.holds_session {
        // It has a conversation of its own, which begins with the history.
        assert!(bodies[n_calls].contains(FACT), "{}", bodies[n_calls]);
    } else {
        assert_eq!((&bodies[n_calls], &rerun["is_same_request"]), (&bodies[1], &json!(true)));
    }
}

/// A fork after the second turn continues with its messages, and leaves the other session as it is.
pub async fn forks(conversation: &Conversation) {
    let (fixture, id) = (&conversation.fixture, conversation.session_id());
    let before = forks::rows(fixture, id).await;
    let path = format!("/v1/sessions/{id}/forks");
    let fork = conversation.send("POST", &path, &json!({ "turn": 2 })).await;
    let task = forks::run(fixture, fork["instance"].as_str().unwrap(), QUESTION).await;
    conversation.assert_fact_was_sent(&task);
    assert_eq!((&fork["id"], task.turn), (&json!(task.session_id), Some(3)));
    assert_eq!(forks::rows(fixture, id).await, before);
    let inherited = async |id: Uuid| -> Vec<String> {
        let messages = fixture.messages(id).await.into_iter();
        messages.filter(|it| it.turn <= 2).map(|it| it.message.text).collect()
    };
    let texts = inherited(id).await;
    assert!(texts.len() >= 4, "{texts:?}");
    assert_eq!(inherited(task.session_id.unwrap()).await, texts);
}

/// The pages of the task, the turn, the session and the costs name the model and have the answer.
pub async fn console(conversation: &Conversation) {
    let (case, capabilities) = (conversation.case, conversation.capabilities());
    let model = format!("<bdi>{}</bdi>", case.model);
    let route = format!("{model} on {}", case.provider);
    let session = format!("/sessions/{}", conversation.session_id());
    let turn = format!("{session}/turns/2");
    let request = match capabilities.holds_session {
        true => "bytes, SHA-256",
        false => PART.trim(),
    };
    let pages = [
        (format!("/tasks/{}", conversation.second.id), [turn.as_str(), case.answer]),
        (turn.clone(), [route.as_str(), case.answer]),
        (format!("{turn}?show=request"), ["Request as sent", request]),
        (session, [route.as_str(), case.answer]),
        ("/cost?by=model&days=7".to_owned(), [model.as_str(), "<h1>Cost</h1>"]),
        (format!("/cost/calls?provider={}&days=7", case.provider), [model.as_str(), &turn]),
    ];
    for (path, words) in pages {
        let page = conversation.app.get(&path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        for words in words {
            assert!(page.body.contains(words), "{words} on {path}: {}", page.body);
        }
    }
}

/// A task fails at its own budget in money, and waits at the budget of its agent in tokens. A higher limit lets it go on.
pub async fn budgets(conversation: &Conversation) {
    let fixture = &conversation.fixture;
    let n_calls = conversation.server.bodies().len();
    let too_small = Limit { micros: Some(1), tokens: None };
    let task = fixture.add_as("writer", "main", QUESTION, None, too_small).await;
    let failed = fixture.ended(&task).await;
    let error = failed.error.unwrap_or_default();
    assert_eq!(failed.state, State::Failed);
    assert!(error.contains("the whole limit of the budget of the task is 0.000001"), "{error}");
    let path = format!("/v1/tasks/{}", task.id);
    let told = conversation.get(&format!("{path}/explain")).await;
    let raise = format!("`dalsegno task budget {} --money ", task.id);
    assert!(told["next"].as_str().unwrap().contains(&raise), "{told}");
    assert_eq!(conversation.server.bodies().len(), n_calls, "no call is made");
    conversation.send("PATCH", &format!("{path}/budget"), &json!({ "micros": ENOUGH })).await;
    conversation.send("POST", &format!("{path}/retry"), &json!({})).await;
    conversation.assert_fact_was_sent(&fixture.done(&task).await);

    let set = async |tokens: Option<i64>| {
        let budget = json!({ "owner": "agent", "key": "writer", "tokens": tokens });
        conversation.send("PATCH", "/v1/budgets", &budget).await
    };
    // A new budget begins with what its agent has spent.
    let spent = set(Some(1_000_000_000)).await["spent"]["tokens"].as_i64().unwrap();
    set(Some(spent + 1)).await;
    let n_calls = conversation.server.bodies().len();
    let task = fixture.add(QUESTION).await;
    fixture.waiting_for_budget(1).await;
    let told = conversation.get(&format!("/v1/tasks/{}/explain", task.id)).await;
    let because = told["because"].as_str().unwrap();
    assert!(
        because.starts_with("It waits for the budget of the agent `writer`: 1 tokens of"),
        "{told}"
    );
    assert_eq!(conversation.server.bodies().len(), n_calls, "no call is made");
    set(Some(spent * 10)).await;
    conversation.assert_fact_was_sent(&fixture.done(&task).await);
}
