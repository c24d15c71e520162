//! Items of the operator's inbox and what becomes of them: one item for each incident of a plugin, from its failure to
//! its recovery (contract/lifecycle.md §8, shape of platform-rest.md §10).
//!
//! Owns the shape and the decisions; rows are `store::inbox`'s, following the events is `platform::inbox`'s part.
//! `update` has the items about newer versions.

mod update;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

pub use update::{PLUGIN_UPDATE, Update, UpdateEnd, UpdateNews};

use super::{
    id::PluginId,
    lifecycle_event::{Change, Phase, Standing},
    record::Status,
};

/// `type` of the items about plugins that do not run.
pub const PLUGIN_UNREACHABLE: &str = "plugin_unreachable";

/// `entity_type` of those items.
pub const PLUGIN: &str = "plugin";

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = InboxItemStatus)]
pub enum ItemStatus {
    /// The incident lasts.
    Open,
    /// It is over.
    Resolved,
    /// The operator does not want to see it; the incident may last.
    Dismissed,
}

impl ItemStatus {
    /// Every status, in the order of its life.
    pub const ALL: [Self; 3] = [Self::Open, Self::Resolved, Self::Dismissed];

    /// The word of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Dismissed => "dismissed",
        }
    }

    /// The status of this word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// An item, as REST shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = InboxItem)]
pub struct Item {
    /// Ordered by the time of making.
    pub id: Uuid,
    /// What kind of item: `plugin_unreachable`, `plugin_update_available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One line.
    pub title: String,
    /// The diagnostic: one redacted line.
    pub description: Option<String>,
    /// Where it stands.
    pub status: ItemStatus,
    /// Whether it was read.
    pub read: bool,
    /// What it is about: the plugin's id.
    pub entity_id: String,
    /// `plugin`.
    pub entity_type: String,
    /// More about the incident, an object.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// When the incident began, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Last change, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// When the incident ended, UTC; `null` while it lasts.
    #[serde(with = "time::serde::rfc3339::option")]
    pub resolved_at: Option<OffsetDateTime>,
}

/// What is known of an incident now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Version that failed.
    pub version: String,
    /// The diagnostic.
    pub reason: Option<String>,
    /// Whether the host tries again by itself.
    pub restarting: bool,
    /// Successful automatic restarts.
    pub restart_count: u64,
    /// When this was so.
    pub at: OffsetDateTime,
}

/// How an incident ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The plugin is active.
    Recovered,
    /// An operator turned it off.
    Disabled,
    /// It is gone.
    Uninstalled,
}

/// What a piece of news means for the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// An incident began or goes on.
    Failed(Incident),
    /// No incident lasts.
    Over(End, OffsetDateTime),
}

impl News {
    /// What a lifecycle event means; nothing for `registered`: whether the plugin runs again is not known yet.
    pub fn of_change(change: &Change) -> Option<Self> {
        match change.to {
            Phase::Registered => None,
            Phase::Active => Some(Self::Over(End::Recovered, change.at)),
            Phase::Disabled => Some(Self::Over(End::Disabled, change.at)),
            Phase::Uninstalled => Some(Self::Over(End::Uninstalled, change.at)),
            Phase::Error | Phase::Restarting => Some(Self::Failed(Incident {
                version: change.version.clone(),
                reason: change.reason.clone(),
                restarting: change.restarting,
                restart_count: change.restart_count,
                at: change.at,
            })),
        }
    }

    /// What it means that a plugin stands so (`None`: is not installed). With `booting` the standing is what an earlier
    /// host wrote: an active plugin is about to be started, and its event will tell.
    pub fn of_standing(standing: Option<&Standing>, booting: bool, now: OffsetDateTime) -> Option<Self> {
        let Some(standing) = standing else { return Some(Self::Over(End::Uninstalled, now)) };
        match standing.status {
            Status::Registered => None,
            Status::Active if booting => None,
            Status::Active => Some(Self::Over(End::Recovered, now)),
            Status::Disabled => Some(Self::Over(End::Disabled, now)),
            Status::Error => Some(Self::Failed(Incident {
                version: standing.version.clone(),
                reason: standing.last_error.clone(),
                restarting: standing.restarting,
                restart_count: standing.restart_count,
                at: standing.last_error_at.unwrap_or(now),
            })),
        }
    }
}

impl Item {
    /// The item of an incident that begins.
    pub fn new(id: Uuid, plugin: &PluginId, incident: &Incident) -> Self {
        let mut item = Self {
            id,
            kind: PLUGIN_UNREACHABLE.to_owned(),
            title: format!("Plugin {plugin} is unreachable"),
            description: None,
            status: ItemStatus::Open,
            read: false,
            entity_id: plugin.as_str().to_owned(),
            entity_type: PLUGIN.to_owned(),
            payload: Value::Null,
            created_at: to_millis(incident.at),
            updated_at: to_millis(incident.at),
            resolved_at: None,
        };
        item.note(incident);
        item
    }

    /// Whether the incident lasts, dismissed or not.
    pub fn lasts(&self) -> bool {
        self.resolved_at.is_none()
    }

    /// The incident goes on; the item stays read or dismissed when it was.
    pub fn note(&mut self, incident: &Incident) {
        let Incident { version, reason, restarting, restart_count, at } = incident;
        self.description.clone_from(reason);
        self.payload = json!({"version": version, "restarting": restarting, "restart_count": restart_count});
        self.updated_at = to_millis(*at).max(self.created_at);
    }

