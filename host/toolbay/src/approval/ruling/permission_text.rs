//! Describes the permissions of a grant for the person who approves a call.

use toolbay_policy::{HttpMethod, HttpRule, MountAccess, PathPrefix, Permissions, StateScope};
use toolbay_sandbox::PluginContext;

use super::json_escape::visible_line;

/// Maximum number of lines.
const MAX_LINES: usize = 24;

/// Maximum length of a line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Lists what the plugin can access in a call with this environment, one permission per line.
/// Folders of the server appear under their guest paths. Only the operator may see the host paths.
pub(crate) fn permission_lines(context: &PluginContext) -> Vec<String> {
    let Permissions {
        environment: variables,
        mounts,
        http,
        tcp,
        private_networks,
        state,
        scratch: _,
        deterministic: _,
        ui: _,
    } = &context.permissions;
    let mut lines = Vec::new();
    for mount in mounts {
        let action = match mount.access {
            MountAccess::Read => "read files",
            MountAccess::ReadWrite => "read, change and delete files",
        };
        let owner_clause = if mount.scope.is_some() {
            ", which is the caller's own"
        } else {
            ""
        };
        lines.push(format!(
            "{action} in the folder {}{owner_clause}",
            mount.guest
        ));
    }
    lines.extend(http.iter().map(request_line));
    lines.extend(tcp.iter().map(|rule| format!("connect to {rule} (TCP)")));
    lines.extend(private_networks.iter().map(|network| {
        format!("reach the private network {network} with these requests and connections")
    }));
    let credential_rules = context
        .secrets
        .secrets()
        .iter()
        .filter_map(|secret| secret.credential_rule.as_ref());
    lines.extend(credential_rules.map(|carried| format!("use a secret of the server: {carried}")));
    if !variables.is_empty() {
        lines.push(format!(
            "read environment variables of the server: {}",
            variables.join(", ")
        ));
    }
    match state.map(|state| state.scope) {
        Some(StateScope::Plugin) => {
            lines.push("keep data for later calls, also of other callers".to_owned());
        }
        Some(StateScope::Caller) => {
            lines.push("keep data for later calls of the same caller".to_owned());
        }
        None => {}
    }
    if lines.is_empty() {
        lines.push("reach nothing outside its own memory: no files, no network".to_owned());
    }
    let more = lines.len().saturating_sub(MAX_LINES);
    if more > 0 {
        lines.truncate(MAX_LINES);
        lines.push(format!("and {more} more, which the grant lists"));
    }
    lines
        .iter()
        .map(|words| visible_line(words, MAX_LINE_CHARS))
        .collect()
}

fn request_line(rule: &HttpRule) -> String {
    let methods = rule.methods().map(|methods| {
        methods
            .iter()
            .map(HttpMethod::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    });
    let paths = rule.paths().map(|paths| {
        paths
            .iter()
            .map(PathPrefix::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    });
    let only = match (methods, paths) {
        (None, None) => String::new(),
        (Some(methods), None) => format!(" (only {methods})"),
        (None, Some(paths)) => format!(" (only below {paths})"),
        (Some(methods), Some(paths)) => format!(" (only {methods}, only below {paths})"),
    };
    format!("send requests to {}{only}", rule.origin())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolbay_catalog::Grant;

    use super::*;

    fn lines_of(grant: &str) -> String {
        let permissions = Grant::parse("a.toml", grant, Path::new("/srv/plugins"))
            .unwrap()
            .permissions;
        permission_lines(&PluginContext {
            permissions,
            ..PluginContext::default()
        })
        .join("\n")
    }

    #[test]
    fn everything_that_a_grant_opens_has_a_line() {
        assert_eq!(
            lines_of(""),
            "reach nothing outside its own memory: no files, no network"
        );
        let all = lines_of(
            r#"
            [permissions]
            environment = ["LANG", "TZ"]
            http = ["https://api.example.com", { origin = "https://*.example.org", methods = ["GET", "PUT"], paths = ["/v1", "/v2"] }]
            tcp = ["db.example.com:5432"]
            private_networks = ["10.1.0.0/16"]
            state = {}
            [permissions.scratch]
            [[permissions.mounts]]
            host = "data"
            guest = "/data"
            access = "read"
            [[permissions.mounts]]
            host = "notes"
            guest = "/notes"
            access = "read-write"
            scope = "caller"
            "#,
        );
        insta::assert_snapshot!(all, @r"
        read files in the folder /data
        read, change and delete files in the folder /notes, which is the caller's own
        send requests to https://api.example.com
        send requests to https://*.example.org (only GET, PUT, only below /v1, /v2)
        connect to db.example.com:5432 (TCP)
        reach the private network 10.1.0.0/16 with these requests and connections
        read environment variables of the server: LANG, TZ
        keep data for later calls, also of other callers
        ");
        assert!(!all.contains("srv"), "a host path is shown: {all}");
        let caller_state = "[permissions]\nstate = { scope = \"caller\" }";
        assert_eq!(
            lines_of(caller_state),
            "keep data for later calls of the same caller"
        );
    }

    #[test]
    fn many_lines_and_strange_names_are_bounded() {
        let mount = |n| {
            format!(
                "[[permissions.mounts]]\nhost = \"x\"\nguest = \"/{n}\\n    + all\\u202e\"\naccess = \"read\"\n"
            )
        };
        let mounts = (0..100).map(mount).collect::<Vec<_>>().concat();
        let lines = lines_of(&mounts);
        assert_eq!(lines.lines().count(), MAX_LINES + 1, "{lines}");
        assert!(
            lines.ends_with("and 76 more, which the grant lists") && !lines.contains('\u{202e}'),
            "{lines}"
        );
    }
}
