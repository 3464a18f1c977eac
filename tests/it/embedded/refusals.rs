use std::fs;

use dalsegno::db::embedded::{self, Error, Holder, Owner};

use super::support::EmbeddedSetup;

#[tokio::test]
async fn a_second_service_is_refused_with_the_owner_of_the_folder() {
    let setup = EmbeddedSetup::new();
    let postgres = embedded::start(&setup.config).await.unwrap();
    let error = embedded::start(&setup.config).await.unwrap_err();
    assert!(
        matches!(error, Error::AlreadyRunning { holder: Some(Holder { pid, owner: Owner::Service }), .. } if pid == std::process::id())
    );
    for part in ["DATABASE_URL", "`service.data_dir`", setup.config.data_dir.to_str().unwrap()] {
        assert!(error.to_string().contains(part), "{error}");
    }
    postgres.stop().await.unwrap();
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_cluster_of_another_major_version_is_refused() {
    let setup = EmbeddedSetup::new();
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
    fs::write(setup.cluster().join("PG_VERSION"), "9\n").unwrap();
    let error = embedded::start(&setup.config).await.unwrap_err().to_string();
    for part in [
        "Postgres 9",
        "this machine has Postgres",
        setup.home().to_str().unwrap(),
        "pg_upgrade",
        "bin_dir",
    ] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
}

#[tokio::test]
async fn a_folder_with_other_content_is_left_unchanged() {
    let setup = EmbeddedSetup::new();
    fs::create_dir_all(setup.home()).unwrap();
    fs::write(setup.home().join("thesis.txt"), "years of work").unwrap();
    let error = embedded::start(&setup.config).await.unwrap_err();
    assert!(matches!(error, Error::NotACluster { .. }), "{error}");
    assert!(setup.home().join("thesis.txt").exists());
}

#[tokio::test]
async fn errors_carry_the_end_of_the_servers_log() {
    let setup = EmbeddedSetup::new();
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
    fs::write(setup.cluster().join("postgresql.auto.conf"), "shared_buffers = 'a lot'\n").unwrap();
    let error = embedded::start(&setup.config).await.unwrap_err().to_string();
    assert!(error.contains("shared_buffers"), "{error}");
}

#[tokio::test]
async fn a_wrong_bin_dir_and_a_wrong_account_are_reported() {
    let mut setup = EmbeddedSetup::new();
    setup.config.bin_dir = Some(setup.folder.path().join("no-such-folder"));
    let error = embedded::start(&setup.config).await.unwrap_err().to_string();
    assert!(error.contains("no-such-folder") && error.contains("initdb"), "{error}");
    if rustix::process::geteuid().is_root() {
        setup.config.run_as = Some("root".to_owned());
        let error = embedded::start(&setup.config).await.unwrap_err().to_string();
        assert!(error.contains("run_as"), "{error}");
    }
}

#[test]
fn options_of_an_external_server_are_refused_with_a_reason() {
    let setup = EmbeddedSetup::new();
    let mut command = setup.command(std::path::Path::new(env!("CARGO_BIN_EXE_first-run-service")));
    let output = command.env("PGOPTIONS", "-c no.such=1").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("AmbientOptions"));
}
