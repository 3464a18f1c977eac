//! `dalsegno memory`.

use std::{fs, path::Path};

use serde_json::json;

use super::Ground;

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_memory_is_written_read_searched_and_revoked() {
    let ground = Ground::new().await;
    let campaign = ground.campaign();
    let run = async |arguments: &[&str]| {
        ground
            .run(&[&["memory", arguments[0], "--campaign", &campaign], &arguments[1..]].concat())
            .await
    };
    let said =
        run(&["publish", "edict", "tone", "--title", "The tone", "Write short sentences."]).await;
    assert!(said.code == 0 && said.has("edict `tone` is at version 1"), "{said:?}");
    let file = ground.path().join("text.md");
    fs::write(&file, "Be brief.\u{202e}\u{1b}[31m").unwrap();
    let file = file.to_str().unwrap();
    let said = run(&["publish", "edict", "tone", "--title", "The tone", "--text-file", file]).await;
    assert!(said.code == 0 && said.has("at version 2"), "{said:?}");
    let said =
        run(&["publish", "journal", "n", "--owner", "copywriter_2", "--title", "N", "x"]).await;
    assert!(said.code == 0 && said.has("of copywriter/2"), "{said:?}");
    let said = run(&["publish", "edict", "../x", "--title", "T", "x"]).await;
    assert!(said.code == 2 && said.has("slashes and dots are not allowed"), "{said:?}");
    let late =
        run(&["publish", "edict", "tone", "--title", "T", "--expected-version", "1", "x"]).await;
    assert_eq!(late.code, 5, "{late:?}");

    let said = run(&["show", "edict", "tone"]).await;
    assert!(said.code == 0 && said.has("    Be brief.\\u{202e}\\u{1b}[31m"), "{said:?}");
    assert!(said.has("cli:"), "who wrote it: {said:?}");
    let shown = ground
        .json(&["memory", "show", "--campaign", &campaign, "edict", "tone", "--version", "1"])
        .await;
    assert_eq!(shown["body"], "Write short sentences.");
    assert!(run(&["show", "edict", "tone", "--versions"]).await.has("VERSION"));
    assert_eq!(run(&["show", "edict", "none"]).await.code, 3);
    let listed = run(&["ls"]).await;
    assert!(
        listed.has("journal") && listed.has("copywriter/2") && listed.has("tone"),
        "{listed:?}"
    );
    assert!(run(&["search", "brief"]).await.has("Be **brief**"));
    assert_eq!(run(&["search", "!"]).await.code, 2);
    assert!(run(&["revoke", "edict", "tone"]).await.has("edict `tone` is revoked"));
    assert_eq!(run(&["revoke", "edict", "tone"]).await.code, 5);
    assert!(!run(&["ls"]).await.has("tone"));
    assert!(run(&["ls", "--ended"]).await.has("tone"));
}

