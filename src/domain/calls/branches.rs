//! The reserved action `repositories.branches` (contract/rest.md §7): the host itself asks the owner of a repository's
//! provider for the branches.

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::{clean, platform::repository::RepositoryFields};

/// The action's key; its scope is the workspace.
pub const ACTION: &str = "repositories.branches";

/// Most branches of an answer.
pub const MAX_BRANCHES: usize = 10_000;

/// Largest answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Longest name of a branch, in bytes; git's own files allow no longer one.
const MAX_NAME_BYTES: usize = 255;

/// Longest name of a commit, in bytes: SHA-256 in hexadecimal.
const MAX_COMMIT_BYTES: usize = 64;

/// A branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// One line.
    pub name: String,
    /// The commit at its end, in hexadecimal; empty when the plugin does not say.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Whether work begins there.
    #[serde(default, deserialize_with = "or_default")]
    pub is_default: bool,
}

/// What of an answer is passed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// In the plugin's order.
    pub branches: Vec<Branch>,
    /// Branches that were left out, because their name or commit cannot be shown or handed to git. Whoever may push can
    /// make one: it must not hide the others.
    pub malformed: usize,
}

/// Why an answer is not passed on (502).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BranchesFault {
    /// Neither 0 nor 200 to 299.
    #[error("answered the status {0} instead of branches")]
    Status(i32),
    /// More than 1 MiB.
    #[error("answered more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    /// Not the form of the contract.
    #[error("did not answer {{\"branches\":[{{\"name\",\"commit\",\"is_default\"}}]}}")]
    Malformed,
    /// More than 10 000.
    #[error("answered more than {MAX_BRANCHES} branches")]
    TooMany,
}

/// What the plugin is asked about.
#[derive(Serialize)]
struct Question<'a> {
    repository: Asked<'a>,
}

/// The contract's keys.
#[derive(Serialize)]
struct Asked<'a> {
    provider_id: &'a str,
    provider_host: &'a str,
    provider_scope: &'a str,
    provider_repository_id: &'a str,
    owner_or_project: &'a str,
    name: &'a str,
    clone_url: &'a str,
    default_branch: &'a str,
}

/// The action's body.
pub fn question(repository: &RepositoryFields) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Question {
        repository: Asked {
            provider_id: &repository.provider,
            provider_host: &repository.provider_host,
            provider_scope: &repository.provider_scope,
            provider_repository_id: &repository.provider_repo_id,
            owner_or_project: &repository.provider_owner,
            name: &repository.provider_name,
            clone_url: &repository.remote_url,
            default_branch: &repository.default_branch,
        },
    })
}

/// What a plugin answers; more keys mean nothing.
#[derive(Deserialize)]
struct Answer {
    #[serde(deserialize_with = "or_default")]
    branches: Vec<Branch>,
}

/// `null` is what Go writes of an empty list, and others of what they do not know.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Checks an answer.
pub fn check(status: i32, body: &[u8]) -> Result<Listed, BranchesFault> {
    if status != 0 && !(200..300).contains(&status) {
        return Err(BranchesFault::Status(status));
    }
    if body.len() > MAX_ANSWER_BYTES {
        return Err(BranchesFault::TooLarge);
    }
    let Answer { mut branches } = serde_json::from_slice(body).map_err(|_| BranchesFault::Malformed)?;
    if branches.len() > MAX_BRANCHES {
        return Err(BranchesFault::TooMany);
    }
    let told = branches.len();
    branches.retain(is_lawful);
    Ok(Listed { malformed: told - branches.len(), branches })
}

fn is_lawful(branch: &Branch) -> bool {
    let Branch { name, commit, .. } = branch;
    // A name that begins with a hyphen would be an option to git.
    let named = !name.is_empty() && !name.starts_with('-') && clean::single_line(name, MAX_NAME_BYTES) == *name;
    named && commit.len() <= MAX_COMMIT_BYTES && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_question_has_the_contracts_keys() {
        let repository = RepositoryFields {
            name: "shown".to_owned(),
            provider: "forge".to_owned(),
            provider_host: "h".to_owned(),
            provider_scope: "s".to_owned(),
            provider_repo_id: "7".to_owned(),
            provider_owner: "team".to_owned(),
            provider_name: "app".to_owned(),
            remote_url: "https://h/team/app".to_owned(),
            default_branch: "main".to_owned(),
            ..RepositoryFields::default()
        };
        let asked: Value = serde_json::from_slice(&question(&repository).unwrap()).unwrap();
        let expected = json!({"repository": {
            "provider_id": "forge", "provider_host": "h", "provider_scope": "s", "provider_repository_id": "7",
            "owner_or_project": "team", "name": "app", "clone_url": "https://h/team/app", "default_branch": "main",
        }});
        assert_eq!(asked, expected);
    }

    fn told(body: &Value) -> Result<Listed, BranchesFault> {
        check(0, body.to_string().as_bytes())
    }

    #[test]
    fn an_answer_needs_names_only() {
        let unknown = json!({"name": "c", "commit": null, "is_default": null});
        let body = json!({"branches": [{"name": "main", "commit": "abc123", "is_default": true}, {"name": "a/b", "x": 1}, unknown]});
        let branch = |name: &str, commit: &str, is_default| Branch {
            name: name.to_owned(),
            commit: commit.to_owned(),
            is_default,
        };
        let branches = vec![branch("main", "abc123", true), branch("a/b", "", false), branch("c", "", false)];
        assert_eq!(told(&body), Ok(Listed { branches, malformed: 0 }));
        for none in [json!([]), json!(null)] {
            assert_eq!(told(&json!({"branches": none})), Ok(Listed::default()), "{none}");
        }
    }

    #[test]
    fn what_is_no_list_of_branches_is_refused() {
        assert_eq!(check(404, b"{}"), Err(BranchesFault::Status(404)));
        for body in [
            json!({}),
            json!([]),
            json!({"branches": {}}),
            json!({"branches": [{}]}),
            json!({"branches": [{"name": 1}]}),
        ] {
            assert_eq!(told(&body), Err(BranchesFault::Malformed), "{body}");
        }
        let many: Vec<_> = (0..=MAX_BRANCHES).map(|_| json!({"name": "x"})).collect();
        assert_eq!(told(&json!({"branches": many})), Err(BranchesFault::TooMany));
        assert_eq!(check(0, &vec![b' '; MAX_ANSWER_BYTES + 1]), Err(BranchesFault::TooLarge));
    }

    #[test]
    fn a_branch_that_cannot_be_one_is_left_out_and_hides_no_other() {
        let (long_name, long_commit) = ("x".repeat(256), "a".repeat(65));
        let (long_name, long_commit) = (long_name.as_str(), long_commit.as_str());
        let odd =
            [("", ""), ("-x", ""), ("a\nb", ""), ("a\u{200d}b", ""), ("a", "xyz"), ("a", long_commit), (long_name, "")];
        for (name, commit) in odd {
            let body = json!({"branches": [{"name": name, "commit": commit}, {"name": "main"}]});
            let main = Branch { name: "main".to_owned(), commit: String::new(), is_default: false };
            assert_eq!(told(&body), Ok(Listed { branches: vec![main], malformed: 1 }), "{name:?} {commit}");
        }
    }
}
