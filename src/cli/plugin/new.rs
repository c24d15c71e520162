//! `plugin new`: a project that packs and installs at once, from templates in this program (`templates/`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::{
    cli::{error::CliError, output::Output},
    domain::id::PluginId,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin new my-plugin --lang go
  kandev-host plugin new my-plugin --lang rust --sdk-path ../kandev-host/sdk
  kandev-host plugin new my-plugin --lang rust --sdk-git https://git.example.test/kandev-host --folder /tmp/mine
  kandev-host plugin new my-plugin --lang python --sdk-path ../kandev-host/sdk-python
  cd my-plugin && make package && kandev-host plugin install my-plugin-0.1.0.tar.gz";

/// `new`.
#[derive(Args)]
pub struct New {
    /// The plugin's id: lower-case letters, digits, dots, dashes, underscores
    name: String,
    /// The language to write it in
    #[arg(long, value_enum)]
    lang: Language,
    /// Rust and Python: where the SDK lies on this machine, the folder `sdk` or `sdk-python` of the host's sources
    #[arg(long, value_name = "FOLDER", conflicts_with = "sdk_git")]
    sdk_path: Option<PathBuf>,
    /// Rust and Python: the repository that has the SDK
    #[arg(long, value_name = "URL")]
    sdk_git: Option<String>,
    /// The folder to make [default: the plugin's id, here]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// A language with templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    /// On the crate kandev-plugin-sdk
    Rust,
    /// On hashicorp/go-plugin, with the protocol's stubs
    Go,
    /// On the package kandev-plugin-sdk
    Python,
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// Rust or Python without an SDK.
    #[error("a plugin in Rust or Python needs the SDK: say where it is with --sdk-path FOLDER or --sdk-git URL")]
    NoSdk,
    /// Go with an SDK.
    #[error("--sdk-path and --sdk-git are for Rust and Python: a Go plugin has its stubs in the project")]
    SdkForGo,
    /// No SDK of the language there.
    #[error("{path} is not the SDK: it has no {file}; name the folder `{folder}` of the host's sources", path = .path.display())]
    NotAnSdk {
        /// What was named.
        path: PathBuf,
        /// The file that an SDK of the language has.
        file: &'static str,
        /// Where that SDK is.
        folder: &'static str,
    },
    /// Something is there.
    #[error("{path} exists and is not empty: choose another name or --folder", path = .0.display())]
    Exists(PathBuf),
    /// A file operation.
    #[error("could not write {path}: {source}", path = .path.display())]
    File {
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl NewError {
    /// Whether the arguments are at fault.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoSdk | Self::SdkForGo | Self::NotAnSdk { .. })
    }
}

/// Name in the project and content; `{{…}}` in templates is replaced.
type Template = (&'static str, &'static str);

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}

macro_rules! go_fixture {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/go/", $path))
    };
}

const RUST: [Template; 6] = [
    ("Cargo.toml", template!("rust/Cargo.toml.template")),
    ("src/main.rs", template!("rust/main.rs.template")),
    ("manifest.yaml", template!("manifest.yaml")),
    ("Makefile", template!("rust/Makefile")),
    ("README.md", template!("README.md")),
    (".gitignore", template!("gitignore")),
];

const GO: [Template; 6] = [
    ("go.mod", template!("go/go.mod.template")),
    ("main.go", template!("go/main.go.template")),
    ("manifest.yaml", template!("manifest.yaml")),
    ("Makefile", template!("go/Makefile")),
    ("README.md", template!("README.md")),
    (".gitignore", template!("gitignore")),
];

const PYTHON: [Template; 6] = [
    ("requirements.txt", template!("python/requirements.txt.template")),
    ("src/main.py", template!("python/main.py.template")),
    ("manifest.yaml", template!("manifest.yaml")),
    ("Makefile", template!("python/Makefile")),
    ("README.md", template!("README.md")),
    (".gitignore", template!("gitignore")),
];

/// Files that are taken as they are.
const GO_VERBATIM: [Template; 3] = [
    ("go.sum", go_fixture!("go.sum")),
    ("pluginv1/plugin.pb.go", go_fixture!("pluginv1/plugin.pb.go")),
    ("pluginv1/plugin_grpc.pb.go", go_fixture!("pluginv1/plugin_grpc.pb.go")),
];

/// JSON of the result.
#[derive(Serialize)]
struct Made {
    id: PluginId,
    lang: Language,
    folder: PathBuf,
    files: Vec<&'static str>,
}

