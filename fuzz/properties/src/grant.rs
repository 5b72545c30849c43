//! Properties of any text that an operator writes: a grant, a configuration, and variables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolbay::{Config, Flags, Server};
use toolbay_catalog::{
    ComponentContents, Grant, LoadPolicy, LoadedComponent, Plugin, PluginState, PluginTerms,
    assemble, channel,
};
use toolbay_mcp::jsonrpc::INTERNAL_ERROR;
use toolbay_model::{ComponentDescription, Limits, ToolDefinition};
use toolbay_sandbox::Sandbox;
use toolbay_secrets::FixedSecrets;

use crate::peer::Peer;
use crate::plain_line::is_plain_line;

/// The line between a grant and a configuration.
const SEPARATOR: &str = "\n---\n";

/// The folder of the grant. No error may contain it.
const FOLDER: &str = "/home/operator/plugins";

/// The plugin's only tool.
const TOOL: &str = "tool";

/// Internal terms that an author of TOML does not need to know. Quotations of the text may contain
/// them.
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

/// Maximum retry time that a busy server may report to a client.
const BUSY: Duration = Duration::from_secs(5);

/// Resources that all servers here share. No guest runs.
pub struct Grants {
    sandbox: Sandbox,
    runtime: Runtime,
}

impl Grants {
    /// Creates a sandbox, and a runtime for the protocol.
    ///
    /// # Errors
    ///
    /// The system does not provide threads or memory.
    pub fn new() -> anyhow::Result<Self> {
        let mut settings = Config::default().sandbox_settings()?;
        (settings.max_calls, settings.cache, settings.compiler) = (0, None, None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            sandbox: Sandbox::new(settings)?,
            runtime,
        })
    }

    /// Parses the text as a grant and as a configuration. If the text contains a line `---`, the
    /// part before it is the grant and the part after it is the configuration. Lines of a
    /// configuration that start with `TOOLBAY_` are variables. A server must be able to start with
    /// every accepted configuration.
    ///
    /// # Panics
    ///
    /// If a property does not hold.
    pub fn check(&self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        let (grant, config) = text.split_once(SEPARATOR).unwrap_or((text, text));
        let grant = Grant::parse("acme.toml", grant, Path::new(FOLDER));
        let config = configuration(config);
        for error in [grant.as_ref().err(), config.as_ref().err()]
            .into_iter()
            .flatten()
        {
            for word in INTERNALS {
                assert!(
                    !error.contains(word) || text.contains(word),
                    "{word:?} in {error}"
                );
            }
            assert!(
                !error.trim().is_empty() && !error.contains('\n'),
                "{error:?}"
            );
            assert!(error.len() <= 2_000 + 8 * text.len(), "{error}");
        }
        if grant.is_err() && config.is_err() {
            return;
        }
        let config = config.unwrap_or_default();
        let rules = config.load_policy();
        assert!(
            within(&rules.ceiling, &Limits::UTMOST),
            "{:?}",
            rules.ceiling
        );
        for limits in [&rules.limits, &rules.describe_limits] {
            assert!(within(limits, &rules.ceiling), "{limits:?}");
        }
        let component = component();
        let terms = match grant {
            Ok(grant) => granted(&rules, &component, grant, text),
            Err(_) => Some(PluginTerms {
                rate_limit: rules.rate_limit,
                ..PluginTerms::default()
            }),
        };
        if let Some(terms) = terms {
            self.serve(
                &config,
                Plugin::new(
                    "acme".to_owned(),
                    Arc::new(component),
                    Arc::default(),
                    terms,
                ),
            );
        }
    }

    /// Serves a client with this configuration. The first call must reach the plugin. Each further
    /// call must reach it or be rejected with a short retry time.
    fn serve(&self, config: &Config, plugin: Plugin) {
        assert!(
            config
                .clamp_messages()
                .iter()
                .all(|clamp| is_plain_line(clamp)),
            "{:?}",
            config.clamp_messages()
        );
        assert!(config.sandbox_settings().is_ok());
        // When a plugin crashes, this duration is added to the clock.
        assert!(
            Instant::now()
                .checked_add(config.circuit_breaker.disable_duration)
                .is_some(),
            "{:?}",
            config.circuit_breaker
        );
        let rates = [
            config.caller_rate_limit,
            plugin.terms.rate_limit.map(|rate| rate.limit),
        ];
        let longest = rates.into_iter().flatten().map(|rate| rate.per).max();
        let candidate = PluginState {
            plugin: Some(Arc::new(plugin)),
            ..PluginState::default()
        };
        let snapshot = assemble(&BTreeMap::from([("acme".to_owned(), candidate)]), true);
        for problem in snapshot
            .plugins
            .values()
            .flat_map(|report| &report.problems)
        {
            assert!(is_plain_line(problem), "{problem:?}");
        }
        let names: Vec<String> = snapshot.tools.keys().cloned().collect();
        let (publisher, catalog) = channel();
        publisher.publish(snapshot);
        self.runtime.block_on(async {
            let server = Server::with_catalog(config.clone(), self.sandbox.clone(), catalog);
            let server = server
                .unwrap_or_else(|error| unreachable!("the configuration names no files: {error}"));
            let (mut peer, reader, writer) = Peer::connected();
            let serving = server.serve_stdio(reader, writer, CancellationToken::new());
            let talking = async move {
                let begun = peer.initialize().await;
                let instructions = begun
                    .get("instructions")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                assert!(
                    instructions.starts_with(config.server.instructions.trim_end()),
                    "{instructions:?}"
                );
                assert_eq!(peer.list(None).await, (names.clone(), None));
                for name in names {
                    for number in 0..3 {
                        let answer = peer.ask("tools/call", &json!({"name": name})).await;
                        if !reached_plugin(&answer) {
                            assert!(number > 0, "the first call: {answer}");
                            let wait = retry_after(&answer);
                            assert!(
                                wait <= longest.unwrap_or_default().max(BUSY),
                                "{wait:?} of {rates:?}"
                            );
                        }
                    }
                }
            };
            let (ended, ()) = tokio::join!(serving, talking);
            assert!(ended.is_ok(), "{ended:?}");
        });
    }
}

