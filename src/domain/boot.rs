//! What the browser application is told before anything else (contract/rest.md §10, frontend.md §1.1): where it is,
//! what the host offers, who is logged in, which plugins have a part in the page.
//!
//! Pure; the answer is put together in `http::boot`. It is open to everyone, so nothing here tells more of a plugin
//! than its name, the addresses of its files and its login buttons.

use std::collections::BTreeMap;

use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;

use super::{
    clean,
    id::PluginId,
    manifest::Manifest,
    principal::Principal,
    ui_file::{self, Style},
};

/// The format of the payload.
pub const VERSION: u32 = 1;

/// Longest path of a page, in bytes.
pub const MAX_PATH_BYTES: usize = 2048;

/// Longest name of a plugin or login button, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Everything at once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootPayload {
    /// The payload's format.
    pub version: u32,
    /// The page that is asked for.
    pub route: Route,
    /// Where the host answers.
    pub runtime: Runtime,
    /// The state that the page begins with.
    pub initial_state: InitialState,
    /// The active plugins with a bundle, by id; left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub plugins: Vec<PluginEntry>,
}

/// A page of the application.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = BootRoute)]
pub struct Route {
    /// One word for what is shown.
    pub kind: &'static str,
    /// The pattern, `/t/:taskId`; of an unknown page its path.
    pub route: String,
    /// The path.
    pub path: String,
    /// What stands at the pattern's names.
    pub params: BTreeMap<&'static str, String>,
}

/// Where the host answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BootRuntime)]
pub struct Runtime {
    /// Before the addresses of the API.
    pub api_prefix: &'static str,
    /// Where WebSockets connect.
    pub web_socket_path: &'static str,
    /// The language of the page.
    pub locale: &'static str,
}

impl Default for Runtime {
    fn default() -> Self {
        Self { api_prefix: "/api/v1", web_socket_path: "/ws", locale: "en" }
    }
}

/// What everyone may know of the state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BootInitialState)]
pub struct InitialState {
    /// What the host offers.
    pub features: Features,
    /// Who is logged in.
    pub auth: Auth,
}

/// What the host offers (platform-rest.md §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BootFeatures)]
pub struct Features {
    /// Pages of the office: there are none.
    pub office: bool,
    /// A login is needed.
    pub auth: bool,
    /// Plugins have a part in the page (`features.plugins`).
    pub plugins: bool,
    /// Not offered.
    pub dynamic_agent_routing: bool,
    /// Not offered.
    pub claude_background_prompt_handoff: bool,
    /// Not offered.
    pub claude_mid_turn_steering: bool,
}

impl Features {
    /// What this host offers; whether plugins have a part in the page is its operator's word.
    pub fn new(plugins: bool) -> Self {
        Self {
            office: false,
            auth: true,
            plugins,
            dynamic_agent_routing: false,
            claude_background_prompt_handoff: false,
            claude_mid_turn_steering: false,
        }
    }
}

/// Who is logged in.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BootAuth)]
pub struct Auth {
    /// `enabled`: who is not logged in is not let in.
    pub mode: &'static str,
    /// Whether the request proved who asks.
    pub authenticated: bool,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub user: Option<User>,
    /// The login buttons of plugins, for who is not logged in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub sso_providers: Vec<SsoProvider>,
}

/// A person.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = BootUser)]
pub struct User {
    /// Stable.
    pub id: &'static str,
    /// Empty when unknown.
    pub email: &'static str,
    /// For people.
    pub display_name: &'static str,
    /// `admin`.
    pub role: &'static str,
    /// `active`.
    pub status: &'static str,
}

/// A login button.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BootSsoProvider)]
pub struct SsoProvider {
    /// The provider's key.
    pub id: String,
    /// On the button.
    pub display_name: String,
    /// Where the login starts.
    pub initiate_url: String,
}

impl Auth {
    /// For who asks; `providers` are the login buttons there are.
    pub fn of(principal: Principal, providers: Vec<SsoProvider>) -> Self {
        let user = principal.user_id().map(|id| User {
            id,
            email: "",
            display_name: "Operator",
            role: "admin",
            status: "active",
        });
        let sso_providers = if user.is_some() { Vec::new() } else { providers };
        Self { mode: "enabled", authenticated: user.is_some(), user, sso_providers }
    }
}

/// A plugin's part in the page.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BootPluginEntry)]
pub struct PluginEntry {
    /// The plugin.
    pub id: String,
    /// For people.
    pub name: String,
    /// The script; another version has another address.
    pub bundle_url: String,
    /// Style sheets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub style_urls: Vec<String>,
    /// The repository providers that it may register; left out when any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub repository_provider_ids: Option<Vec<String>>,
}

