//! Tests every key of a grant with a mistake, truncated, or in another version: nothing becomes
//! more permissive than before.

use std::fs;
use std::path::Path;

use bytesize::ByteSize;
use toolbay_model::{ArgumentCheck, Limits};

use crate::folder::description_limits::tests::SMALL;
use crate::rules::approval::{ApprovalSetting, Approver};
use crate::rules::grant::{Grant, ToolGrant};
use crate::rules::load_policy::LoadPolicy;

/// A grant with every key.
const COMPLETE: &str = r#"
prefix = "acme"
separator = "."
arguments = "lenient"
require_approval = "first"
approve_by = "console"
enabled_tools = ["erase", "look", "read_*"]
component = "sha256:0707070707070707070707070707070707070707070707070707070707070707"
until = 2027-01-01T00:00:00Z
[limits]
fuel = 1_000_000
timeout = "2s"
memory = "32MiB"
http_requests = 3
oversize = "error"
[rate_limit]
calls = 6
per = "1m"
shared = true
[budget]
calls = 100
fuel = 1_000_000
network_bytes = "1MiB"
scope = "caller"
[config]
units = "metric"
[permissions]
environment = ["LANG", "TZ"]
http = ["https://api.example.com", { origin = "https://*.example.org", methods = ["GET"], paths = ["/v1"] }]
tcp = ["db.example.com:5432"]
private_networks = ["10.1.0.0/16"]
deterministic = true
state = { size = "1MiB", keys = 10, scope = "caller" }
scratch = { guest = "/tmp", size = "1MiB", entries = 10 }
[permissions.ui]
connect = ["https://api.example.com"]
resources = ["https://api.example.com"]
frames = ["https://api.example.com"]
base = ["https://api.example.com"]
permissions = ["camera"]
domain = "a.example.com"
[[permissions.mounts]]
host = "data"
guest = "/data"
access = "read-write"
scope = "caller"
quota = "1MiB"
entries = 10
unsafe = true
[secrets.token]
environment = "TOKEN"
header = "Authorization"
format = "Bearer {}"
origins = ["https://api.example.com"]
[secrets.other]
file = "secret"
query = "key"
origins = ["https://api.example.com"]
[secrets.ring]
keyring = { service = "a", user = "b" }
[secrets.printed]
command = ["pass", "show"]
[secrets.own]
caller_folder = "own"
[tools.erase]
require_approval = "always"
approve_by = "client"
title = "Erase"
description = "Erases."
task_support = "forbidden"
input_schema = '{"type":"object"}'
[tools.erase.annotations]
read_only = false
destructive = true
idempotent = true
open_world = false
[tools.look]
disabled = true
[tools.read_file.limits]
fuel = 1_000
timeout = "1s"
output = "1KiB"
oversize = "error"
"#;

/// Structs with keys: the file, the name, and the table of the keys in a grant.
const STRUCTS: &[(&str, &str, &str)] = &[
    ("rules/grant.rs", "Grant", ""),
    ("rules/grant.rs", "ToolGrant", "tools.erase"),
    ("rules/budget.rs", "GrantBudget", "budget"),
    (
        "rules/grant.rs",
        "AnnotationOverride",
        "tools.erase.annotations",
    ),
    ("rules/grant.rs", "ToolLimits", "tools.erase.limits"),
    ("rules/grant/secret.rs", "SecretTable", "secrets.token"),
    (
        "rules/grant/secret.rs",
        "KeyringEntry",
        "secrets.ring.keyring",
    ),
    (
        "../../policy/src/permissions.rs",
        "Permissions",
        "permissions",
    ),
    (
        "../../policy/src/permissions.rs",
        "MountPermission",
        "permissions.mounts.0",
    ),
    (
        "../../policy/src/scratch.rs",
        "ScratchPermission",
        "permissions.scratch",
    ),
    (
        "../../policy/src/state_grant.rs",
        "StateGrant",
        "permissions.state",
    ),
    (
        "../../policy/src/ui_access.rs",
        "UiAccess",
        "permissions.ui",
    ),
];

