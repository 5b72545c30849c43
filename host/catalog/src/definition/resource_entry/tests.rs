//! Tests of `resource_entry`.

use super::*;

pub(crate) fn definition(uri: &str) -> ResourceDefinition {
    ResourceDefinition {
        uri: uri.into(),
        name: "a".into(),
        ..ResourceDefinition::default()
    }
}

#[test]
fn valid_definitions_are_accepted() {
    let all = ResourceDefinition {
        mime_type: Some("text/plain".into()),
        size: Some(7),
        audience: vec!["assistant".into(), "user".into(), "user".into()],
        priority: Some(0.5),
        last_modified: Some("2026-01-12T15:00:58Z".into()),
        meta: Some("{ \"a\": 1 }".into()),
        ..definition("notes://a")
    };
    let resource = ResourceEntry::from_resource(all.clone()).unwrap().resource;
    assert_eq!(resource.audience, ["user", "assistant"]);
    assert_eq!((resource.size, resource.priority), (Some(7), Some(0.5)));
    assert_eq!(resource.meta.as_ref().unwrap().get(), r#"{"a":1}"#);
    let template = ResourceEntry::from_template(ResourceDefinition {
        uri: "notes://{id}".into(),
        ..all
    })
    .unwrap();
    assert_eq!(
        (
            template.resource.size,
            template.resource.last_modified.as_deref()
        ),
        (None, None)
    );
    assert!(template.template.unwrap().matches("notes://7"));
}

#[test]
fn invalid_definitions_are_refused() {
    let with = |change: fn(&mut ResourceDefinition)| {
        let mut resource = definition("notes://a");
        change(&mut resource);
        resource
    };
    let resources = [
        definition("a"),
        definition("notes://a b"),
        definition("Toolbay://acme/a"),
        definition("SKILL://pdf/SKILL.md"),
        with(|resource| resource.name.clear()),
        with(|resource| resource.name = "\u{1b}".into()),
        with(|resource| resource.meta = Some("[]".into())),
    ];
    let templates = [
        definition("notes://a"),
        definition("skill://acme/{id}"),
        definition("{+any}"),
    ];
    let said = resources
        .map(|resource| ResourceEntry::from_resource(resource).unwrap_err())
        .into_iter();
    let said =
        said.chain(templates.map(|template| ResourceEntry::from_template(template).unwrap_err()));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r#"
    resource "a": its URI must begin with a scheme, such as "notes:"
    resource "notes://a b": its URI contains ' ', which a URI can only contain percent-encoded
    resource "Toolbay://acme/a": the scheme "toolbay" is reserved for files next to the plugins; use another, such as the plugin's name
    resource "SKILL://pdf/SKILL.md": the scheme "skill" is reserved for files next to the plugins; use another, such as the plugin's name
    resource "notes://a": its name must have 1 to 512 bytes without control characters
    resource "notes://a": its name must have 1 to 512 bytes without control characters
    resource "notes://a": its _meta must be a JSON object
    resource template "notes://a": it has no variable, such as {id}; list it as a resource
    resource template "skill://acme/{id}": the scheme "skill" is reserved for files next to the plugins; use another, such as the plugin's name
    resource template "{+any}": it must begin with a scheme, such as "notes:"
    "#);
}

#[test]
fn a_view_is_listed_with_the_granted_access_only() {
    let meta = r#"{"ui":{"csp":{"connectDomains":["https://a.example"]}},"x":1}"#;
    let listed = ResourceDefinition {
        meta: Some(meta.into()),
        ..definition("ui://acme/view")
    };
    let entry = Arc::new(ResourceEntry::from_resource(listed).unwrap());
    assert_eq!(
        (
            entry.resource.meta.as_ref(),
            entry.resource.mime_type.as_deref()
        ),
        (None, Some(view::MIME_TYPE))
    );
    let grant = UiAccess {
        connect: entry.requested_access().unwrap().connect.clone(),
        ..UiAccess::default()
    };
    let (closed, remarks) = entry.with_grant("acme", &UiAccess::default());
    assert_eq!(
        (closed.resource.meta.as_ref(), closed.fingerprint),
        (None, entry.fingerprint)
    );
    assert_eq!(
        remarks,
        [
            "view \"ui://acme/view\": it may not have connections to https://a.example (to allow it, add to [permissions] \
          in acme.toml: ui.connect = [\"https://a.example\"])"
        ]
    );
    let (open, remarks) = entry.with_grant("acme", &grant);
    assert_ne!(
        open.fingerprint, entry.fingerprint,
        "clients are told that the list changed"
    );
    assert_eq!(
        (open.resource.meta.as_ref().unwrap().get(), remarks.len()),
        (&meta.replace(r#","x":1"#, "")[..], 0)
    );
    // The `ui` member in the list applies to content without one. Content with one replaces it.
    let read = |uri: &str, text: &str| {
        let mut meta = serde_json::from_str(text).unwrap();
        let denied = open.limit_meta(uri, &mut meta, &grant);
        (Value::Object(meta).to_string(), denied.len())
    };
    let granted = meta.replace(r#","x":1"#, "");
    assert_eq!(read("ui://acme/view", r#"{"y":2}"#), (granted, 0));
    let greedy = r#"{"ui":{"csp":{"frameDomains":["https://a.example"]}},"openai/widgetCSP":{}}"#;
    assert_eq!(read("ui://acme/view", greedy), ("{}".to_owned(), 1));
    assert_eq!(read("ui://acme/view", r#"{"ui":{}}"#), ("{}".to_owned(), 0));
    // The `ui` member of content that is not a view is removed, and the rest stays.
    assert_eq!(
        read("notes://a", r#"{"ui":{"prefersBorder":true},"y":2}"#),
        (r#"{"y":2}"#.to_owned(), 0)
    );
}

#[test]
fn the_uri_of_a_view_names_its_owner() {
    for uri in [
        "UI://victim/x",
        "Ui://victim/x",
        "ui:x",
        "ui://a@victim/x",
        "ui://victim:1/x",
        "ui://[victim]/x",
    ] {
        let why = ResourceEntry::from_resource(definition(uri)).unwrap_err();
        let said = [
            ": a view cannot have ",
            "must begin with \"ui://\"",
            "not an IPv6 address",
        ];
        assert!(said.iter().any(|said| why.contains(said)), "{why}");
    }
    for uri in [
        "ui://{a}/{b}",
        "ui://{+any}",
        "ui:{+any}",
        "ui://vic{a}/x",
        "ui://a@{b}/x",
        "UI://victim/{a}",
    ] {
        let why = ResourceEntry::from_template(definition(uri)).unwrap_err();
        assert!(
            why.contains(": a view cannot have ") || why.contains("must begin with \"ui://\""),
            "{why}"
        );
    }
    for uri in [
        "ui://victim/x",
        "ui://victim/a@b:1",
        "ui:///x",
        "ui://victim?x=a:b",
    ] {
        ResourceEntry::from_resource(definition(uri)).unwrap();
    }
    for uri in ["ui://victim/{a}", "ui://victim?{a}"] {
        ResourceEntry::from_template(definition(uri)).unwrap();
    }
}

#[test]
fn resources_that_are_not_views_have_no_ui_in_their_meta() {
    let both = ResourceDefinition {
        meta: Some(r#"{"ui":{},"x":1}"#.into()),
        ..definition("notes://a")
    };
    let entry = ResourceEntry::from_resource(both).unwrap();
    assert_eq!(
        (
            entry.resource.meta.as_ref().unwrap().get(),
            entry.warnings().len()
        ),
        (r#"{"x":1}"#, 1)
    );
    let other = ResourceDefinition {
        mime_type: Some("text/html".into()),
        ..definition("ui://acme/view")
    };
    assert!(
        ResourceEntry::from_resource(other).unwrap().warnings()[0]
            .contains("clients do not show text/html")
    );
}

#[test]
fn the_fingerprint_covers_what_clients_receive() {
    let one = definition("notes://a");
    let fingerprint = |definition: ResourceDefinition| {
        ResourceEntry::from_resource(definition)
            .unwrap()
            .fingerprint
    };
    let same = fingerprint(one.clone());
    assert_eq!(fingerprint(one.clone()), same);
    for other in [
        ResourceDefinition {
            priority: Some(0.5),
            ..one.clone()
        },
        ResourceDefinition {
            size: Some(1),
            ..one.clone()
        },
        ResourceDefinition {
            audience: vec!["user".into()],
            ..one.clone()
        },
        ResourceDefinition {
            mime_type: Some("text/plain".into()),
            ..one.clone()
        },
    ] {
        assert_ne!(fingerprint(other), same);
    }
}
