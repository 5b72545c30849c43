//! The rows of the console's pages, from the catalog and the audit log.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Map, Value};
use toolbay_catalog::{Grant, GrantReport, Plugin, PluginFileStatus, PluginReport, ToolOffer};
use toolbay_console::{
    AuditLine, LimitRow, LimitSource, OfferRow, PluginRow, PluginStatus, ToolRow, UsageRow,
    UsageSummary,
};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_model::{CallUsage, Limits};

use crate::call::service::CallService;
use crate::limits::recent_usage::RecentUsage;
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
        is_held: report.held.is_some(),
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
pub(super) fn grant_terms(grant: &GrantReport, source: Option<&Grant>) -> Vec<String> {
    let prefix = grant
        .prefix
        .iter()
        .map(|prefix| format!("prefix: {prefix}"));
    let is_own_rate = source.is_some_and(|source| source.rate_limit.is_some());
    let rate = grant_text::rate_line(grant).map(|line| {
        if is_own_rate {
            line
        } else {
            format!("{line} (server default)")
        }
    });
    prefix
        .chain(grant_text::setting_lines(grant))
        .chain(rate)
        .chain(grant_text::tool_lines(grant))
        .collect()
}

/// Returns all limits, with the files that set them.
pub(super) fn limit_rows(limits: &Limits, source: Option<&Grant>) -> Vec<LimitRow> {
    let own_keys = source
        .map(|grant| grant.limits.set_keys())
        .unwrap_or_default();
    let amounts = limits.amounts().zip(Limits::DEFAULT.amounts());
    amounts
        .map(|((key, value), (_, default))| LimitRow {
            key: key.to_owned(),
            value: value.to_string(),
            source: if own_keys.contains(&key) {
                LimitSource::Grant
            } else if value == default {
                LimitSource::BuiltIn
            } else {
                LimitSource::Server
            },
        })
        .collect()
}

/// Returns the usage of a plugin's recent calls. Returns `None` if there were none.
pub(super) fn usage_summary(usage: &RecentUsage, limits: &Limits) -> Option<UsageSummary> {
    let suggestion = usage.suggest()?;
    let CallUsage {
        fuel, wall, memory, ..
    } = usage.maximum();
    let row = |key, used: u64, limit: u64, show: fn(u64) -> String| UsageRow {
        key,
        used: show(used),
        limit: show(limit),
        percent: used
            .saturating_mul(100)
            .checked_div(limit)
            .unwrap_or_default(),
    };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let bytes = |amount| ByteSize::b(amount).display().iec().to_string();
    Some(UsageSummary {
        calls: suggestion.calls,
        stopped: suggestion.stopped,
        rows: vec![
            row("fuel", fuel, limits.fuel, format_thousands),
            row("timeout", millis(wall), millis(limits.timeout), |time| {
                humantime::format_duration(Duration::from_millis(time)).to_string()
            }),
            row("memory", memory, limits.memory.as_u64(), bytes),
        ],
        suggestion: suggestion.grant_line(),
    })
}

/// Returns the row of an offered item.
pub(super) fn offer_row(name: &str, title: Option<&str>, description: Option<&str>) -> OfferRow {
    let clean = |text: &str| clean_line(text, MAX_LINE_BYTES);
    OfferRow {
        name: clean(name),
        title: title.map(clean),
        description: description.map(clean),
    }
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