#[tokio::test]
async fn an_export_is_taken_in_elsewhere_and_nothing_is_written_over_unasked() {
    let (ground, other) = (Ground::new().await, Ground::new().await);
    let (campaign, folder) = (ground.campaign(), ground.path().join("kept"));
    let folder_name = folder.to_str().unwrap();
    let odd = "---\nkind: edict\n\n  <odd> \u{202e}text\r\n\n";
    for (kind, name, owner, body) in [
        ("edict", "tone", None, "Write short sentences."),
        ("record", "odd", None, odd),
        ("journal", "day-one", Some("copywriter_2"), "It rains."),
    ] {
        let title = "A: \"title\"";
        let mut publish =
            vec!["memory", "publish", "--campaign", &campaign, kind, name, "--title", title, "-"];
        publish.extend(owner.iter().flat_map(|owner| ["--owner", owner]));
        let said = ground.run_with(&publish, body).await;
        assert_eq!(said.code, 0, "{said:?}");
    }
    let said = ground.run(&["memory", "export", "--campaign", &campaign, folder_name]).await;
    assert!(said.code == 0 && said.has("3 items"), "{said:?}");
    assert_eq!(
        files(&folder),
        ["edicts/tone.md", "journals/copywriter/2/day-one.md", "records/odd.md"]
    );
    let again = ground.json(&["memory", "export", "--campaign", &campaign, folder_name]).await;
    assert_eq!(again, json!({ "written": 0, "unchanged": 3 }));

    let there = other.campaign();
    let taken = other.json(&["memory", "import", "--campaign", &there, folder_name]).await;
    assert_eq!((&taken["created"], &taken["unchanged"]), (&json!(3), &json!(0)));
    let shown = other.json(&["memory", "show", "--campaign", &there, "record", "odd"]).await;
    assert_eq!((&shown["body"], &shown["trust"]), (&json!(odd), &json!("imported")));
    let again = other.json(&["memory", "import", "--campaign", &there, folder_name]).await;
    assert_eq!(again["unchanged"], 3);

    // Files that were changed in the folder meanwhile are kept.
    let tone = folder.join("edicts/tone.md");
    let changed = fs::read_to_string(&tone).unwrap().replace("short", "long");
    fs::write(&tone, &changed).unwrap();
    let said = ground.run(&["memory", "export", "--campaign", &campaign, folder_name]).await;
    assert!(said.code == 2 && said.has("--overwrite"), "{said:?}");
    assert_eq!(fs::read_to_string(&tone).unwrap(), changed);
    let said = other.run(&["memory", "import", "--campaign", &there, folder_name]).await;
    assert!(said.code == 2 && said.has("exists with other content"), "{said:?}");
    let taken =
        other.json(&["memory", "import", "--campaign", &there, folder_name, "--replace"]).await;
    assert_eq!((&taken["replaced"], &taken["unchanged"]), (&json!(1), &json!(2)));
    let said = ground
        .run(&["memory", "export", "--campaign", &campaign, folder_name, "--overwrite"])
        .await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fs::read_to_string(&tone).unwrap().contains("short"));
}

#[tokio::test]
async fn a_folder_that_leads_elsewhere_or_holds_something_wrong_is_refused_as_a_whole() {
    let ground = Ground::new().await;
    let (campaign, folder) = (ground.campaign(), ground.path().join("in"));
    fs::create_dir_all(folder.join("edicts")).unwrap();
    let folder_name = folder.to_str().unwrap();
    let file = |name: &str, kind: &str, body: &str| {
        format!("---\nkind: {kind}\nname: {name}\ntitle: T\n---\n\n{body}\n")
    };
    let write = |path: &str, content: &str| fs::write(folder.join(path), content).unwrap();
    write("edicts/a.md", &file("a", "edict", "Fine."));
    write("edicts/b.md", &file("../../b", "edict", "Elsewhere."));
    write("edicts/c.md", "No front matter.");
    write("edicts/d.md", &file("d", "rule", "Text."));
    fs::write(folder.join("edicts/e.md"), [0xff, 0xfe]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("edicts/f.md")).unwrap();
    let said = ground.run(&["memory", "import", "--campaign", &campaign, folder_name]).await;
    assert_eq!(said.code, 2, "{said:?}");
    for name in ["c.md", "d.md", "e.md", "f.md is a symbolic link"] {
        assert!(said.has(name), "{name}: {said:?}");
    }
    for name in ["c", "d", "e", "f"] {
        fs::remove_file(folder.join(format!("edicts/{name}.md"))).unwrap();
    }
    let said = ground.run(&["memory", "import", "--campaign", &campaign, folder_name]).await;
    assert!(
        said.code == 2 && said.has("b.md") && said.has("slashes and dots are not allowed"),
        "{said:?}"
    );
    assert!(
        ground
            .json(&["memory", "ls", "--campaign", &campaign])
            .await
            .as_array()
            .unwrap()
            .is_empty()
    );

    // An export does not follow links.
    fs::remove_dir_all(&folder).unwrap();
    let outside = ground.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("edicts")).unwrap();
    let publish = ["memory", "publish", "--campaign", &campaign, "edict", "a", "--title", "T", "x"];
    assert_eq!(ground.run(&publish).await.code, 0);
    let said = ground
        .run(&["memory", "export", "--campaign", &campaign, folder_name, "--overwrite"])
        .await;
    assert!(said.code == 2 && said.has("is a symbolic link"), "{said:?}");
    assert_eq!(files(&outside), Vec::<String>::new());
}
