//! Items about newer versions that the marketplace offers: one for each version, until it is installed or offered no
//! more.

use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Item, ItemStatus, PLUGIN, to_millis};
use crate::domain::{id::PluginId, version::compare};

/// `type` of the items about newer versions.
pub const PLUGIN_UPDATE: &str = "plugin_update_available";

/// A version that is newer than the installed one. Texts are cleaned and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The version that is installed.
    pub installed: String,
    /// The newer one.
    pub offered: String,
    /// The name of the source that offers it.
    pub source: String,
    /// Why it is not installed automatically although it should be; one line.
    pub obstacle: Option<String>,
    /// When this was so.
    pub at: OffsetDateTime,
}

/// How it ended that a version was newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateEnd {
    /// It, or a newer one, is installed.
    Updated,
    /// A newer one is offered.
    Superseded,
    /// No source offers it any more.
    Withdrawn,
    /// The plugin is gone.
    Uninstalled,
}

impl UpdateEnd {
    /// What became of the version `awaited`, now that nothing newer than the installed one is offered. `complete` says
    /// whether every source has told what it offers; while one has not, a version that is still the newer one may be
    /// its: `None`.
    pub fn of(awaited: &str, installed: &str, complete: bool) -> Option<Self> {
        match (compare(awaited, installed).is_gt(), complete) {
            (false, _) => Some(Self::Updated),
            (true, true) => Some(Self::Withdrawn),
            (true, false) => None,
        }
    }
}

/// What is known of a plugin's versions now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateNews {
    /// A newer version is offered.
    Offered(Update),
    /// None is.
    Over(UpdateEnd, OffsetDateTime),
}

impl Item {
    /// The item of a version that is newer.
    pub fn of_update(id: Uuid, plugin: &PluginId, update: &Update) -> Self {
        let mut item = Self {
            id,
            kind: PLUGIN_UPDATE.to_owned(),
            title: format!("Plugin {plugin} can be updated to {}", update.offered),
            description: None,
            status: ItemStatus::Open,
            read: false,
            entity_id: plugin.as_str().to_owned(),
            entity_type: PLUGIN.to_owned(),
            payload: Value::Null,
            created_at: to_millis(update.at),
            updated_at: to_millis(update.at),
            resolved_at: None,
        };
        item.describe_update(update);
        item
    }

    /// Whether the item is about this version.
    pub fn offers(&self, version: &str) -> bool {
        self.payload["offered"] == version
    }

    /// The same version is still offered; whether the item says something else now. It stays read or dismissed when it
    /// was.
    pub fn note_update(&mut self, update: &Update) -> bool {
        let before = (self.description.clone(), self.payload.clone());
        self.describe_update(update);
        let changed = before != (self.description.clone(), self.payload.clone());
        if changed {
            self.updated_at = to_millis(update.at).max(self.created_at);
        }
        changed
    }

    /// The version is not offered any more, or not newer.
    pub fn end_update(&mut self, end: UpdateEnd, at: OffsetDateTime) {
        if self.status == ItemStatus::Open {
            self.status = ItemStatus::Resolved;
        }
        if let Value::Object(payload) = &mut self.payload {
            payload.insert("resolution".to_owned(), json!(end));
        }
        self.updated_at = to_millis(at).max(self.created_at);
        self.resolved_at = Some(self.updated_at);
    }

    fn describe_update(&mut self, update: &Update) {
        let Update { installed, offered, source, obstacle, at: _ } = update;
        self.description = Some(match obstacle {
            None => format!("{installed} is installed; {source} offers {offered}"),
            Some(obstacle) => {
                format!("{installed} is installed; {offered} was not installed automatically: {obstacle}")
            }
        });
        self.payload = json!({"installed": installed, "offered": offered, "source": source, "obstacle": obstacle});
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const AT: OffsetDateTime = datetime!(2026-11-29 12:00 UTC);
    const LATER: OffsetDateTime = datetime!(2026-11-29 13:00 UTC);

    fn update(obstacle: Option<&str>) -> Update {
        let text = str::to_owned;
        let (installed, offered, source) = (text("1.0.0"), text("1.1.0"), text("Acme"));
        Update { installed, offered, source, obstacle: obstacle.map(text), at: LATER }
    }

    #[test]
    fn an_item_tells_both_versions_and_who_offers_the_newer_one() {
        let acme = PluginId::new("acme").unwrap();
        let item = Item::of_update(Uuid::nil(), &acme, &Update { at: AT, ..update(None) });
        let shown = json!({"id": "00000000-0000-0000-0000-000000000000", "type": "plugin_update_available",
            "title": "Plugin acme can be updated to 1.1.0",
            "description": "1.0.0 is installed; Acme offers 1.1.0", "status": "open", "read": false,
            "entity_id": "acme", "entity_type": "plugin",
            "payload": {"installed": "1.0.0", "offered": "1.1.0", "source": "Acme", "obstacle": null},
            "created_at": "2026-11-29T12:00:00Z", "updated_at": "2026-11-29T12:00:00Z", "resolved_at": null});
        assert_eq!(serde_json::to_value(&item).unwrap(), shown);
        assert!(item.offers("1.1.0") && !item.offers("1.1") && !item.offers("null"));
    }

    #[test]
    fn the_same_news_changes_nothing_and_an_obstacle_is_told_once() {
        let acme = PluginId::new("acme").unwrap();
        let mut item = Item::of_update(Uuid::nil(), &acme, &Update { at: AT, ..update(None) });
        item.dismiss(AT);
        let same = item.clone();
        assert!(!item.note_update(&update(None)));
        assert_eq!(item, same);
        assert!(item.note_update(&update(Some("it is unsigned"))));
        assert_eq!((item.status, item.updated_at), (ItemStatus::Dismissed, LATER));
        let text = "1.0.0 is installed; 1.1.0 was not installed automatically: it is unsigned";
        assert_eq!(item.description.as_deref(), Some(text));
        assert!(!item.note_update(&update(Some("it is unsigned"))));
    }

    #[test]
    fn a_version_that_is_not_installed_was_withdrawn_when_every_source_has_told() {
        for (installed, complete, end) in [
            ("1.1.0", true, Some(UpdateEnd::Updated)),
            ("1.2.0", false, Some(UpdateEnd::Updated)),
            ("1.0.0", true, Some(UpdateEnd::Withdrawn)),
            ("1.0.0", false, None),
        ] {
            assert_eq!(UpdateEnd::of("1.1.0", installed, complete), end, "{installed} {complete}");
        }
    }

    #[test]
    fn an_open_item_is_resolved_and_a_dismissed_one_stays_dismissed() {
        let acme = PluginId::new("acme").unwrap();
        for (dismissed, status) in [(false, ItemStatus::Resolved), (true, ItemStatus::Dismissed)] {
            let mut item = Item::of_update(Uuid::nil(), &acme, &update(None));
            if dismissed {
                item.dismiss(LATER);
            }
            item.end_update(UpdateEnd::Superseded, AT);
            assert_eq!((item.status, item.lasts(), &item.payload["resolution"]), (status, false, &json!("superseded")));
            assert!(item.resolved_at >= Some(item.created_at));
        }
    }
}
