//! The rows of the console's pages, from the catalog and the audit log.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_catalog::{GrantReport, Plugin, PluginFileStatus, PluginReport, ToolOffer};
use toolbay_console::{AuditLine, PluginRow, PluginStatus, ToolRow};
use toolbay_model::Limits;
use toolbay_model::text::clean_line;

use crate::call::service::CallService;
use crate::observe::audit_line::{render_details, text_field};
use crate::serve::grant_text;

/// Maximum size of a displayed line, in bytes. Parts of it come from plugins.
pub(super) const MAX_LINE_BYTES: usize = 2_000;

/// Returns the row of a plugin in the list. `plugin` is `None` if no version of it is in service.
pub(super) fn plugin_row(
    service: &CallService,
    id: &str,
    report: &PluginReport,
    plugin: Option<&Arc<Plugin>>,
) -> PluginRow {
    let suspended = plugin.is_some_and(|plugin| {
        service
            .admission()
            .activity(plugin)
            .suspension
            .is_suspended()
    });
    PluginRow {
        id: id.to_owned(),
        status: match report.status {
            PluginFileStatus::Loading => PluginStatus::Loading,
            PluginFileStatus::Ready | PluginFileStatus::Stale if suspended => {
                PluginStatus::Suspended
            }
            PluginFileStatus::Ready => PluginStatus::Ready,
            PluginFileStatus::Stale => PluginStatus::Stale,
            PluginFileStatus::Refused => PluginStatus::Refused,
        },
        purpose: report.about.clone(),
        tools: report.tools.len(),
        problems: report
            .problems
            .iter()
            .map(|problem| clean_line(problem, MAX_LINE_BYTES))
            .collect(),
        permissions: report
            .grant
            .iter()
            .flat_map(grant_text::permission_lines)
            .map(|words| clean_line(&words, MAX_LINE_BYTES))
            .collect(),
    }
}

/// Returns the row of a tool in the list.
pub(super) fn tool_row(offer: &ToolOffer) -> ToolRow {
    ToolRow {
        name: offer.tool.name.clone(),
        plugin: offer.plugin.id.clone(),
        title: offer.tool.title.clone(),
        description: offer.tool.description.clone(),
        approval: offer.approval_policy().map(|asks| asks.to_string()),
    }
}

/// Returns the terms of a grant, except its permissions and the limits of a call, which are
/// displayed separately.
pub(super) fn grant_terms(grant: &GrantReport) -> Vec<String> {
    let prefix = grant
        .prefix
        .iter()
        .map(|prefix| format!("prefix: {prefix}"));
    prefix.chain(grant_text::term_lines(grant)).collect()
}

/// Returns all limits, with their values and whether they differ from the default.
pub(super) fn limit_rows(limits: &Limits) -> Vec<(String, String, bool)> {
    let amounts = limits.amounts().zip(Limits::DEFAULT.amounts());
    amounts
        .map(|((key, own), (_, default))| (key.to_owned(), own.to_string(), own != default))
        .collect()
}

/// Returns a line of the audit log for people.
pub(super) fn audit_line(bytes: &[u8]) -> AuditLine {
    let Ok(record) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
        return AuditLine {
            event: "damaged".to_owned(),
            details: clean_line(&String::from_utf8_lossy(bytes), MAX_LINE_BYTES),
            ..AuditLine::default()
        };
    };
    let field = |key| clean_line(text_field(&record, key), MAX_LINE_BYTES);
    AuditLine {
        time: field("time"),
        event: field("event"),
        outcome: field("outcome"),
        caller: field("caller"),
        plugin: field("plugin"),
        tool: field("tool"),
        details: render_details(&record),
    }
}
