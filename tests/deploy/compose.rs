//! `compose.yaml`: it is YAML with the keys of the Compose specification that ours uses, and what must hold.

use std::{process::Command, time::Duration};

use kandev_host::config::{Holds, Timing};
use serde_json::{Map, Value};

use crate::{USER, holds, is_pinned, read, root};

/// The variables of the PostgreSQL image.
const POSTGRES_VARIABLES: [&str; 4] =
    ["POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "POSTGRES_INITDB_ARGS"];

fn compose() -> Value {
    serde_saphyr::from_str(&read("compose.yaml")).expect("compose.yaml is YAML")
}

fn services() -> Map<String, Value> {
    compose()["services"].as_object().expect("services").clone()
}

fn host() -> Value {
    compose()["services"]["host"].clone()
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|item| item.as_str().unwrap_or_else(|| panic!("not text: {item}")).to_owned()).collect()
}

/// Where a service has something mounted: volumes and memory file systems.
fn mounts(service: &Value, key: &str, part: usize) -> Vec<String> {
    texts(&service[key]).iter().map(|text| text.split(':').nth(part).unwrap_or_default().to_owned()).collect()
}

fn seconds(value: &Value) -> u64 {
    let text = value.as_str().expect("text with a unit");
    text.strip_suffix('s').and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("not seconds: {text}"))
}

#[test]
fn only_keys_of_the_specification_are_used() {
    const TOP: [&str; 4] = ["name", "services", "volumes", "secrets"];
    const SERVICE: [&str; 21] = [
        "build",
        "image",
        "init",
        "user",
        "read_only",
        "cap_drop",
        "security_opt",
        "restart",
        "stop_grace_period",
        "depends_on",
        "environment",
        "secrets",
        "ports",
        "volumes",
        "tmpfs",
        "healthcheck",
        "deploy",
        "logging",
        "shm_size",
        "command",
        "networks",
    ];
    let compose = compose();
    let unknown = |keys: &Map<String, Value>, known: &[&str]| -> Vec<String> {
        keys.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect()
    };
    assert_eq!(unknown(compose.as_object().expect("an object"), &TOP), [""; 0]);
    for (name, service) in services() {
        assert_eq!(unknown(service.as_object().expect("an object"), &SERVICE), [""; 0], "{name}");
    }
}

#[test]
fn every_service_is_pinned_confined_limited_restarted_and_watched() {
    assert_eq!(services().keys().collect::<Vec<_>>(), ["host", "postgres"]);
    for (name, service) in services() {
        assert!(is_pinned(service["image"].as_str().expect("an image")), "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert!(!service["user"].as_str().expect("a user").starts_with('0'), "{name}");
        assert_eq!(texts(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(texts(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        for limit in ["cpus", "memory", "pids"] {
            assert!(!service["deploy"]["resources"]["limits"][limit].is_null(), "{name}: {limit}");
        }
        let check = texts(&service["healthcheck"]["test"]);
        assert_eq!(check[0], "CMD", "{name}: a health check without a shell");
    }
}

#[test]
fn the_host_has_what_a_container_must_give_it() {
    let host = host();
    assert_eq!(host["user"], USER);
    assert_eq!(host["init"], true, "somebody must reap the orphans of plugins");
    assert_eq!(host["depends_on"]["postgres"]["condition"], "service_healthy");
    assert_eq!(texts(&host["healthcheck"]["test"])[1..3], ["/usr/local/bin/kandev-host", "health"]);
    let port = host["environment"]["KANDEV_LISTEN"].as_str().and_then(|text| text.rsplit(':').next()).expect("a port");
    assert_eq!(texts(&host["ports"]), [format!("127.0.0.1:{port}:{port}")], "to this machine only");
    assert!(Duration::from_secs(seconds(&host["stop_grace_period"])) > Timing::default().shutdown_timeout);
    let own = texts(&host["healthcheck"]["test"])[4].parse::<u64>().expect("seconds");
    assert!(own < seconds(&host["healthcheck"]["timeout"]) && own > Timing::default().ask_timeout.as_secs());
}

#[test]
fn every_variable_and_path_is_one_the_host_knows() {
    let host = host();
    let secrets = texts(&host["secrets"]);
    let (volumes, memory) = (mounts(&host, "volumes", 1), mounts(&host, "tmpfs", 0));
    for (name, value) in host["environment"].as_object().expect("environment") {
        let value = value.as_str().expect("text");
        match holds(name) {
            Holds::Text => {}
            Holds::Secret => panic!("{name}: secrets come by file"),
            Holds::SecretFile => {
                let secret = value.strip_prefix("/run/secrets/").expect("a secret's path");
                assert!(secrets.iter().any(|given| given == secret), "{name}: the service is not given {secret}");
            }
            Holds::Folder if name == "KANDEV_HOME" => {
                assert!(volumes.iter().any(|path| path == value), "{value} is no volume");
            }
            Holds::Folder => assert!(memory.iter().any(|path| path == value), "{value} cannot be written"),
        }
    }
    let postgres = compose()["services"]["postgres"].clone();
    for name in postgres["environment"].as_object().expect("environment").keys() {
        assert!(POSTGRES_VARIABLES.contains(&name.as_str()), "{name}");
    }
    let declared = compose()["volumes"].as_object().expect("volumes").clone();
    for (name, service) in services() {
        for volume in mounts(&service, "volumes", 0) {
            assert!(declared.contains_key(&volume), "{name}: {volume} is not declared");
        }
    }
}

#[test]
fn every_secret_is_a_file_that_the_script_makes() {
    let text = read("scripts/make-secrets.sh");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("scripts")).expect("a folder");
    let script = folder.path().join("scripts/make-secrets.sh");
    std::fs::write(&script, text).expect("a copy of the script");
    let run = || assert!(Command::new("sh").arg(&script).output().expect("sh runs").status.success());
    run();
    let content = |path: &str| std::fs::read_to_string(folder.path().join(path)).expect("a secret");
    let compose = compose();
    let secrets = compose["secrets"].as_object().expect("secrets");
    for (name, secret) in secrets {
        let path = secret["file"].as_str().expect("a file").strip_prefix("./").expect("a path below this folder");
        assert_eq!(path, format!("secrets/{name}"));
        assert!(content(path).len() >= 32, "{name}");
        let ignored = read(".gitignore").lines().any(|line| line == "/secrets/");
        assert!(ignored, "secrets are not for the repository");
    }
    let (password, url) = (content("secrets/postgres_password"), content("secrets/database_url"));
    let environment = &compose["services"]["postgres"]["environment"];
    let (user, name) = (environment["POSTGRES_USER"].as_str(), environment["POSTGRES_DB"].as_str());
    let expected = format!("postgres://{}:{password}@postgres:5432/{}", user.unwrap_or(""), name.unwrap_or(""));
    assert_eq!(url, expected);
    run();
    assert_eq!(content("secrets/postgres_password"), password, "what is there is kept");
    for (name, service) in services() {
        for secret in texts(&service["secrets"]) {
            assert!(secrets.contains_key(&secret), "{name}: {secret} is not declared");
        }
    }
}

#[test]
fn files_that_are_named_are_there() {
    let build = host()["build"].as_str().expect("a folder").to_owned();
    assert!(root().join(build).join("Dockerfile").is_file());
}