impl PluginEntry {
    /// The part of an active plugin; `None` when it has no bundle, or one that is not served. Styles that are not
    /// served are left out.
    pub fn of(id: &PluginId, manifest: &Manifest) -> Option<Self> {
        ui_file::bundle(manifest).ok()?;
        let styles = manifest.ui.styles.iter().filter_map(|written| ui_file::style(manifest, written).ok());
        Some(Self {
            id: id.to_string(),
            name: clean::single_line(&manifest.display_name, MAX_NAME_BYTES),
            bundle_url: bundle_url(id.as_str(), manifest),
            style_urls: styles.map(|style| style_url(id.as_str(), &style)).collect(),
            repository_provider_ids: manifest.repository_providers.declared().map(<[String]>::to_vec),
        })
    }
}

/// How the page asks for a plugin's script.
pub fn bundle_url(id: &str, manifest: &Manifest) -> String {
    let version: String = form_urlencoded::byte_serialize(manifest.version.as_bytes()).collect();
    format!("/api/plugins/{id}/bundle?v={version}")
}

/// How the page asks for one of its style sheets.
pub fn style_url(id: &str, style: &Style) -> String {
    format!("/api/plugins/{id}/ui{}", style.address)
}

/// The login buttons of an active plugin: it must have the capability `auth`, and a button without a webhook leads
/// nowhere.
pub fn sso_providers<'a>(id: &'a PluginId, manifest: &'a Manifest) -> impl Iterator<Item = SsoProvider> + 'a {
    let has_webhook = |key: &str| manifest.webhooks.iter().any(|webhook| webhook.key == key);
    let providers = manifest.auth_providers.iter().filter(move |provider| has_webhook(&provider.initiate));
    providers.filter(|_| manifest.capabilities.auth).map(move |provider| SsoProvider {
        id: clean::single_line(&provider.id, MAX_NAME_BYTES),
        display_name: clean::single_line(&provider.display_name, MAX_NAME_BYTES),
        initiate_url: format!("/api/plugins/{id}/webhooks/{}", provider.initiate),
    })
}

/// The pages that are known, the more special first.
const PAGES: &[(&str, &str)] = &[
    ("home", "/"),
    ("task", "/t/:taskId"),
    ("plugins", "/settings/plugins"),
    ("plugin", "/settings/plugins/:pluginId"),
    ("settings", "/settings"),
    ("settings", "/settings/*"),
];

/// Why no page has such a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It begins with something else.
    #[error("path must begin with a slash")]
    NoSlash,
    /// It is longer than any page's.
    #[error("path must have at most {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// No page's has any.
    #[error("path must not have control characters")]
    Control,
}

impl Route {
    /// The page at a path, which may have a query behind it.
    pub fn at(address: &str) -> Result<Self, PathFault> {
        let path = address.split(['?', '#']).next().unwrap_or_default();
        if !path.starts_with('/') {
            return Err(PathFault::NoSlash);
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(PathFault::TooLong);
        }
        if path.contains(char::is_control) {
            return Err(PathFault::Control);
        }
        let known = PAGES.iter().find_map(|(kind, route)| Some((*kind, *route, params(route, path)?)));
        let (kind, route, params) = known.unwrap_or(("page", path, BTreeMap::new()));
        Ok(Self { kind, route: route.to_owned(), path: path.to_owned(), params })
    }
}

