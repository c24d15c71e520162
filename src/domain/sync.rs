//! What a sync does about what it finds on disk (contract/manifest.md §12, with lifecycle.md §10 row 36 mended): from
//! what is there and what is registered to a list of steps.
//!
//! Looking is `store::packages`' part, doing is `actors::sync`'s.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::{id::PluginId, manifest::Manifest, version};

/// What the plugins folder holds, as far as a sync is concerned. Everything is ordered by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// Folders and links to folders that have the name of a plugin, or try to.
    pub folders: Vec<Folder>,
    /// What is named `*.tar.gz` in the root, folders of plugins aside.
    pub tarballs: Vec<Tarball>,
    /// Where each registered plugin should be.
    pub installs: Vec<(PluginId, Install)>,
    /// What could not be looked at, or was too much.
    pub errors: Vec<ItemError>,
}

/// A folder of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Folder {
    /// Its name.
    pub name: String,
    /// Its path, for people.
    pub path: String,
    /// A link, which is not followed.
    pub is_link: bool,
    /// Whether the plugin has a record on disk, readable or not.
    pub has_record: bool,
    /// Whether unfinished files of the host lie in it.
    pub has_leftovers: bool,
    /// The versions in it; not looked at when the plugin is registered.
    pub versions: Vec<Version>,
}

/// A folder of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Its path, for people.
    pub path: String,
    /// The manifest, or why it is none.
    pub manifest: Result<Box<Manifest>, String>,
}

/// A package that someone dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Tarball {
    /// Its name.
    pub name: String,
    /// Its path, for people.
    pub path: String,
    /// What bears the name.
    pub kind: TarballKind,
}

/// What bears the name of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarballKind {
    /// A regular file.
    File,
    /// A link, which is not followed.
    Link,
    /// A folder, and no plugin's.
    Folder,
    /// A pipe, a socket, a device.
    Special,
}

/// Where a registered plugin should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Install {
    /// There it is.
    There,
    /// Nothing is there.
    Missing,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The plugin's install folder is gone: stop it, set `error`.
    Missing(PluginId),
    /// Register what lies in the version's folder, off.
    Register(PluginId, Box<Manifest>),
    /// Install the package of this file name.
    Install(String),
    /// Delete unfinished files in the plugin's folder.
    Clean(PluginId),
}

/// An item that failed; the others go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SyncError)]
pub struct ItemError {
    /// Where.
    pub path: String,
    /// Why, for the operator.
    pub reason: String,
}

/// What a sync has done: four arrays, never null (contract/rest.md §3, `SyncResult`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncReport {
    /// Registered, off.
    #[schema(value_type = Vec<String>)]
    pub added: Vec<PluginId>,
    /// Installed from a dropped package, started or not.
    #[schema(value_type = Vec<String>)]
    pub installed: Vec<PluginId>,
    /// In `error`, since their folder is gone.
    #[schema(value_type = Vec<String>)]
    pub missing: Vec<PluginId>,
    /// Items that failed.
    pub errors: Vec<ItemError>,
}

/// What is to be done, in this order, and what cannot be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Steps.
    pub steps: Vec<Step>,
    /// Items that need no step to fail.
    pub errors: Vec<ItemError>,
}

/// Decides. Tarballs are taken only when the operator asks for a sync, never when the host starts.
pub fn plan(survey: Survey, asked: bool) -> Plan {
    let Survey { folders, tarballs, installs, errors } = survey;
    let mut plan = Plan { steps: Vec::new(), errors };
    let registered: BTreeMap<&str, &PluginId> = installs.iter().map(|(id, _)| (id.as_str(), id)).collect();
    let missing = installs.iter().filter(|(_, install)| *install == Install::Missing);
    plan.steps.extend(missing.map(|(id, _)| Step::Missing(id.clone())));
    let mut cleans = Vec::new();
    for folder in folders {
        if folder.has_leftovers
            && let Ok(id) = PluginId::new(&folder.name)
        {
            cleans.push(Step::Clean(id));
        }
        if !registered.contains_key(folder.name.as_str()) {
            plan.folder(folder);
        }
    }
    if asked {
        tarballs.into_iter().for_each(|tarball| plan.tarball(tarball));
    }
    plan.steps.extend(cleans);
    plan
}

