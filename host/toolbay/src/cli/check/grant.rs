//! Template of a grant, based on the imports of a plugin and the permissions that its views
//! request.

use toolbay_policy::UiAccess;

/// Permissions that allow an interface, by the prefix of its name. The values are examples.
const INTERFACE_PERMISSIONS: [(&str, &[&str]); 5] = [
    ("wasi:http/", &["http = [\"https://api.example.com\"]"]),
    ("wasi:sockets/", &["tcp = [\"db.example.com:5432\"]"]),
    (
        "wasi:keyvalue/",
        &["state = { size = \"10MiB\", keys = 10_000 }"],
    ),
    ("wasi:cli/environment", &["environment = [\"LANG\"]"]),
    // Opens a TOML table, so it must be the last one.
    (
        "wasi:filesystem/",
        &[
            "[[permissions.mounts]]",
            "host = \"data\"",
            "guest = \"/data\"",
            "access = \"read\"",
        ],
    ),
];

/// Note about the commented lines of the template.
const TEMPLATE_ADVICE: &str = "# Toolchains import more than tools use. Remove the # from what the plugin needs, and change the values.";

/// Returns the template, which allows nothing until it is edited; `None` if no permission would
/// make a difference.
pub(super) fn render(imports: &[String], views: &UiAccess) -> Option<String> {
    let imported = |prefix: &str| imports.iter().any(|import| import.starts_with(prefix));
    let permissions = INTERFACE_PERMISSIONS
        .iter()
        .filter(|(prefix, _)| imported(prefix))
        .flat_map(|(_, lines)| *lines);
    let view_permissions = views.remedies();
    let lines = view_permissions
        .iter()
        .map(String::as_str)
        .chain(permissions.copied());
    let lines: Vec<String> = lines.map(|line| format!("# {line}\n")).collect();
    (!lines.is_empty()).then(|| format!("[permissions]\n{TEMPLATE_ADVICE}\n{}", lines.concat()))
}

/// Returns the name of the grant file of a plugin file.
pub(super) fn file_name(file: &str) -> String {
    format!("{}.toml", file.strip_suffix(".wasm").unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolbay_catalog::Grant;
    use toolbay_policy::UiPermission;

    use super::*;

    fn parse(text: &str) -> Grant {
        Grant::parse("a.toml", text, Path::new("/plugins")).unwrap()
    }

    #[test]
    fn the_template_is_a_grant_as_it_is_and_without_its_comments() {
        let imports: Vec<String> = INTERFACE_PERMISSIONS
            .iter()
            .map(|(prefix, _)| format!("{prefix}x@0.2.0"))
            .collect();
        let views = UiAccess {
            permissions: vec![UiPermission::Camera],
            ..UiAccess::default()
        };
        let text = render(&imports, &views).unwrap();
        insta::assert_snapshot!(text, @r#"
        [permissions]
        # Toolchains import more than tools use. Remove the # from what the plugin needs, and change the values.
        # ui.permissions = ["camera"]
        # http = ["https://api.example.com"]
        # tcp = ["db.example.com:5432"]
        # state = { size = "10MiB", keys = 10_000 }
        # environment = ["LANG"]
        # [[permissions.mounts]]
        # host = "data"
        # guest = "/data"
        # access = "read"
        "#);
        // The command prints the template with an indent.
        let printed: String = text.lines().flat_map(|line| ["    ", line, "\n"]).collect();
        let closed = Grant {
            digest: None,
            text: None,
            ..parse(&printed)
        };
        assert_eq!(closed, Grant::default(), "nothing is allowed yet");
        let open = parse(&text.replace(TEMPLATE_ADVICE, "").replace("# ", "")).permissions;
        assert_eq!(
            (
                open.http.len(),
                open.tcp.len(),
                open.environment.len(),
                open.mounts.len()
            ),
            (1, 1, 1, 1)
        );
        assert!(open.state.is_some() && open.ui == views);
    }

    #[test]
    fn imports_that_are_always_allowed_need_no_grant() {
        assert_eq!(render(&[], &UiAccess::default()), None);
        assert_eq!(
            render(
                &[
                    "wasi:clocks/wall-clock@0.2.0".to_owned(),
                    "toolbay:plugin/host@0.2.0".to_owned()
                ],
                &UiAccess::default()
            ),
            None
        );
        assert_eq!(
            (file_name("a.wasm"), file_name("b")),
            ("a.toml".to_owned(), "b.toml".to_owned())
        );
    }
}
