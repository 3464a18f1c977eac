//! `dalsegno memory`.

use std::{fs, path::Path};

use serde_json::json;

use super::Fixture;

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
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let run = async |arguments: &[&str]| {
        fixture
            .run(&[&["memory", arguments[0], "--campaign", &campaign], &arguments[1..]].concat())
            .await
    };
    let output =
        run(&["publish", "edict", "tone", "--title", "The tone", "Write short sentences."]).await;
    assert!(output.code == 0 && output.has("edict `tone` is at version 1"), "{output:?}");
    let file = fixture.path().join("text.md");
    fs::write(&file, "Be brief.\u{202e}\u{1b}[31m").unwrap();
    let file = file.to_str().unwrap();
    let output =
        run(&["publish", "edict", "tone", "--title", "The tone", "--text-file", file]).await;
    assert!(output.code == 0 && output.has("at version 2"), "{output:?}");
    let output =
        run(&["publish", "journal", "n", "--owner", "copywriter_2", "--title", "N", "x"]).await;
    assert!(output.code == 0 && output.has("of copywriter/2"), "{output:?}");
    let output = run(&["publish", "edict", "../x", "--title", "T", "x"]).await;
    assert!(output.code == 2 && output.has("slashes and dots are not allowed"), "{output:?}");
    for (wrong, advice) in [
        (&["publish", "journal", "n", "--title", "N", "x"][..], "name it with --owner AGENT"),
        (&["show", "edict", "missing"], "list the items of this kind"),
        (&["search", ""], "the search text is empty"),
    ] {
        let output = run(wrong).await;
        assert!(output.code != 0 && output.has(advice), "{output:?}");
    }
    let late =
        run(&["publish", "edict", "tone", "--title", "T", "--expected-version", "1", "x"]).await;
    assert_eq!(late.code, 5, "{late:?}");

    let output = run(&["show", "edict", "tone"]).await;
    assert!(output.code == 0 && output.has("    Be brief.\\u{202e}\\u{1b}[31m"), "{output:?}");
    assert!(output.has(" on the command line of "), "the author is missing: {output:?}");
    let shown = fixture
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
async fn an_export_is_imported_elsewhere_and_overwrites_nothing_by_default() {
    let (fixture, other) = (Fixture::new().await, Fixture::new().await);
    let (campaign, folder) = (fixture.campaign(), fixture.path().join("kept"));
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
        let output = fixture.run_with(&publish, body).await;
        assert_eq!(output.code, 0, "{output:?}");
    }
    let output = fixture.run(&["memory", "export", "--campaign", &campaign, folder_name]).await;
    assert!(output.code == 0 && output.has("3 items"), "{output:?}");
    assert_eq!(
        files(&folder),
        ["edicts/tone.md", "journals/copywriter/2/day-one.md", "records/odd.md"]
    );
    let again = fixture.json(&["memory", "export", "--campaign", &campaign, folder_name]).await;
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
    let output = fixture.run(&["memory", "export", "--campaign", &campaign, folder_name]).await;
    assert!(output.code == 2 && output.has("--overwrite"), "{output:?}");
    assert_eq!(fs::read_to_string(&tone).unwrap(), changed);
    let output = other.run(&["memory", "import", "--campaign", &there, folder_name]).await;
    assert!(output.code == 2 && output.has("exists with other content"), "{output:?}");
    let taken =
        other.json(&["memory", "import", "--campaign", &there, folder_name, "--replace"]).await;
    assert_eq!((&taken["replaced"], &taken["unchanged"]), (&json!(1), &json!(2)));
    let output = fixture
        .run(&["memory", "export", "--campaign", &campaign, folder_name, "--overwrite"])
        .await;
    assert_eq!(output.code, 0, "{output:?}");
    assert!(fs::read_to_string(&tone).unwrap().contains("short"));
}

#[tokio::test]
async fn an_import_with_an_invalid_file_or_link_is_refused_as_a_whole() {
    let fixture = Fixture::new().await;
    let (campaign, folder) = (fixture.campaign(), fixture.path().join("in"));
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
    let output = fixture.run(&["memory", "import", "--campaign", &campaign, folder_name]).await;
    assert_eq!(output.code, 2, "{output:?}");
    for name in ["c.md", "d.md", "e.md", "f.md is a symbolic link"] {
        assert!(output.has(name), "{name}: {output:?}");
    }
    for name in ["c", "d", "e", "f"] {
        fs::remove_file(folder.join(format!("edicts/{name}.md"))).unwrap();
    }
    let output = fixture.run(&["memory", "import", "--campaign", &campaign, folder_name]).await;
    assert!(
        output.code == 2 && output.has("b.md") && output.has("slashes and dots are not allowed"),
        "{output:?}"
    );
    assert!(
        fixture
            .json(&["memory", "ls", "--campaign", &campaign])
            .await
            .as_array()
            .unwrap()
            .is_empty()
    );

    // An export does not follow links.
    fs::remove_dir_all(&folder).unwrap();
    let outside = fixture.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("edicts")).unwrap();
    let publish = ["memory", "publish", "--campaign", &campaign, "edict", "a", "--title", "T", "x"];
    assert_eq!(fixture.run(&publish).await.code, 0);
    let output = fixture
        .run(&["memory", "export", "--campaign", &campaign, folder_name, "--overwrite"])
        .await;
    assert!(output.code == 2 && output.has("is a symbolic link"), "{output:?}");
    assert_eq!(files(&outside), Vec::<String>::new());
}