impl Plan {
    fn error(&mut self, path: String, reason: impl Into<String>) {
        self.errors.push(ItemError { path, reason: reason.into() });
    }

    fn tarball(&mut self, Tarball { name, path, kind }: Tarball) {
        match kind {
            TarballKind::File => self.steps.push(Step::Install(name)),
            TarballKind::Link => self.error(path, "a link is not followed; put the package itself here"),
            TarballKind::Folder => {
                self.error(path, "a folder with the name of a package; put the package file itself here")
            }
            TarballKind::Special => self.error(path, "not a regular file"),
        }
    }

    /// A folder of a plugin that is not registered.
    fn folder(&mut self, folder: Folder) {
        if folder.is_link {
            return self.error(folder.path, "a link is not followed; put the folder itself here");
        }
        if folder.versions.is_empty() {
            return;
        }
        let id = match PluginId::new(&folder.name) {
            Ok(id) => id,
            Err(error) => return self.error(folder.path, error.to_string()),
        };
        if folder.has_record {
            let reason = format!(
                "the plugin has a record, {id}.yml, that was not read when the host started; repair it and restart the \
                 host, or delete it and sync again"
            );
            return self.error(folder.path, reason);
        }
        let mut lawful: Vec<(String, Box<Manifest>)> = Vec::new();
        for version in folder.versions {
            match judge(&id, version.name, version.manifest) {
                Ok(manifest) => lawful.push((version.path, manifest)),
                Err(reason) => self.error(version.path, reason),
            }
        }
        // The greatest version; of two that count as equal, the one that comes last by name.
        let greatest = version::greatest(lawful.iter().map(|(_, manifest)| manifest.version.as_str()));
        let Some((_, chosen)) = greatest.map(|at| lawful.remove(at)) else { return };
        for (path, manifest) in lawful {
            let skipped = manifest.version;
            let reason = format!("skipped: version \"{skipped}\" already selected for unregistered plugin \"{id}\"");
            self.error(path, reason);
        }
        self.steps.push(Step::Register(id, chosen));
    }
}