/// Makes the project.
pub fn run(new: New, output: &Output) -> Result<(), CliError> {
    let id = PluginId::new(&new.name)?;
    let sdk = sdk(&new)?;
    let folder = new.folder.unwrap_or_else(|| PathBuf::from(id.as_str()));
    let replaced = [("{{id}}", id.as_str().to_owned()), ("{{crate}}", crate_name(&id)), ("{{sdk}}", sdk)];
    let (templates, verbatim): (&[Template], &[Template]) = match new.lang {
        Language::Rust => (&RUST, &[]),
        Language::Go => (&GO, &GO_VERBATIM),
        Language::Python => (&PYTHON, &[]),
    };
    claim(&folder)?;
    for (name, text) in templates {
        let text = replaced.iter().fold((*text).to_owned(), |text, (mark, value)| text.replace(mark, value));
        write(&folder.join(name), &text)?;
    }
    for (name, text) in verbatim {
        write(&folder.join(name), text)?;
    }
    let files = templates.iter().chain(verbatim).map(|(name, _)| *name).collect();
    let made = Made { id, lang: new.lang, folder, files };
    output.result(&made, || {
        let Made { id, folder, .. } = &made;
        let folder = folder.display();
        format!("made {folder}\nnext: cd {folder} && make package && kandev-host plugin install {id}-0.1.0.tar.gz")
    })
}

/// How the project names the SDK: the dependency's value in `Cargo.toml`, a line of `requirements.txt`; empty for Go.
fn sdk(new: &New) -> Result<String, NewError> {
    let toml = |key: &str, value: &str| format!("{{ {key} = {} }}", toml::Value::from(value));
    match (new.lang, &new.sdk_path, &new.sdk_git) {
        (Language::Go, None, None) => Ok(String::new()),
        (Language::Go, ..) => Err(NewError::SdkForGo),
        (Language::Rust, Some(path), _) => Ok(toml("path", &sdk_folder(path, "Cargo.toml", "sdk")?)),
        (Language::Rust, None, Some(url)) => Ok(toml("git", url)),
        (Language::Python, Some(path), _) => sdk_folder(path, "pyproject.toml", "sdk-python"),
        (Language::Python, None, Some(url)) => {
            let one_line = url.replace(char::is_control, "");
            Ok(format!("kandev-plugin-sdk @ git+{one_line}#subdirectory=sdk-python"))
        }
        (Language::Rust | Language::Python, None, None) => Err(NewError::NoSdk),
    }
}

/// The full path of the SDK's folder, which has this file.
fn sdk_folder(path: &Path, file: &'static str, folder: &'static str) -> Result<String, NewError> {
    if !path.join(file).is_file() {
        return Err(NewError::NotAnSdk { path: path.to_owned(), file, folder });
    }
    let full = fs::canonicalize(path).map_err(|source| NewError::File { path: path.to_owned(), source })?;
    Ok(full.to_string_lossy().into_owned())
}

/// A name that every language's tools take: ids may have dots and begin with a digit.
fn crate_name(id: &PluginId) -> String {
    format!("plugin-{}", id.as_str().replace('.', "-"))
}

/// The folder must be new or empty.
fn claim(folder: &Path) -> Result<(), NewError> {
    let failed = |source| NewError::File { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    match fs::read_dir(folder).map_err(failed)?.next() {
        Some(_) => Err(NewError::Exists(folder.to_owned())),
        None => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), NewError> {
    let failed = |source| NewError::File { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifest;

    #[test]
    fn every_mark_of_a_template_is_replaced() {
        for (name, text) in RUST.iter().chain(&GO).chain(&PYTHON) {
            let text = ["{{id}}", "{{crate}}", "{{sdk}}"]
                .iter()
                .fold((*text).to_owned(), |text, mark| text.replace(mark, "x"));
            assert!(!text.contains("{{"), "{name}");
        }
    }

    #[test]
    fn the_manifest_is_one_that_hosts_take_without_a_warning() {
        let text = template!("manifest.yaml").replace("{{id}}", "1.a_b-c");
        assert_eq!(manifest::parse(text.as_bytes()).unwrap().warnings, [""; 0]);
    }

    #[test]
    fn crate_names_begin_with_a_letter_and_have_no_dot() {
        assert_eq!(crate_name(&PluginId::new("1.a_b-c").unwrap()), "plugin-1-a_b-c");
    }
}