/// Returns the keys of each struct, with the table that contains them.
fn keys() -> Vec<(&'static str, String)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let fields = |(file, name, table): &(&str, &str, &'static str)| {
        let source = fs::read_to_string(folder.join(file)).unwrap();
        let (_, rest) = source
            .split_once(&format!("pub struct {name} {{\n"))
            .unwrap_or_else(|| panic!("{name}"));
        let (body, _) = rest.split_once("\n}").unwrap();
        let mut keys = Vec::new();
        let mut is_key = true;
        for line in body.lines() {
            if line.contains("#[serde(skip)]") {
                is_key = false;
            } else if let Some((key, _)) = line
                .strip_prefix("    pub ")
                .and_then(|line| line.split_once(':'))
            {
                let key = if key == "allows_control_files" {
                    "unsafe"
                } else {
                    key
                };
                keys.extend(is_key.then(|| (*table, key.to_owned())));
                is_key = true;
            }
        }
        keys
    };
    let limits = Limits::KEYS
        .iter()
        .chain(&["oversize"])
        .map(|key| ("limits", (*key).to_owned()));
    let rate = ["calls", "per", "shared"].map(|key| ("rate_limit", key.to_owned()));
    STRUCTS
        .iter()
        .flat_map(fields)
        .chain(limits)
        .chain(rate)
        .collect()
}

fn parse(text: &str) -> Result<Grant, String> {
    Grant::parse("acme.toml", text, Path::new("/plugins"))
}

fn rules() -> LoadPolicy {
    LoadPolicy {
        limits: Limits::DEFAULT,
        ceiling: Limits::CEILING,
        describe_limits: Limits::DEFAULT,
        rate_limit: None,
        require_approval: ApprovalSetting::Never,
        approve_by: Approver::Client,
        max_component_size: ByteSize::mib(1),
        guarded_paths: Vec::new(),
        description_limits: SMALL,
        reachable_files: None,
        writable_paths: None,
    }
}

const TOOLS: [&str; 4] = ["erase", "look", "read_file", "write_file"];

/// Returns a table of the complete grant as a value, for changes of single keys.
fn table_of<'a>(whole: &'a mut toml::Table, path: &str) -> Option<&'a mut toml::Table> {
    let mut table = whole;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        table = match table
            .entry(part)
            .or_insert_with(|| toml::Table::new().into())
        {
            toml::Value::Table(table) => table,
            toml::Value::Array(list) => return list.first_mut()?.as_table_mut(),
            _ => return None,
        };
    }
    Some(table)
}

/// Returns the complete grant with one change.
fn changed(path: &str, change: impl FnOnce(&mut toml::Table)) -> String {
    let mut whole: toml::Table = COMPLETE.parse().unwrap();
    let path = path.strip_suffix(".0").unwrap_or(path);
    change(table_of(&mut whole, path).unwrap_or_else(|| panic!("{path}")));
    whole.to_string()
}

/// Returns whether `one` requires approval whenever `other` does.
fn asks_as_often(one: ApprovalSetting, other: ApprovalSetting) -> bool {
    one == other || one == ApprovalSetting::Always || other == ApprovalSetting::Never
}

/// Fails if `one` allows something that `other` does not, to a plugin with these tools. Differences
/// in how the tools are shown are ignored.
fn assert_within(one: &Grant, other: &Grant, context: &str) {
    let rules = rules();
    let unset = ToolGrant::default();
    let limits = |grant: &Grant| rules.limits.with(&grant.limits, &rules.ceiling).0;
    for (here, there) in limits(one).amounts().zip(limits(other).amounts()) {
        assert!(here.1 <= there.1, "{context}: {here:?} {there:?}");
    }
    let is_strict = one.arguments == Some(ArgumentCheck::Strict);
    assert!(
        is_strict || one.arguments == other.arguments,
        "{context}: arguments are converted"
    );
    for name in TOOLS {
        let tool = |grant: &Grant| grant.tools.get(name).unwrap_or(&unset).clone();
        let is_shown = |grant: &Grant| !tool(grant).disabled && grant.offers(name);
        assert!(
            is_shown(other) || !is_shown(one),
            "{context}: {name} is shown"
        );
        let approvals = |grant: &Grant| grant.approvals(rules.require_approval, rules.approve_by);
        assert!(
            approvals(one).approver_for(name) >= approvals(other).approver_for(name),
            "{context}: {name} is allowed by the client"
        );
        let [here, there] = [one, other].map(|grant| approvals(grant).setting_for(name));
        assert!(
            asks_as_often(here, there),
            "{context}: {name} {here:?} {there:?}"
        );
        let own = |grant: &Grant| {
            limits(grant)
                .with(&tool(grant).limits.to_patch(), &rules.ceiling)
                .0
        };
        for (here, there) in own(one).amounts().zip(own(other).amounts()) {
            assert!(here.1 <= there.1, "{context}: {name} {here:?} {there:?}");
        }
    }
    assert!(
        one.until
            .is_some_and(|end| other.until.is_none_or(|then| end <= then))
            || other.until.is_none(),
        "{context}: {:?} {:?}",
        one.until,
        other.until
    );
    assert_eq!(
        one.budget.intersection(&other.budget),
        one.budget,
        "{context}: the budget is larger"
    );
    match (one.rate_limit, other.rate_limit) {
        (_, None) => {}
        (Some(here), Some(there)) => assert!(
            here.limit.calls <= there.limit.calls
                && here.limit.per >= there.limit.per
                && here.shared >= there.shared,
            "{context}: {here:?} {there:?}"
        ),
        (None, Some(_)) => panic!("{context}: no rate limit"),
    }
    assert_eq!(
        one.permissions.intersection(&other.permissions),
        {
            let deterministic = other.permissions.deterministic;
            toolbay_policy::Permissions {
                deterministic,
                ..one.permissions.clone()
            }
        },
        "{context}"
    );
    for (name, secret) in &one.secrets {
        let is_sent = !secret.origins.is_empty();
        assert!(
            !is_sent || other.secrets.get(name) == Some(secret),
            "{context}: {name} is carried"
        );
    }
}

