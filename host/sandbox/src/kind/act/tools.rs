//! Converts the tools that a guest lists.

use std::time::Duration;

use toolbay_model::text::clean_line;
use toolbay_model::{ComponentDescription, EffectHints, Limits, ToolDefinition};

use super::hints;
use super::types::{self, ActMetadata};

/// Maximum size of a tool's name in a remark, in bytes.
const MAX_TOOL_NAME_BYTES: usize = 200;

/// Maximum number of remarks.
const MAX_REMARKS: usize = 10;

/// Converts a guest's list of tools to the host's description.
pub(super) fn convert_tools(listed: Vec<types::ToolDefinition>) -> ComponentDescription {
    let mut remarks = ActToolRemarks::default();
    let tools = listed
        .into_iter()
        .map(|tool| convert_tool(tool, &mut remarks))
        .collect();
    ComponentDescription {
        tools,
        remarks: remarks.finish(),
        ..ComponentDescription::default()
    }
}

fn convert_tool(tool: types::ToolDefinition, remarks: &mut ActToolRemarks) -> ToolDefinition {
    let types::ToolDefinition {
        name,
        description,
        parameters_schema,
        metadata,
    } = tool;
    let mut flag = |key| remarks.ok_or_remark(&name, hints::read_flag(&metadata, key));
    let [read_only, destructive, idempotent] =
        ["std:read-only", "std:destructive", "std:idempotent"].map(&mut flag);
    let has_hints = read_only.or(destructive).or(idempotent).is_some();
    let annotations = has_hints.then_some(EffectHints {
        read_only,
        destructive,
        idempotent,
        open_world: None,
    });
    let mut text = |key| remarks.ok_or_remark(&name, hints::read_text(&metadata, key));
    let advice = ["std:usage-hints", "std:anti-usage-hints"]
        .map(&mut text)
        .into_iter()
        .flatten();
    let paragraphs: Vec<String> = std::iter::once(description.into_text())
        .chain(advice)
        .collect();
    let paragraphs: Vec<&str> = paragraphs
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    if let Some(timeout) = declared_timeout(&metadata) {
        let timeout_text = humantime::format_duration(timeout);
        remarks.add(
            &name,
            &format!(
                "it declares a timeout of {timeout_text} (std:timeout-ms), but limits.timeout applies"
            ),
        );
    }
    ToolDefinition {
        name,
        description: (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n")),
        input_schema: parameters_schema,
        annotations,
        ..ToolDefinition::default()
    }
}

/// Returns the duration that a tool declares, if it exceeds the default timeout of a call.
fn declared_timeout(metadata: &ActMetadata) -> Option<Duration> {
    let milliseconds = hints::read_number(metadata, "std:timeout-ms")?;
    let timeout = Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?;
    (timeout > Limits::DEFAULT.timeout).then_some(timeout)
}

/// Remarks on the metadata of tools.
#[derive(Default)]
struct ActToolRemarks {
    remarks: Vec<String>,
    /// The number of omitted remarks: those beyond [`MAX_REMARKS`].
    omitted_count: u32,
}

impl ActToolRemarks {
    /// Returns the value, or adds a remark if it could not be read.
    fn ok_or_remark<T>(&mut self, tool: &str, value: Result<Option<T>, String>) -> Option<T> {
        value.unwrap_or_else(|why| {
            self.add(tool, &format!("part of its metadata is not used: {why}"));
            None
        })
    }

    fn add(&mut self, tool: &str, remark: &str) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push(format!(
                "tool {:?}: {remark}",
                clean_line(tool, MAX_TOOL_NAME_BYTES)
            ));
        } else {
            self.omitted_count += 1;
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.omitted_count > 0 {
            self.remarks.push(format!(
                "there are {} more remarks on metadata of tools",
                self.omitted_count
            ));
        }
        self.remarks
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kind::act::types::LocalizedString;
    use crate::reply::cbor;

    fn tool(metadata: &[(&str, Value)]) -> types::ToolDefinition {
        let entry =
            |(key, value): &(&str, Value)| ((*key).to_owned(), cbor::from_json(value).unwrap());
        types::ToolDefinition {
            name: "a".into(),
            description: LocalizedString::Plain("Does a.".into()),
            parameters_schema: "{}".into(),
            metadata: metadata.iter().map(entry).collect(),
        }
    }

    #[test]
    fn hints_become_annotations_and_advice_part_of_the_description() {
        let plain = convert_tools(vec![tool(&[])]);
        let [plain] = plain.tools.as_slice() else {
            panic!("{plain:?}")
        };
        assert_eq!(
            (plain.description.as_deref(), &plain.annotations),
            (Some("Does a."), &None)
        );
        let hinted = tool(&[
            ("std:read-only", json!(true)),
            ("std:destructive", json!(false)),
            (
                "std:usage-hints",
                json!({"de": "Für a.", "en": "Use it for a."}),
            ),
            ("std:anti-usage-hints", json!("Not for b.")),
            ("acme:other", json!([1])),
        ]);
        let hinted = convert_tools(vec![hinted]);
        assert_eq!(hinted.remarks, [""; 0]);
        let [hinted] = hinted.tools.as_slice() else {
            panic!("{hinted:?}")
        };
        assert_eq!(
            hinted.description.as_deref(),
            Some("Does a.\n\nUse it for a.\n\nNot for b.")
        );
        let annotations = hinted.annotations.as_ref().unwrap();
        let hints = (
            annotations.read_only,
            annotations.destructive,
            annotations.idempotent,
            annotations.open_world,
        );
        assert_eq!(hints, (Some(true), Some(false), None, None));
    }

    #[test]
    fn unusable_metadata_is_remarked_a_few_times() {
        let odd = tool(&[
            ("std:read-only", json!(1)),
            ("std:timeout-ms", json!(3_600_000)),
        ]);
        assert_eq!(
            convert_tools(vec![odd]).remarks,
            [
                "tool \"a\": part of its metadata is not used: std:read-only is neither true nor false",
                "tool \"a\": it declares a timeout of 1h (std:timeout-ms), but limits.timeout applies",
            ]
        );
        let many = (0..12)
            .map(|_| tool(&[("std:read-only", json!(1))]))
            .collect();
        let remarks = convert_tools(many).remarks;
        assert_eq!(
            (remarks.len(), remarks.last().unwrap().as_str()),
            (11, "there are 2 more remarks on metadata of tools")
        );
    }
}