/// The manifest of a version's folder, when it belongs there.
fn judge(id: &PluginId, folder: String, manifest: Result<Box<Manifest>, String>) -> Result<Box<Manifest>, String> {
    let manifest = manifest?;
    if manifest.id != id.as_str() {
        return Err(format!("the manifest's id \"{}\" is not the folder's name \"{id}\"", manifest.id));
    }
    if manifest.version != folder {
        let version = &manifest.version;
        return Err(format!("the manifest's version \"{version}\" is not the folder's name \"{folder}\""));
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::manifest;

    fn lawful(id: &str, version: &str) -> Box<Manifest> {
        let text = format!(
            "{{id: {id}, api_version: 1, version: '{version}', \
             runtime: {{type: binary, executables: {{linux-amd64: server/p}}}}}}"
        );
        Box::new(manifest::parse(text.as_bytes()).unwrap().manifest)
    }

    fn version(id: &str, name: &str) -> Version {
        Version { name: name.to_owned(), path: format!("/p/{id}/{name}"), manifest: Ok(lawful(id, name)) }
    }

    fn folder(id: &str, versions: Vec<Version>) -> Folder {
        Folder {
            name: id.to_owned(),
            path: format!("/p/{id}"),
            is_link: false,
            has_record: false,
            has_leftovers: false,
            versions,
        }
    }

    fn id(text: &str) -> PluginId {
        PluginId::new(text).unwrap()
    }

    fn error(path: &str, reason: &str) -> ItemError {
        ItemError { path: path.to_owned(), reason: reason.to_owned() }
    }

    fn found(folders: Vec<Folder>) -> Survey {
        Survey { folders, ..Survey::default() }
    }

    #[test]
    fn of_several_versions_the_greatest_is_registered_and_the_others_are_told() {
        let versions = ["1.10.0", "1.9.0", "2.0.0-rc.1"].map(|name| version("acme", name)).to_vec();
        let plan = plan(found(vec![folder("acme", versions)]), false);
        assert_eq!(plan.steps, [Step::Register(id("acme"), lawful("acme", "2.0.0-rc.1"))]);
        let skipped = |v: &str| {
            let reason = format!("skipped: version \"{v}\" already selected for unregistered plugin \"acme\"");
            error(&format!("/p/acme/{v}"), &reason)
        };
        assert_eq!(plan.errors, [skipped("1.10.0"), skipped("1.9.0")]);
    }

    /// Such a list has no order at all, so that it cannot be sorted.
    #[test]
    fn of_many_versions_in_mixed_spellings_one_that_none_exceeds_is_registered() {
        let names = "1.10.0 1.10.0-rc1 1.11 1.11.0-rc1 1.12.0-rc1 1.13 1.13.0 1.13.0-rc1 1.14 1.14.0 1.5 1.5.0 1.5.0-rc1 \
                     1.6 1.6.0 1.7.0 1.7.0-rc1 1.8 1.8.0 1.8.0-rc1 1.9 1.9.0 1.9.0-rc1";
        let versions: Vec<_> = names.split_whitespace().map(|name| version("acme", name)).collect();
        let count = versions.len();
        let plan = plan(found(vec![folder("acme", versions)]), false);
        assert_eq!(plan.steps, [Step::Register(id("acme"), lawful("acme", "1.14.0"))]);
        assert_eq!(plan.errors.len(), count - 1);
    }

    #[test]
    fn a_folder_that_says_something_else_than_its_manifest_is_refused() {
        let mut wrong_version = version("acme", "1.0.0");
        wrong_version.name = "1.0".to_owned();
        let mut broken = version("acme", "0.1.0");
        broken.manifest = Err("pkgtar: manifest invalid: x".to_owned());
        let wrong_id = Version { manifest: Ok(lawful("other", "0.2.0")), ..version("acme", "0.2.0") };
        let plan = plan(found(vec![folder("acme", vec![broken, wrong_id, wrong_version])]), false);
        assert_eq!(plan.steps, []);
        let errors = [
            error("/p/acme/0.1.0", "pkgtar: manifest invalid: x"),
            error("/p/acme/0.2.0", "the manifest's id \"other\" is not the folder's name \"acme\""),
            error("/p/acme/1.0.0", "the manifest's version \"1.0.0\" is not the folder's name \"1.0\""),
        ];
        assert_eq!(plan.errors, errors);
    }

    #[test]
    fn links_unlawful_names_and_unread_records_are_told_and_folders_without_versions_are_nothing() {
        let versions = || vec![version("acme", "1.0.0")];
        let folders = vec![
            Folder { is_link: true, ..folder("a-link", vec![]) },
            folder("empty", vec![]),
            folder("install", versions()),
            Folder { has_record: true, ..folder("acme", versions()) },
        ];
        let plan = plan(found(folders), true);
        assert_eq!(plan.steps, []);
        let paths: Vec<_> = plan.errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, ["/p/a-link", "/p/install", "/p/acme"]);
    }

    #[test]
    fn packages_are_installed_when_asked_and_never_at_the_start() {
        let tarball = |name: &str, kind| {
            let (name, path) = (name.to_owned(), format!("/p/{name}"));
            Tarball { name, path, kind }
        };
        let tarballs = vec![
            tarball("a.tar.gz", TarballKind::File),
            tarball("b.tar.gz", TarballKind::Link),
            tarball("c.tar.gz", TarballKind::Folder),
            tarball("d.tar.gz", TarballKind::Special),
        ];
        let survey = Survey { tarballs, ..Survey::default() };
        assert_eq!(plan(survey.clone(), false), Plan::default());
        let asked = plan(survey, true);
        assert_eq!(asked.steps, [Step::Install("a.tar.gz".to_owned())]);
        let errors = [
            error("/p/b.tar.gz", "a link is not followed; put the package itself here"),
            error("/p/c.tar.gz", "a folder with the name of a package; put the package file itself here"),
            error("/p/d.tar.gz", "not a regular file"),
        ];
        assert_eq!(asked.errors, errors);
    }

    #[test]
    fn missing_installs_come_first_and_leftovers_last() {
        let survey = Survey {
            folders: vec![Folder { has_leftovers: true, ..folder("acme", vec![version("acme", "1.0.0")]) }],
            installs: vec![(id("gone"), Install::Missing), (id("here"), Install::There)],
            ..Survey::default()
        };
        let steps =
            [Step::Missing(id("gone")), Step::Register(id("acme"), lawful("acme", "1.0.0")), Step::Clean(id("acme"))];
        assert_eq!(plan(survey, false).steps, steps);
    }

    #[test]
    fn an_empty_report_has_four_arrays() {
        let json = serde_json::to_value(SyncReport::default()).unwrap();
        assert_eq!(json, serde_json::json!({"added": [], "installed": [], "missing": [], "errors": []}));
    }

    fn any_survey() -> impl Strategy<Value = Survey> {
        let name = prop::sample::select(vec!["a", "b", "c.d", "install", "Bad"]);
        let version_of = |folder: &'static str| {
            let numbers = prop::sample::select(vec!["1.0.0", "1.1.0", "2.0", "x"]);
            (numbers, 0u8..4).prop_map(move |(number, kind)| Version {
                name: number.to_owned(),
                path: format!("/p/{folder}/{number}"),
                manifest: match kind {
                    0 => Err("broken".to_owned()),
                    1 => Ok(lawful("other", number)),
                    2 => Ok(lawful(if PluginId::new(folder).is_ok() { folder } else { "a" }, "9.9.9")),
                    _ => Ok(lawful(if PluginId::new(folder).is_ok() { folder } else { "a" }, number)),
                },
            })
        };
        let folder_of = name.prop_flat_map(move |name| {
            let versions = prop::collection::vec(version_of(name), 0..4);
            (versions, prop::bool::weighted(0.1), prop::bool::weighted(0.2), any::<bool>()).prop_map(
                move |(versions, is_link, has_record, has_leftovers)| Folder {
                    is_link,
                    has_record,
                    has_leftovers,
                    ..folder(name, versions)
                },
            )
        });
        let folders = prop::collection::btree_map(0u8..5, folder_of, 0..5).prop_map(|map| {
            let by_name: BTreeMap<_, _> = map.into_values().map(|folder| (folder.name.clone(), folder)).collect();
            by_name.into_values().collect()
        });
        let install = prop_oneof![Just(Install::There), Just(Install::Missing)];
        let installs =
            prop::collection::btree_map(prop::sample::select(vec!["a", "b", "z"]).prop_map(id), install, 0..3);
        (folders, installs).prop_map(|(folders, installs)| Survey {
            folders,
            installs: installs.into_iter().collect(),
            ..Survey::default()
        })
    }

    proptest! {
        #[test]
        fn every_version_of_an_unregistered_plugin_is_registered_or_told_and_no_plugin_twice(survey in any_survey()) {
            let plan = plan(survey.clone(), true);
            let mut registered: Vec<_> = plan.steps.iter().filter_map(|step| match step {
                Step::Register(id, manifest) => Some((id.clone(), manifest.version.clone())),
                Step::Missing(_) | Step::Install(_) | Step::Clean(_) => None,
            }).collect();
            for (id, version) in &registered {
                let installed = survey.installs.iter().any(|(known, _)| known == id);
                let folder = survey.folders.iter().find(|folder| folder.name == id.as_str()).unwrap();
                prop_assert!(!installed && !folder.is_link && !folder.has_record);
                prop_assert!(folder.versions.iter().any(|found| found.name == *version && found.manifest.is_ok()));
            }
            let count = registered.len();
            registered.dedup_by(|a, b| a.0 == b.0);
            prop_assert_eq!(registered.len(), count);
            let of_folders: usize = survey.folders.iter()
                .filter(|folder| !survey.installs.iter().any(|(id, _)| id.as_str() == folder.name))
                .map(|folder| match folder.is_link || folder.has_record || PluginId::new(&folder.name).is_err() {
                    true => usize::from(folder.is_link || !folder.versions.is_empty()),
                    false => folder.versions.len(),
                }).sum();
            prop_assert_eq!(plan.errors.len() + count, of_folders);
        }
    }
}
