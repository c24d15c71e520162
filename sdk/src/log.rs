//! Log lines as hclog JSON on stderr, the form that go-plugin's hosts read: `@level`, `@message`, `@module`,
//! `@timestamp`, and the caller's fields beside them.
//!
//! Owns the line's form and bounds, and the line of a panic. Which lines are wanted is `Settings`.

use std::{fmt::Debug, io::Write as _, panic, sync::Once};

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    Layer, filter::LevelFilter, layer::Context, layer::SubscriberExt as _, registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::json::Object;

/// The longest text in a line, in bytes. A host takes lines of 64 KiB; a longer one is no JSON to it any more.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The most fields in a line; the first stay.
const MAX_FIELDS: usize = 32;

/// The longest line in bytes; of a longer one the fields are left out.
const MAX_LINE_BYTES: usize = 48 * 1024;

/// A `tracing` layer that writes hclog lines on stderr. [`serve`](crate::serve()) installs it unless the program has
/// installed a subscriber of its own, which can hold it:
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let subscriber = tracing_subscriber::registry().with(kandev_plugin_sdk::HclogLayer);
/// tracing::subscriber::with_default(subscriber, || tracing::info!(free = 3, "low disk"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct HclogLayer;

/// Logs by [`HclogLayer`] from `level` on, and panics too. Does nothing when the program has a subscriber.
pub(crate) fn install(level: LevelFilter) {
    let _ = tracing_subscriber::registry().with(HclogLayer.with_filter(level)).try_init();
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let at = info.location().map(ToString::to_string);
            tracing::error!(at, text = info.payload_as_str(), "panic");
        }));
    });
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for HclogLayer {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.add_missing(of_span);
            }
        }
        let metadata = event.metadata();
        let line = line(*metadata.level(), metadata.target(), fields, OffsetDateTime::now_utc());
        // Without a stderr there is nobody to tell. One write, so that lines stay whole.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// The line with its end.
fn line(level: Level, module: &str, fields: Fields, now: OffsetDateTime) -> String {
    let mut all = Object::new();
    let level = level.as_str().to_ascii_lowercase();
    all.insert("@level".into(), level.into());
    all.insert("@message".into(), fields.message.into());
    all.insert("@module".into(), module.into());
    // Fails for years beyond 9999 only, which no clock gives.
    all.insert("@timestamp".into(), now.format(&Rfc3339).unwrap_or_default().into());
    let head = all.clone();
    all.extend(fields.others);
    let mut line = Value::Object(all).to_string();
    if line.len() > MAX_LINE_BYTES {
        line = Value::Object(head).to_string();
    }
    line.push('\n');
    line
}

/// The fields of an event or span.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Object,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        let name = field.name();
        if name == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else if self.others.len() < MAX_FIELDS {
            // `@` names are hclog's own.
            self.others.insert(name.trim_start_matches('@').to_owned(), value);
        }
    }

    fn add_missing(&mut self, other: &Fields) {
        for (name, value) in &other.others {
            if self.others.len() < MAX_FIELDS && !self.others.contains_key(name) {
                self.others.insert(name.clone(), value.clone());
            }
        }
    }
}

fn bounded(text: &str) -> Value {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].into()
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, bounded(&format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, bounded(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(fields: Fields) -> Value {
        let text = line(Level::WARN, "demo::disk", fields, OffsetDateTime::UNIX_EPOCH);
        assert!(text.ends_with('\n') && text.matches('\n').count() == 1, "one line: {text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_has_hclogs_keys_and_the_callers_fields() {
        let others = Object::from_iter([("free".to_owned(), json!(3)), ("text".to_owned(), json!("a\nb"))]);
        let expected = json!({
            "@level": "warn", "@message": "low disk", "@module": "demo::disk", "@timestamp": "1970-01-01T00:00:00Z",
            "free": 3, "text": "a\nb",
        });
        assert_eq!(written(Fields { message: "low disk".into(), others }), expected);
    }

    #[test]
    fn a_line_that_would_be_too_long_keeps_its_head_only() {
        let long = "x".repeat(MAX_TEXT_BYTES);
        let others: Object = (0..MAX_FIELDS).map(|n| (n.to_string(), json!(long))).collect();
        let line = written(Fields { message: "m".into(), others });
        assert_eq!(line.as_object().map(Object::len), Some(4), "{line}");
    }
}
