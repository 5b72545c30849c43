//! Grants in plain words, for the command line and the console.

use std::path::PathBuf;

use toolbay_catalog::{GrantReport, LimitOverrides};
use toolbay_model::text::format_thousands;
use toolbay_model::{LimitValue, Limits};
use toolbay_policy::{MountAccess, Permissions, ScratchPermission, StateGrant, StateScope};

/// Returns one line per permission of a grant.
pub(crate) fn permission_lines(grant: &GrantReport) -> Vec<String> {
    permission_summary(&grant.permissions)
}

/// Returns one line per permission.
pub(crate) fn permission_summary(permissions: &Permissions) -> Vec<String> {
    let Permissions {
        environment,
        mounts,
        scratch,
        http,
        tcp,
        private_networks,
        deterministic,
        state,
        ui,
    } = permissions;
    let mut lines = Vec::new();
    if !environment.is_empty() {
        lines.push(format!("environment variables: {}", environment.join(", ")));
    }
    for mount in mounts {
        let access = match mount.access {
            MountAccess::Read => "read-only",
            MountAccess::ReadWrite => "read-write",
        };
        // Removes `.` components in the middle and at the end.
        let host: PathBuf = mount.host.components().collect();
        let scope = if mount.scope.is_some() {
            ", a folder for each caller"
        } else {
            ""
        };
        let quota = mount
            .quota
            .map(|quota| format!(", at most {}", quota.display().iec()))
            .unwrap_or_default();
        let entries = mount
            .max_entries()
            .map(|most| format!(", at most {most} entries"))
            .unwrap_or_default();
        lines.push(format!(
            "mount: {} at {} ({access}{scope}{quota}{entries})",
            host.display(),
            mount.guest
        ));
    }
    if let Some(ScratchPermission {
        guest,
        size,
        entries,
    }) = scratch
    {
        lines.push(format!(
            "temporary folder: {guest} (at most {}, at most {entries} entries)",
            size.display().iec()
        ));
    }
    if !http.is_empty() {
        lines.push(format!("HTTP requests: {}", join_list(http)));
    }
    if !tcp.is_empty() {
        lines.push(format!("TCP connections: {}", join_list(tcp)));
    }
    if !private_networks.is_empty() {
        lines.push(format!("private networks: {}", join_list(private_networks)));
    }
    lines.extend(ui.summary_lines());
    if *deterministic {
        lines.push("deterministic: fixed clocks and random numbers".to_owned());
    }
    if let Some(StateGrant { size, keys, scope }) = state {
        let scope = if *scope == StateScope::Caller {
            " for each caller"
        } else {
            ""
        };
        lines.push(format!(
            "state: {} and {} keys{scope}",
            size.display().iec(),
            format_thousands(*keys)
        ));
    }
    lines
}

/// Returns one line per other setting of a grant, and per limit that differs from Toolbay's
/// default.
pub(crate) fn term_lines(grant: &GrantReport) -> Vec<String> {
    let mut lines = setting_lines(grant);
    lines.extend(rate_line(grant));
    let limit = |(key, amount): (&str, LimitValue)| format!("{key}: {amount}");
    lines.extend(grant.limits.differences_from(&Limits::DEFAULT).map(limit));
    lines.extend(tool_lines(grant));
    lines
}

/// Returns one line per other setting that only a grant can have.
pub(crate) fn setting_lines(grant: &GrantReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(end) = grant.until {
        lines.push(format!("ends at {end}"));
    }
    if let Some(budget) = grant.budget {
        lines.push(format!("budget: {budget}"));
    }
    if !grant.secrets.is_empty() {
        lines.push(format!("redacted secrets: {}", grant.secrets.join(", ")));
    }
    for credential in &grant.credentials {
        lines.push(format!("HTTP requests carry {credential}"));
    }
    if !grant.disabled_tools.is_empty() {
        lines.push(format!(
            "disabled tools: {}",
            grant.disabled_tools.join(", ")
        ));
    }
    if !grant.config.is_empty() {
        lines.push(format!("configuration keys: {}", grant.config.join(", ")));
    }
    lines
}

/// Returns the line of the rate limit, which the grant or the server's configuration sets.
pub(crate) fn rate_line(grant: &GrantReport) -> Option<String> {
    let limit = grant.rate_limit?;
    Some(format!("rate limit per tool: {limit}"))
}

/// Returns one line per tool whose limits differ from those of its plugin.
pub(crate) fn tool_lines(grant: &GrantReport) -> impl Iterator<Item = String> {
    grant.tools.iter().map(|(tool, LimitOverrides(limits))| {
        let limits: Vec<String> = limits
            .iter()
            .map(|(key, amount)| format!("{key} {amount}"))
            .collect();
        format!("tool {tool}: {}", limits.join(", "))
    })
}

fn join_list(items: &[impl ToString]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