/// What stands at the names of a pattern; `None` when the path is another one.
fn params(route: &'static str, path: &str) -> Option<BTreeMap<&'static str, String>> {
    let mut params = BTreeMap::new();
    let mut parts = path.trim_end_matches('/').split('/');
    for wanted in route.trim_end_matches('/').split('/') {
        if wanted == "*" {
            return parts.next().map(|_| params);
        }
        let part = parts.next()?;
        match wanted.strip_prefix(':') {
            Some(name) if !part.is_empty() => drop(params.insert(name, part.to_owned())),
            Some(_) => return None,
            None if wanted != part => return None,
            None => {}
        }
    }
    parts.next().is_none().then_some(params)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::manifest;

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "{{id: acme, api_version: 1, version: 1.0+b&1, display_name: Acme, webhooks: [{{key: login}}],
              runtime: {{type: binary, executables: {{linux-amd64: server/p}}}}{more}}}"
        );
        manifest::parse(text.as_bytes()).unwrap().manifest
    }

    #[test]
    fn a_plugin_is_told_with_its_version_in_the_address_and_what_it_says_only() {
        let bare = PluginEntry::of(&acme(), &manifest(", ui: {bundle: /ui/b.js}"));
        let bundle = "/api/plugins/acme/bundle?v=1.0%2Bb%261";
        assert_eq!(serde_json::to_value(bare).unwrap(), json!({"id": "acme", "name": "Acme", "bundleUrl": bundle}));
        let all = manifest(", repository_providers: [], ui: {bundle: /ui/b.js, styles: [/ui/a.css, /b.css]}");
        assert_eq!(
            serde_json::to_value(PluginEntry::of(&acme(), &all)).unwrap(),
            json!({"id": "acme", "name": "Acme", "bundleUrl": bundle, "repositoryProviderIds": [],
                "styleUrls": ["/api/plugins/acme/ui/ui/a.css", "/api/plugins/acme/ui/b.css"]})
        );
        assert_eq!(PluginEntry::of(&acme(), &manifest("")), None);
    }

    #[test]
    fn what_is_not_served_has_no_address_in_the_page() {
        for bundle in ["/manifest.yaml", "/../b.js", "/server/p"] {
            assert_eq!(PluginEntry::of(&acme(), &manifest(&format!(", ui: {{bundle: {bundle}}}"))), None, "{bundle}");
        }
        let styles = r"[/../../evil1.yml, /%2e%2e/%2E./evil2.css, /manifest.yaml, '/..\..\evil3.css', //ui//a.css,
            /./ui/b%20c.css?x=1]";
        let entry = PluginEntry::of(&acme(), &manifest(&format!(", ui: {{bundle: /ui/b.js, styles: {styles}}}")));
        let urls = ["/api/plugins/acme/ui/ui/a.css", "/api/plugins/acme/ui/ui/b%20c.css?x=1"].map(str::to_owned);
        assert_eq!(entry.map(|entry| entry.style_urls), Some(urls.to_vec()));
    }

    #[test]
    fn a_login_button_needs_the_capability_and_a_webhook() {
        let providers = "auth_providers: [{id: sso, display_name: Acme SSO, initiate: login}, {id: x, initiate: none}]";
        let of = |more: &str| sso_providers(&acme(), &manifest(more)).collect::<Vec<_>>();
        let expected = SsoProvider {
            id: "sso".to_owned(),
            display_name: "Acme SSO".to_owned(),
            initiate_url: "/api/plugins/acme/webhooks/login".to_owned(),
        };
        assert_eq!(of(&format!(", capabilities: {{auth: true}}, {providers}")), [expected]);
        assert_eq!(of(&format!(", {providers}")), []);
    }

    #[test]
    fn who_is_logged_in_sees_himself_and_others_the_buttons() {
        let button = || SsoProvider { id: "s".into(), display_name: "S".into(), initiate_url: "/x".into() };
        let anonymous = serde_json::to_value(Auth::of(Principal::Anonymous, vec![button()])).unwrap();
        let buttons = json!([{"id": "s", "displayName": "S", "initiateUrl": "/x"}]);
        assert_eq!(anonymous, json!({"mode": "enabled", "authenticated": false, "ssoProviders": buttons}));
        let operator = serde_json::to_value(Auth::of(Principal::Operator, vec![button()])).unwrap();
        let user =
            json!({"id": "operator", "email": "", "display_name": "Operator", "role": "admin", "status": "active"});
        assert_eq!(operator, json!({"mode": "enabled", "authenticated": true, "user": user}));
    }

    #[test]
    fn a_page_is_found_by_its_path() {
        for (address, kind, route, params) in [
            ("/", "home", "/", json!({})),
            ("/t/task-1?tab=x", "task", "/t/:taskId", json!({"taskId": "task-1"})),
            ("/settings/plugins/", "plugins", "/settings/plugins", json!({})),
            ("/settings/plugins/acme#top", "plugin", "/settings/plugins/:pluginId", json!({"pluginId": "acme"})),
            ("/settings/a/b/c", "settings", "/settings/*", json!({})),
            ("/t/", "page", "/t/", json!({})),
            ("/acme/board", "page", "/acme/board", json!({})),
        ] {
            let found = Route::at(address).unwrap();
            let shown = (found.kind, found.route.as_str(), serde_json::to_value(&found.params).unwrap());
            assert_eq!(shown, (kind, route, params), "{address}");
        }
        for address in ["", "t/1", "?x", "https://evil.test/"] {
            assert_eq!(Route::at(address), Err(PathFault::NoSlash), "{address}");
        }
        for address in ["/a\nb", "/\0", "/\u{85}"] {
            assert_eq!(Route::at(address), Err(PathFault::Control), "{address:?}");
        }
        assert_eq!(Route::at(&format!("/{}", "x".repeat(MAX_PATH_BYTES))), Err(PathFault::TooLong));
    }
}