/// Returns a component with one tool and without code: an admitted call ends with an internal
/// error.
fn component() -> LoadedComponent {
    let schema = r#"{"type":"object"}"#.to_owned();
    let tool = ToolDefinition {
        name: TOOL.to_owned(),
        input_schema: schema,
        ..ToolDefinition::default()
    };
    let description = ComponentDescription {
        tools: vec![tool],
        ..ComponentDescription::default()
    };
    LoadedComponent::without_code(
        ComponentContents::validate(description).unwrap_or_else(|error| unreachable!("{error}")),
    )
}

/// Returns the terms of an accepted grant, unless one of its secrets cannot be redacted.
fn granted(
    rules: &LoadPolicy,
    component: &LoadedComponent,
    grant: Grant,
    text: &str,
) -> Option<PluginTerms> {
    for (key, value) in grant.config_values() {
        assert!(
            !value.contains("__toml") || text.contains("__toml"),
            "{key} = {value}"
        );
    }
    let mounts = grant.permissions.mounts.clone();
    for mount in &mounts {
        assert!(
            mount.guest.starts_with('/') && !mount.guest.split('/').any(|part| part == ".."),
            "{mount:?}"
        );
        assert!(mount.host.is_absolute(), "{mount:?}");
    }
    let secrets = grant.secret_specs().ok()?;
    let fixed = FixedSecrets::with_test_values(&secrets, |name| Some(name.repeat(3)));
    let kept = grant
        .build_secrets("acme.toml", Path::new(FOLDER), secrets, fixed)
        .ok()?;
    let (terms, remarks) = rules.clamp_grant(component, grant, kept);
    for environment in terms
        .tools
        .values()
        .map(|tool| &tool.context)
        .chain([&terms.context])
    {
        assert!(
            within(&environment.limits, &rules.ceiling),
            "{:?}",
            environment.limits
        );
        assert_eq!(environment.permissions.mounts, mounts);
    }
    for remark in remarks {
        assert!(!remark.contains(FOLDER), "{remark}");
    }
    Some(terms)
}

/// Returns whether a call was admitted. Such a call fails because the plugin has no code.
fn reached_plugin(answer: &Value) -> bool {
    let Some(code) = answer.pointer("/error/code") else {
        return false;
    };
    assert_eq!(code, INTERNAL_ERROR, "{answer}");
    true
}

/// Returns the time after which a rejected call can be retried.
fn retry_after(answer: &Value) -> Duration {
    let meta = |key: &str| answer.pointer(&format!("/result/_meta/dev.toolbay~1{key}"));
    let kind = meta("error").and_then(Value::as_str);
    assert!(
        kind.is_some_and(|kind| ["busy", "rate-limited"].contains(&kind)),
        "{answer}"
    );
    match meta("retry-after-ms").and_then(Value::as_u64) {
        // Rounded up, so that a client does not retry too early.
        Some(wait) => Duration::from_millis(wait.saturating_sub(1)),
        None => unreachable!("no time to wait: {answer}"),
    }
}

fn configuration(text: &str) -> Result<Config, String> {
    let (variables, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("TOOLBAY_"));
    let pair = |line: &&str| {
        line.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let variables: Vec<(String, String)> = variables.iter().filter_map(pair).collect();
    // The directory must exist, so that the whole configuration is checked.
    let flags = Flags {
        plugins: Some(".".into()),
        ..Flags::default()
    };
    Config::from_text(&lines.join("\n"), &variables, &flags).map_err(|error| error.to_string())
}

/// Returns whether no limit exceeds its ceiling.
fn within(limits: &Limits, ceiling: &Limits) -> bool {
    limits
        .amounts()
        .zip(ceiling.amounts())
        .all(|((_, limit), (_, most))| limit <= most)
}
