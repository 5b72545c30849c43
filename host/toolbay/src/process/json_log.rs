//! Log lines as JSON objects (`log_format = "json"`).

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use toolbay_model::text::{bounded_line, escape_json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Maximum length of a message or field in the log, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 8_000;

/// Format of an event: one JSON object per line, with `time`, `level`, `target` and `message`, and
/// the fields of the event and of its spans as further members.
pub(super) struct JsonEventFormat;

impl<S, N> FormatEvent<S, N> for JsonEventFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut fields = JsonFieldVisitor::default();
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            if let Some(formatted) = extensions.get::<FormattedFields<N>>()
                && let Ok(Value::Object(members)) = serde_json::from_str(&formatted.fields)
            {
                fields.0.extend(members);
            }
        }
        event.record(&mut fields);
        let mut line = Map::new();
        // A field of an event never replaces these members.
        line.insert("time".to_owned(), time.into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        let message = fields.0.remove("message").unwrap_or_default();
        line.insert("message".to_owned(), message);
        for (name, value) in fields.0 {
            line.entry(name).or_insert(value);
        }
        writeln!(writer, "{}", escape_json(&Value::Object(line).to_string()))
    }
}

/// Collects fields as JSON members, with texts of bounded length.
#[derive(Default)]
struct JsonFieldVisitor(Map<String, Value>);

impl JsonFieldVisitor {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for JsonFieldVisitor {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, bounded_line(value, MAX_VALUE_BYTES));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.insert(
            field,
            bounded_line(format_args!("{value:?}"), MAX_VALUE_BYTES),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_event_is_one_json_object_with_the_fields_of_its_spans() {
        let buffer = Buffer::default();
        let lines = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(JsonEventFormat)
            .with_writer(move || lines.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("call", trace_id = "abc");
            let _entered = span.enter();
            tracing::warn!(
                fuel = 7_u64,
                time = "of a guest",
                tool = %"a\nb\u{1b}[31m\u{202e}c",
                "the call failed:\n{}",
                "x".repeat(2 * MAX_VALUE_BYTES)
            );
            tracing::info!("ready");
        });
        let text = String::from_utf8(buffer.0.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.is_ascii() || !text.contains('\u{202e}'));
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(first["level"], "WARN");
        assert_eq!(first["trace_id"], "abc");
        assert_eq!(first["fuel"], 7);
        assert_eq!(first["tool"], "a\\nbc");
        assert!(first["target"].as_str().unwrap().starts_with("toolbay"));
        assert_ne!(first["time"], "of a guest");
        let message = first["message"].as_str().unwrap();
        assert!(message.starts_with("the call failed:\\nxxx") && message.len() <= MAX_VALUE_BYTES);
    }
}
