//! The campaign of a command, from `--campaign` and DALSEGNO_CAMPAIGN.

use super::{CommandOutput, Fixture, ended, text};
use crate::service::dalsegno;

impl Fixture {
    async fn run_in(&self, campaign: &str, arguments: &[&str]) -> CommandOutput {
        let mut command = dalsegno(self.path());
        command.args(arguments).env("DATABASE_URL", self.world.url());
        command.env("DALSEGNO_CAMPAIGN", campaign);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        ended(command.kill_on_drop(true).spawn().unwrap()).await
    }
}

#[tokio::test]
async fn the_environment_names_the_campaign_when_no_option_does() {
    let fixture = Fixture::new().await;
    let spring = fixture.json(&["campaign", "create", "Spring"]).await;
    let spring_id = text(&spring["id"]);
    let (begin, end) = (&spring_id[..13], &spring_id[24..]);
    let add = ["task", "add", "--agent", "copywriter", "Part one.", "--json"];
    for campaign in ["Spring", spring_id, begin, end] {
        let output = fixture.run_in(campaign, &add).await;
        assert_eq!(output.json()["campaign_id"], spring["id"], "{output:?}");
        assert_eq!(output.stderr, "", "programs read stderr with --json");
        let output = fixture.run_in(campaign, &["task", "ls"]).await;
        assert_eq!(output.stderr, format!("campaign: {campaign} (DALSEGNO_CAMPAIGN)\n"));
    }
    let output = fixture
        .run_in(
            "Spring",
            &[
                "task",
                "add",
                "--campaign",
                "Harbour",
                "--agent",
                "copywriter",
                "Part two.",
                "--json",
            ],
        )
        .await;
    assert_eq!(
        (output.json()["campaign_id"].as_str(), output.stderr.as_str()),
        (Some(&*fixture.campaign()), "")
    );

    let listed = fixture.run_in("Spring", &["task", "ls", "--json"]).await;
    assert_eq!(listed.json().as_array().unwrap().len(), 4, "{listed:?}");
    assert_eq!(fixture.json(&["task", "ls"]).await.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_command_without_a_campaign_explains_how_to_name_one() {
    let fixture = Fixture::new().await;
    let without = fixture.run(&["task", "add", "--agent", "copywriter", "Part one."]).await;
    assert!(without.code == 2 && without.has("--campaign or DALSEGNO_CAMPAIGN"), "{without:?}");
    let unknown = fixture.run_in("Nowhere", &["task", "ls"]).await;
    assert!(unknown.code == 3 && unknown.has("Nowhere"), "{unknown:?}");

    let pause = ["agent", "pause", "copywriter"];
    let everywhere = fixture.run_in("Harbour", &[&pause[..], &["--everywhere"]].concat()).await;
    assert!(everywhere.code == 0 && everywhere.stderr.is_empty(), "{everywhere:?}");
    let both = ["--everywhere", "--campaign", "Harbour"];
    let both = fixture.run(&[&pause[..], &both].concat()).await;
    assert!(both.code == 2 && both.has("cannot be used with"), "{both:?}");
    let neither = fixture.run(&pause).await;
    assert!(neither.code == 2 && neither.has("--campaign or DALSEGNO_CAMPAIGN"), "{neither:?}");
}

#[tokio::test]
async fn commands_take_the_campaign_as_argument_option_or_from_the_environment() {
    let fixture = Fixture::new().await;
    for show in [
        &["campaign", "show"][..],
        &["campaign", "budget"],
        &["blackboard", "show"],
        &["blackboard", "history"],
    ] {
        let in_place = fixture.json(&[show, &["Harbour"]].concat()).await;
        assert_eq!(fixture.json(&[show, &["--campaign", "Harbour"]].concat()).await, in_place);
        let output = fixture.run_in("Harbour", &[show, &["--json"]].concat()).await;
        assert_eq!(output.json(), in_place, "{output:?}");
        assert_eq!(output.stderr, "");
        let both = fixture.run(&[show, &["Harbour", "--campaign", "Harbour"]].concat()).await;
        assert!(both.code == 2 && both.has("cannot be used with"), "{both:?}");
        let neither = fixture.run(show).await;
        assert!(neither.code == 2 && neither.has("DALSEGNO_CAMPAIGN"), "{neither:?}");
    }
}

#[tokio::test]
async fn changes_take_the_campaign_before_the_document_or_from_the_environment() {
    let fixture = Fixture::new().await;
    for change in [&["blackboard", "set", "--expected-version", "0"][..], &["blackboard", "patch"]]
    {
        let (first, second) = (r#"{"a":1}"#, r#"{"a":2}"#);
        let from_environment = fixture.run_in("Harbour", &[change, &[first]].concat()).await;
        assert_eq!(from_environment.code, 0, "{from_environment:?}");
        let back = ["blackboard", "patch", "Harbour", r#"{"a":null}"#];
        assert_eq!(fixture.run(&back).await.code, 0);
        let neither = fixture.run(&[change, &[first]].concat()).await;
        assert!(neither.code == 2 && neither.has("DALSEGNO_CAMPAIGN"), "{neither:?}");
        let both = [change, &["Harbour", second, "--campaign", "Harbour"]].concat();
        let both = fixture.run(&both).await;
        assert!(both.code == 2 && both.has("given twice"), "{both:?}");
        let empty = fixture.run_in("Harbour", change).await;
        assert!(empty.code == 2 && empty.has("--file"), "{empty:?}");
        let help = fixture.run(&[&change[..2], &["--help"]].concat()).await;
        assert!(help.has("[CAMPAIGN] <TEXT>") && help.has("--file <FILE> [CAMPAIGN]"), "{help:?}");
    }
    let file = fixture.path().join("board.json");
    std::fs::write(&file, r#"{"b":1}"#).unwrap();
    let patch = ["blackboard", "patch", "--file", file.to_str().unwrap()];
    assert_eq!(fixture.run_in("Harbour", &patch).await.code, 0);
    assert_eq!(fixture.run(&[&patch[..], &["Harbour"]].concat()).await.code, 0);
    for change in ["pause", "resume"] {
        let output = fixture.run_in("Harbour", &["campaign", change, "--json"]).await;
        assert_eq!(output.json()["name"], "Harbour", "{output:?}");
    }
    let budget = ["campaign", "budget", "--tokens", "7", "--json"];
    let output = fixture.run_in("Harbour", &budget).await;
    assert_eq!(output.json()["limit"]["tokens"], 7, "{output:?}");
}
