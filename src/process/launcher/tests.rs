//! Starts of scripts that are no plugins: what they see, and what the operator is told. Starts that succeed are tested
//! with real plugins.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::Mutex,
};

use tonic::service::Routes;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::domain::{home_id::HomeId, id::PluginId};

struct World {
    folder: tempfile::TempDir,
    launcher: GoPluginLauncher,
    lines: Arc<Mutex<Vec<LogLine>>>,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let home = HomeId::derive(folder.path().as_os_str().as_encoded_bytes(), 0, 0);
    let host = |name: &str| (name == "PATH" || name == "SECRET_X").then(|| "/usr/bin:/bin".into());
    let (environment, _) = Environment::new(&["PATH".to_owned()], host, &home);
    let sockets = SocketRoot::prepare(&home, &[folder.path().to_owned()]).unwrap();
    let forker = Forker::start().unwrap();
    let launcher = GoPluginLauncher::new(forker, environment, sockets, &Timing::default(), &Limits::default());
    World { folder, launcher, lines: Arc::default() }
}

impl World {
    fn request(&self, script: &str) -> LaunchRequest {
        let executable = self.folder.path().join("plugin");
        fs::write(&executable, script).unwrap();
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(self.folder.path().join("acme")).unwrap();
        let lines = self.lines.clone();
        LaunchRequest {
            id: PluginId::new("acme").unwrap(),
            generation: 1,
            executable,
            executable_sha256: None,
            install_path: self.folder.path().to_owned(),
            data_dir: self.folder.path().join("acme/data"),
            host_service: Routes::default(),
            log: Arc::new(move |line| lines.lock().unwrap().push(line)),
            abort: CancellationToken::new(),
        }
    }

    fn sockets(&self) -> usize {
        fs::read_dir(self.launcher.sockets.ensure().unwrap()).unwrap().count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_sees_its_environment_and_folders_and_its_early_end_is_told_with_its_last_words() {
    let world = world();
    let script = "#!/bin/sh\nenv > \"$KANDEV_PLUGIN_DATA_DIR/env\"; pwd > \"$KANDEV_PLUGIN_DATA_DIR/pwd\"\n\
                  echo 'no licence found' >&2; exit 3\n";
    let failure = world.launcher.launch(world.request(script)).await.unwrap_err().to_string();
    assert!(failure.contains("code 3") && failure.contains("no licence found"), "{failure}");

    let data = world.folder.path().join("acme/data");
    assert_eq!(fs::metadata(&data).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::read_to_string(data.join("pwd")).unwrap().trim(), world.folder.path().to_str().unwrap());
    let text = fs::read_to_string(data.join("env")).unwrap();
    let seen: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!(seen["KANDEV_PLUGIN"], "kandev-plugin-v1");
    assert_eq!(seen["PLUGIN_PROTOCOL_VERSIONS"], "1");
    assert_eq!(seen["KANDEV_PLUGIN_DATA_DIR"], data.to_str().unwrap());
    assert_eq!(seen["PATH"], "/usr/bin:/bin");
    assert!(seen.contains_key("KANDEV_HOST_HOME_ID") && !seen.contains_key("SECRET_X"), "{text}");

    let lines = world.lines.lock().unwrap();
    let expected = ("no licence found", Stream::Stderr);
    assert!(lines.iter().any(|line| (line.message.as_str(), line.stream) == expected), "{lines:?}");
    assert_eq!(world.sockets(), 0, "nothing of the start is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_not_the_one_on_record_is_not_executed() {
    let world = world();
    let script = "#!/bin/sh\n: > \"$KANDEV_PLUGIN_DATA_DIR/ran\"\n";
    let request = LaunchRequest { executable_sha256: Some("00".repeat(32)), ..world.request(script) };
    let failure = world.launcher.launch(request).await.unwrap_err().to_string();
    assert!(failure.contains("is not the one that was installed (its SHA-256 is "), "{failure}");
    assert!(!world.folder.path().join("acme/data/ran").exists());
    assert_eq!(world.sockets(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_that_cannot_be_made_is_told_with_its_path() {
    let world = world();
    let request = LaunchRequest { data_dir: "/proc/acme/data".into(), ..world.request("#!/bin/sh\n") };
    let failure = world.launcher.launch(request).await.unwrap_err().to_string();
    assert!(failure.starts_with("cannot make the plugin's data folder /proc/acme/data: "), "{failure}");
}
