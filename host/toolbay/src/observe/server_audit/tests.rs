//! Tests of `server_audit`.

use toolbay_catalog::SourceDigests;
use toolbay_model::Digest;

use super::*;

/// Returns the status of a plugin with these digests, and a problem unless it is empty.
fn report(
    status: PluginFileStatus,
    made_from: Option<(u8, Option<u8>)>,
    problem: &str,
) -> PluginReport {
    let digest = |byte| Digest::new([byte; 32]);
    PluginReport {
        held: None,
        version: None,
        status,
        digest: None,
        about: None,
        problems: Some(problem.to_owned())
            .filter(|problem| !problem.is_empty())
            .into_iter()
            .collect(),
        tools: vec!["one".to_owned()],
        require_approval: std::collections::BTreeMap::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        skills: Vec::new(),
        templates: Vec::new(),
        grant: None,
        source_digests: made_from.map(|(component, grant)| SourceDigests {
            component: Some(digest(component)),
            grant: grant.map(digest),
        }),
        history: toolbay_catalog::VersionHistory::default(),
    }
}

fn said(before: Option<&PluginReport>, now: &PluginReport) -> &'static str {
    match plugin_change("p", before, now) {
        None => "nothing",
        Some(AuditEvent::Load { .. }) => "load",
        Some(AuditEvent::Grant { .. }) => "grant",
        Some(AuditEvent::Refused { .. }) => "refused",
        Some(_) => "something else",
    }
}

#[test]
fn each_change_of_a_plugin_is_told_once() {
    use PluginFileStatus::{Loading, Ready, Refused, Stale};
    let ready = |component, grant| report(Ready, Some((component, grant)), "");
    let with = |tools: &[&str], report: PluginReport| {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        PluginReport { tools, ..report }
    };
    for (before, now, expected) in vec![
        (None, report(Loading, None, ""), "nothing"),
        (Some(report(Loading, None, "")), ready(1, None), "load"),
        (None, ready(1, None), "load"),
        (Some(ready(1, None)), ready(1, None), "nothing"),
        (Some(ready(1, None)), ready(2, None), "load"),
        (Some(ready(1, None)), ready(2, Some(7)), "load"),
        (Some(ready(1, None)), ready(1, Some(7)), "grant"),
        (Some(ready(1, Some(7))), ready(1, Some(8)), "grant"),
        (Some(ready(1, Some(7))), ready(1, None), "grant"),
        // Another plugin took or released a name.
        (Some(ready(1, None)), with(&[], ready(1, None)), "load"),
        (
            Some(ready(1, None)),
            report(Stale, Some((1, None)), "bad"),
            "refused",
        ),
        (
            Some(report(Stale, Some((1, None)), "bad")),
            report(Stale, Some((1, None)), "bad"),
            "nothing",
        ),
        (
            Some(report(Stale, Some((1, None)), "bad")),
            report(Stale, Some((1, None)), "worse"),
            "refused",
        ),
        (
            Some(report(Stale, Some((1, None)), "bad")),
            ready(1, None),
            "load",
        ),
        (
            Some(report(Stale, Some((1, None)), "bad")),
            ready(1, Some(7)),
            "grant",
        ),
        (None, report(Refused, None, "bad"), "refused"),
        (Some(report(Refused, None, "bad")), ready(1, None), "load"),
        (
            Some(ready(1, None)),
            report(Refused, None, "overlap"),
            "refused",
        ),
    ] {
        assert_eq!(said(before.as_ref(), &now), expected, "{before:?} {now:?}");
    }
}
