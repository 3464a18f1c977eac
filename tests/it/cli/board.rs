//! `dalsegno board`.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{Fixture, text};
use crate::app::SOON;

#[tokio::test]
async fn a_post_is_printed_and_read_as_an_agent_sees_it() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let post = async |words: &str, more: &[&str]| {
        let base = ["board", "post", "--campaign", &campaign, words];
        fixture.json(&[&base, more].concat()).await
    };
    let empty = fixture.run(&["board", "history", "--campaign", &campaign]).await;
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("", "no posts\n"));
    assert_eq!(
        fixture.json(&["board", "history", "--campaign", &campaign]).await,
        json!([]),
        "programs get an empty list"
    );
    let first = post("One.", &["--to", "copywriter"]).await;
    let reply = ["--to", "operator", "--reply-to", text(&first["id"])];
    post("Two.\n#9  operator to all", &reply).await;
    assert_eq!(post("Three.", &[]).await["audience"], json!(["planner"]));
    let output = fixture
        .run_with(&["board", "post", "--campaign", &campaign, "-", "--to", "all"], "Four.\n")
        .await;
    assert!(output.code == 0 && output.has("at place 4"), "{output:?}");

    let history = fixture.json(&["board", "history", "--campaign", &campaign]).await;
    let seqs: Vec<_> = history.as_array().unwrap().iter().map(|post| &post["seq"]).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    let older = ["board", "history", "--campaign", &campaign, "--before", "4", "--limit", "2"];
    assert_eq!(fixture.json(&older).await[0]["seq"], 2);
    let seen = ["board", "history", "--campaign", &campaign, "--viewer", "copywriter"];
    let seen = fixture.json(&seen).await;
    assert_eq!(seen.as_array().unwrap().len(), 2);
    let output = fixture.run(&["board", "history", "--campaign", &campaign]).await;
    let heads: Vec<_> = output.stdout.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(heads.len(), 4, "a text imitates the header of a post: {output:?}");
    assert!(heads[1].contains("operator to operator") && heads[1].contains("answers"), "{heads:?}");

    // Repeated with its key, the post exists already.
    let keyed = ["--to", "all", "--idempotency-key", "fifth"];
    let mut fifth = post("Five.", &keyed).await;
    fifth["created"] = json!(false);
    assert_eq!(post("Five.", &keyed).await, fifth);
    let other = [&["board", "post", "--campaign", &campaign, "Six."], &keyed[..]].concat();
    let refused = fixture.run(&other).await;
    assert!(refused.code == 5 && refused.has("another post"), "{refused:?}");

    let empty = fixture.run(&["board", "post", "--campaign", &campaign, ""]).await;
    assert!(empty.code == 2 && empty.has("the text of the post is empty"), "{empty:?}");
    let unknown =
        fixture.run(&["board", "post", "--campaign", &campaign, "x", "--to", "stranger"]).await;
    assert!(unknown.code == 2 && unknown.has("`stranger`"), "{unknown:?}");
    let unknown =
        fixture.run(&["board", "history", "--campaign", &campaign, "--viewer", "stranger"]).await;
    assert!(unknown.code == 2 && unknown.has("`stranger`"), "{unknown:?}");
}

#[tokio::test]
async fn a_tail_prints_the_last_posts_and_each_new_one_as_a_line() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    for words in ["One.", "Two.", "Three."] {
        fixture.json(&["board", "post", "--campaign", &campaign, words, "--to", "all"]).await;
    }
    let tail =
        ["board", "tail", "--campaign", &campaign, "-n", "2", "--json", "--viewer", "copywriter"];
    let mut tail = fixture.spawn(&tail);
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(SOON, lines.next_line()).await.unwrap().unwrap().unwrap();
        let post: Value = serde_json::from_str(&line).unwrap();
        text(&post["text"]).to_owned()
    };
    assert_eq!([next().await, next().await], ["Two.", "Three."]);
    fixture
        .json(&["board", "post", "--campaign", &campaign, "Not hers.", "--to", "reviewer"])
        .await;
    fixture
        .json(&["board", "post", "--campaign", &campaign, "Four.\u{1b}[2J", "--to", "copywriter"])
        .await;
    assert_eq!(next().await, "Four.\u{1b}[2J");
    tail.kill().await.unwrap();
    let output = fixture
        .run(&["board", "tail", "--campaign", &campaign, "-n", "1", "--timeout", "1s"])
        .await;
    assert!(output.code == 0 && output.has("Four.") && !output.has("Not hers."), "{output:?}");
}

#[tokio::test]
async fn the_archive_of_a_board_is_printed_by_sender() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let archive = ["board", "archive", "--campaign", &campaign];
    assert!(fixture.run(&archive).await.has("no posts are archived"));
    for words in ["One.", "Two."] {
        fixture.json(&["board", "post", "--campaign", &campaign, words, "--to", "all"]).await;
    }
    let (id, now) = (fixture.world.campaign.id, crate::app::noon());
    dalsegno::domain::posts::archive(&fixture.world.pool, id, (0, 1), now).await.unwrap();
    let output = fixture.run(&archive).await;
    assert!(output.has("SENDER") && output.has("1 post is archived"), "{output:?}");
    assert!(output.has("board history --before 2"), "{output:?}");
    let older = ["board", "history", "--campaign", &campaign, "--before", "2"];
    assert!(fixture.run(&older).await.has("One."));
}
