//! What must hold of any text that an operator writes: a grant, a configuration, variables.

use std::path::Path;
use std::sync::Arc;

use super::breaker::Breaker;
use super::grant::Grant;
use super::{Component, Digest, Plugin};
use crate::admission::Admission;
use crate::catalog::Tool;
use crate::config::{Config, Flags};
use crate::limits::Limits;
use crate::rate::Rate;
use crate::sandbox::Prepared;

/// What stands between a grant and a configuration.
const SEPARATOR: &str = "\n---\n";

/// Where the grant is: no error may say so.
const FOLDER: &str = "/home/operator/plugins";

/// What a person who writes TOML should not have to know. Text of theirs may be quoted, so it may hold these.
const INTERNALS: [&str; 17] = [
    "struct ",
    "enum ",
    "newtype",
    "tuple",
    "variant identifier",
    "map key",
    "Some(",
    "Ok(",
    "Err(",
    "toolbay::",
    "toml::",
    "std::",
    "core::",
    ".rs",
    "panicked",
    "__toml",
    FOLDER,
];

/// Reads the text as a grant and as a configuration, or as one and the other
/// where a line `---` stands between them; lines of a configuration that begin
/// with `TOOLBAY_` are variables.
///
/// # Panics
///
/// When something does not hold that must.
pub fn grant(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (grant, config) = text.split_once(SEPARATOR).unwrap_or((text, text));
    let grant = Grant::parse("acme.toml", grant, Path::new(FOLDER));
    let config = configuration(config);
    for error in [grant.as_ref().err(), config.as_ref().err()].into_iter().flatten() {
        for word in INTERNALS {
            assert!(!error.contains(word) || text.contains(word), "{word:?} in {error}");
        }
        assert!(!error.trim().is_empty() && !error.contains('\n'), "{error:?}");
        assert!(error.len() <= 2_000 + 8 * text.len(), "{error}");
    }
    let config = config.unwrap_or_default();
    usable(&config);
    let rules = config.rules();
    assert!(within(&rules.ceiling, &Limits::UTMOST), "{:?}", rules.ceiling);
    for limits in [&rules.limits, &rules.describe] {
        assert!(within(limits, &rules.ceiling), "{limits:?}");
    }
    let Ok(grant) = grant else { return };
    for (key, value) in grant.config_values() {
        assert!(!value.contains("__toml") || text.contains("__toml"), "{key} = {value}");
    }
    let mounts = grant.permissions.mounts.clone();
    for mount in &mounts {
        assert!(mount.guest.starts_with('/') && !mount.guest.split('/').any(|part| part == ".."), "{mount:?}");
        assert!(mount.host.is_absolute(), "{mount:?}");
    }
    let Ok((secrets, _)) = grant.secrets(|name| Some(name.repeat(3))) else { return };
    let tools = vec![Arc::clone(&Tool::for_test("tool").definition)];
    let component =
        Component { digest: Digest::of(b""), prepared: Arc::new(Prepared::for_test()), tools, remarks: vec![] };
    let (terms, remarks) = rules.terms("acme", &component, grant, secrets);
    for environment in terms.tools.values().chain([&terms.environment]) {
        assert!(within(&environment.limits, &rules.ceiling), "{:?}", environment.limits);
        assert_eq!(environment.permissions.mounts, mounts);
    }
    for remark in remarks {
        assert!(!remark.contains(FOLDER), "{remark}");
    }
    let plugin = Plugin::new("acme".to_owned(), Arc::new(component), terms);
    take(plugin.rates.get("tool"));
    plugin.breaker.check().unwrap_or_else(|rest| unreachable!("a new plugin rests for {rest:?}"));
}

fn configuration(text: &str) -> Result<Config, String> {
    let (variables, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("TOOLBAY_"));
    let pair = |line: &&str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables: Vec<(String, String)> = variables.iter().filter_map(pair).collect();
    // A folder that is there: the configuration is read to its end.
    let flags = Flags { plugins: Some(".".into()), ..Flags::default() };
    Config::of_text(&lines.join("\n"), &variables, &flags).map_err(|error| error.to_string())
}

/// A configuration that was accepted is one that a server can start with.
fn usable(config: &Config) {
    let admission = Admission::new(&config.server, config.client_rate_limit);
    let client = admission.client();
    for _ in 0..3 {
        drop(admission.queue(&client));
    }
    take(config.rate_limit.and_then(Rate::new).as_ref());
    let breaker = Breaker::default();
    if breaker.note(true, config.breaker) {
        assert!(breaker.check().map_or_else(|rest| rest <= config.breaker.rest, |()| true));
    }
    config.clamps();
    assert!(config.sandbox().is_ok());
}

/// Takes more than one call: the second is the one that is counted.
fn take(rate: Option<&Rate>) {
    let Some(rate) = rate else { return };
    for _ in 0..3 {
        if let Err(wait) = rate.take() {
            assert!(wait <= rate.limit().per, "{wait:?} of {:?}", rate.limit());
        }
    }
}

/// Whether no limit is above its ceiling.
fn within(limits: &Limits, ceiling: &Limits) -> bool {
    limits.amounts().into_iter().zip(ceiling.amounts()).all(|((_, limit), (_, most))| limit <= most)
}