    /// The incident is over.
    pub fn end(&mut self, end: End, at: OffsetDateTime) {
        if self.status == ItemStatus::Open {
            self.status = ItemStatus::Resolved;
        }
        if let Value::Object(payload) = &mut self.payload {
            payload.insert("restarting".to_owned(), json!(false));
            payload.insert("resolution".to_owned(), json!(end));
        }
        self.updated_at = to_millis(at).max(self.created_at);
        self.resolved_at = Some(self.updated_at);
    }

    /// The operator has read it.
    pub fn mark_read(&mut self) {
        self.read = true;
    }

    /// The operator does not want to see it any more, whatever becomes of the incident.
    pub fn dismiss(&mut self, at: OffsetDateTime) {
        if self.status != ItemStatus::Dismissed {
            self.status = ItemStatus::Dismissed;
            self.updated_at = to_millis(at).max(self.created_at);
        }
        self.read = true;
    }
}

/// As fine as every database keeps it.
fn to_millis(at: OffsetDateTime) -> OffsetDateTime {
    at.replace_millisecond(at.millisecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    const AT: OffsetDateTime = datetime!(2026-11-29 12:00 UTC);
    const LATER: OffsetDateTime = datetime!(2026-11-29 13:00 UTC);

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn incident(reason: &str, restarting: bool) -> Incident {
        let (version, reason) = ("1.0.0".to_owned(), Some(reason.to_owned()));
        Incident { version, reason, restarting, restart_count: 2, at: AT }
    }

    #[test]
    fn an_item_has_the_shape_of_the_contract() {
        let mut item = Item::new(Uuid::nil(), &acme(), &incident("boom", true));
        let shown = json!({"id": "00000000-0000-0000-0000-000000000000", "type": "plugin_unreachable",
            "title": "Plugin acme is unreachable", "description": "boom", "status": "open", "read": false,
            "entity_id": "acme", "entity_type": "plugin",
            "payload": {"version": "1.0.0", "restarting": true, "restart_count": 2},
            "created_at": "2026-11-29T12:00:00Z", "updated_at": "2026-11-29T12:00:00Z", "resolved_at": null});
        assert_eq!(serde_json::to_value(&item).unwrap(), shown);
        item.end(End::Recovered, LATER);
        assert_eq!((item.status, item.resolved_at, item.lasts()), (ItemStatus::Resolved, Some(LATER), false));
        assert_eq!(item.payload["resolution"], "recovered");
        assert_eq!(item.payload["restarting"], false);
    }

    #[test]
    fn a_dismissed_item_stays_dismissed_when_its_incident_goes_on_and_ends() {
        let mut item = Item::new(Uuid::nil(), &acme(), &incident("boom", true));
        item.dismiss(LATER);
        item.note(&incident("boom again", false));
        assert!(item.lasts() && item.read && item.status == ItemStatus::Dismissed);
        item.end(End::Disabled, LATER);
        assert_eq!((item.status, item.resolved_at), (ItemStatus::Dismissed, Some(LATER)));
    }

    #[test]
    fn every_phase_has_its_meaning() {
        let change = |to| Change {
            plugin_id: acme(),
            version: "1.0.0".to_owned(),
            from: None,
            to,
            restarting: true,
            restart_count: 2,
            reason: Some("boom".to_owned()),
            at: AT,
        };
        let news = |to| News::of_change(&change(to));
        assert_eq!(news(Phase::Registered), None);
        for failed in [Phase::Error, Phase::Restarting] {
            assert_eq!(news(failed), Some(News::Failed(incident("boom", true))));
        }
        assert_eq!(news(Phase::Active), Some(News::Over(End::Recovered, AT)));
        assert_eq!(news(Phase::Disabled), Some(News::Over(End::Disabled, AT)));
        assert_eq!(news(Phase::Uninstalled), Some(News::Over(End::Uninstalled, AT)));
    }

    #[test]
    fn an_active_record_of_an_earlier_host_ends_nothing_yet() {
        let standing = |status| Standing {
            version: "1.0.0".to_owned(),
            status,
            restarting: true,
            restart_count: 2,
            last_error: Some("boom".to_owned()),
            last_error_at: Some(AT),
        };
        let news = |status, booting| News::of_standing(Some(&standing(status)), booting, LATER);
        assert_eq!(news(Status::Active, true), None);
        assert_eq!(news(Status::Active, false), Some(News::Over(End::Recovered, LATER)));
        for booting in [true, false] {
            assert_eq!(news(Status::Registered, booting), None);
            assert_eq!(news(Status::Disabled, booting), Some(News::Over(End::Disabled, LATER)));
            assert_eq!(news(Status::Error, booting), Some(News::Failed(incident("boom", true))));
            assert_eq!(News::of_standing(None, booting, LATER), Some(News::Over(End::Uninstalled, LATER)));
        }
    }

    #[test]
    fn words_and_statuses_belong_together() {
        assert!(ItemStatus::ALL.into_iter().all(|status| ItemStatus::of(status.as_str()) == Some(status)));
        assert_eq!(ItemStatus::of("closed"), None);
    }

    proptest! {
        #[test]
        fn whatever_happens_an_item_begins_before_it_changes_and_ends(
            steps in prop::collection::vec((0u8..4, -100i64..100), 0..20)
        ) {
            let mut item = Item::new(Uuid::nil(), &acme(), &incident("x", true));
            for (step, minutes) in steps {
                let at = AT + time::Duration::minutes(minutes);
                match step {
                    0 => item.note(&Incident { at, ..incident("y", false) }),
                    1 => item.end(End::Recovered, at),
                    2 => item.dismiss(at),
                    _ => item.mark_read(),
                }
                prop_assert!(item.created_at <= item.updated_at);
                prop_assert!(item.resolved_at.is_none_or(|end| end >= item.created_at));
                prop_assert!(item.lasts() || item.status != ItemStatus::Open);
            }
        }
    }
}
