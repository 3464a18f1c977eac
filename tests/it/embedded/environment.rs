//! Users, folder permissions and environments: root, ordinary users, closed folders, hostile variables.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use dalsegno::db::embedded;

use super::support::{EmbeddedSetup, Service, count, servers};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn as_root_server_and_data_belong_to_an_unprivileged_account() {
    if !is_root() {
        return;
    }
    let mut setup = EmbeddedSetup::new();
    setup.config.run_as = Some("nobody".to_owned());
    let postgres = embedded::start(&setup.config).await.unwrap();
    let server = fs::metadata(format!("/proc/{}", postgres.describe().pid)).unwrap().uid();
    let data = fs::metadata(setup.cluster()).unwrap();
    assert_ne!(server, 0);
    assert_eq!(data.uid(), server);
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(setup.home().join("password")).unwrap().uid(), 0);
    postgres.stop().await.unwrap();
    // From now on the owner of the data decides.
    setup.config.run_as = None;
    let postgres = embedded::start(&setup.config).await.unwrap();
    assert_eq!(fs::metadata(format!("/proc/{}", postgres.describe().pid)).unwrap().uid(), server);
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn below_an_inaccessible_folder_the_cluster_is_linked_from_elsewhere() {
    if !is_root() {
        return;
    }
    let mut setup = EmbeddedSetup::new();
    let closed = setup.folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    setup.config.data_dir = closed.join("d");
    let postgres = embedded::start(&setup.config).await.unwrap();
    let target = fs::read_link(setup.home()).unwrap();
    assert!(target.starts_with(&setup.config.fallback_dir), "{target:?}");
    assert_eq!(count(postgres.connect_options(), "SELECT 1::bigint").await, 1);
    let attached = embedded::attach(&setup.config).await.unwrap().unwrap();
    assert_eq!(attached.pid(), postgres.describe().pid);
    postgres.stop().await.unwrap();

    let postgres = embedded::start(&setup.config).await.unwrap();
    assert_eq!(fs::read_link(setup.home()).unwrap(), target);
    // A copy of the folder links to the same cluster, which two services must not share.
    let mut copy = setup.config.clone();
    copy.data_dir = closed.join("copy");
    fs::create_dir(&copy.data_dir).unwrap();
    std::os::unix::fs::symlink(&target, copy.data_dir.join("postgres")).unwrap();
    let error = embedded::start(&copy).await.unwrap_err();
    assert!(matches!(error, embedded::Error::AlreadyRunning { .. }), "{error}");
    postgres.stop().await.unwrap();

    // A deleted data folder neither restores its old cluster nor touches it.
    fs::remove_dir_all(&setup.config.data_dir).unwrap();
    let postgres = embedded::start(&setup.config).await.unwrap();
    assert_ne!(fs::read_link(setup.home()).unwrap(), target);
    assert!(target.exists());
    postgres.stop().await.unwrap();
}

/// The data folder may belong to an ordinary user, whose links root must not follow.
#[tokio::test]
async fn as_root_links_in_the_data_folder_are_not_followed() {
    if !is_root() {
        return;
    }
    let setup = EmbeddedSetup::new();
    let precious = setup.folder.path().join("precious");
    let begin = fs::File::create(&precious).unwrap();
    // Longer than the limit of a log, so that it would be truncated.
    begin.set_len(5 << 20).unwrap();
    let folder = setup.folder.path().join("of-root");
    fs::create_dir(&folder).unwrap();
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
    for (laid, target) in [
        (setup.home().join("server.log"), &precious),
        (setup.config.data_dir.join("service.lock"), &precious),
        (setup.home().join("run"), &folder),
    ] {
        let aside = setup.folder.path().join("aside");
        fs::rename(&laid, &aside).unwrap();
        std::os::unix::fs::symlink(target, &laid).unwrap();
        let error = embedded::start(&setup.config).await.unwrap_err().to_string();
        assert!(error.contains("link"), "{}: {error}", laid.display());
        assert_eq!(fs::metadata(&precious).unwrap().len(), 5 << 20, "{}", laid.display());
        assert_eq!(fs::metadata(&folder).unwrap().uid(), 0, "{}", laid.display());
        fs::remove_file(&laid).unwrap();
        fs::rename(&aside, &laid).unwrap();
    }
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "tests start the programs that they look at")]
#[test]
fn an_ordinary_user_runs_the_server_under_its_own_account() {
    if !is_root() {
        return;
    }
    let mut setup = EmbeddedSetup::new();
    let home = setup.folder.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    setup.config.data_dir = home.join("d");
    // The build folder may not be readable for that user.
    let program = setup.folder.path().join("service");
    fs::copy(env!("CARGO_BIN_EXE_first-run-service"), &program).unwrap();
    for _ in 0..2 {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        command.arg(&setup.config.data_dir).arg(&setup.config.fallback_dir).arg("once");
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &home).current_dir(&home);
        let mut service = Service::spawn(command);
        service.expect("READY ");
        service.expect("STOPPED");
        assert!(service.child.wait().unwrap().success());
    }
    assert_eq!(fs::metadata(setup.cluster()).unwrap().uid(), 65534);
    assert_eq!(servers(&setup.cluster()), Vec::<u32>::new());
}

#[test]
fn the_server_inherits_no_environment_variables() {
    let setup = EmbeddedSetup::new();
    for _ in 0..2 {
        let mut command = setup.command(Path::new(env!("CARGO_BIN_EXE_first-run-service")));
        command.arg("once");
        for (name, value) in [
            ("PGHOST", "nowhere.invalid"),
            ("PGHOSTADDR", "192.0.2.1"),
            ("PGPORT", "1"),
            ("PGUSER", "no-such-user"),
            ("PGPASSWORD", "wrong"),
            ("PGDATABASE", "none"),
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", "/no/such/file"),
            ("PGSSLCERT", "/no/such/file"),
            ("PGSSLKEY", "/no/such/file"),
            ("PGAPPNAME", "x"),
            ("PGDATA", "/no/such/folder"),
            ("PGPASSFILE", "/no/such/file"),
            ("PGTZ", "Nowhere/Never"),
            ("PGCLIENTENCODING", "LATIN1"),
            ("LC_ALL", "xx_XX"),
            ("LANG", "xx_XX"),
            ("TZ", "Mars/Olympus"),
        ] {
            command.env(name, value);
        }
        let mut service = Service::spawn(command);
        service.expect("STOPPED");
        assert!(service.child.wait().unwrap().success());
    }
}

#[test]
fn no_secret_of_the_service_is_in_the_servers_environment() {
    let setup = EmbeddedSetup::new();
    let mut command = setup.command(Path::new(env!("CARGO_BIN_EXE_first-run-service")));
    command.env("ANTHROPIC_API_KEY", "sk-very-secret");
    let service = Service::spawn(command);
    let ready = service.expect("READY ");
    let pid = ready.split(' ').nth(1).unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("very-secret"));
    service.expect("row ");
    service.terminate();
}