/// Returns the grant that applies when this text replaces a grant and has not settled yet; `None`
/// if it is refused.
fn apply_now(text: &str, in_force: &Grant) -> Option<Grant> {
    let tools = TOOLS.map(str::to_owned);
    let new = parse(text).ok()?;
    let both = rules().intersection(&new, in_force, &tools);
    assert_within(&both, in_force, text);
    assert_within(&both, &new, text);
    assert!(
        in_force.secrets.keys().eq(both.secrets.keys()),
        "redacted values stay redacted: {text}"
    );
    let fixed_parts = |grant: &Grant| (grant.prefix.clone(), grant.component, grant.config.clone());
    assert_eq!(fixed_parts(&both), fixed_parts(in_force), "{text}");
    // A second application changes nothing.
    assert!(
        rules()
            .intersection(&new, &both, &tools)
            .is_equivalent_to(&both),
        "{text}"
    );
    Some(both)
}

#[test]
fn the_complete_grant_has_every_key() {
    let whole: toml::Table = COMPLETE.parse().unwrap();
    parse(COMPLETE).unwrap();
    assert!(keys().len() > 60, "{}", keys().len());
    for (table, key) in keys() {
        let text = COMPLETE
            .lines()
            .any(|line| line.contains(&format!("{key} = ")));
        assert!(
            text || whole.contains_key(&key)
                || table == "limits"
                || key == "mounts"
                || key == "ui"
                || key == "annotations"
                || key == "limits",
            "{table}.{key}"
        );
    }
}

#[test]
fn a_misspelt_name_or_value_of_any_key_is_refused() {
    for (table, key) in keys() {
        let misspelt = changed(table, |table| {
            let value = table.remove(&key).unwrap_or_else(|| true.into());
            table.insert(format!("{key}x"), value);
        });
        let wrong = changed(table, |table| {
            drop(table.insert(key.clone(), vec![vec![toml::Value::from(1)]].into()));
        });
        for text in [misspelt, wrong] {
            // The operator chooses the names in these tables.
            let is_free =
                ["config", "tools", "secrets"].contains(&key.as_str()) && table.is_empty();
            assert!(is_free || parse(&text).is_err(), "{table}.{key}: {text}");
        }
    }
}

#[test]
fn a_truncated_grant_adds_no_right_and_removes_no_restriction() {
    let whole = parse(COMPLETE).unwrap();
    let [none, few] =
        ["", "require_approval = \"always\"\n[permissions]\nenvironment = [\"LANG\"]\n[tools.erase]\ndisabled = true"]
            .map(|text| parse(text).unwrap());
    let mut valid = 0;
    for cut in 0..=COMPLETE.len() {
        let text = COMPLETE.get(..cut).unwrap();
        for in_force in [&whole, &none, &few] {
            valid += usize::from(apply_now(text, in_force).is_some());
        }
    }
    assert!(valid > 100, "{valid}");
    assert!(
        apply_now(COMPLETE, &whole)
            .unwrap()
            .is_equivalent_to(&whole),
        "all of it is there"
    );
}

#[test]
fn a_grant_without_one_of_its_keys_adds_no_right_and_removes_no_restriction() {
    let whole = parse(COMPLETE).unwrap();
    let mut valid = 0;
    for (table, key) in keys() {
        let text = changed(table, |table| drop(table.remove(&key)));
        let Ok(without) = parse(&text) else { continue };
        valid += 1;
        apply_now(&text, &whole);
        apply_now(COMPLETE, &without);
    }
    assert!(valid > 40, "{valid}");
}
