//! Warnings about patterns in the configuration that match nothing.

use toolbay_catalog::Snapshot;

use crate::config::Config;

/// Warns about patterns of tokens, scopes and recordings that match no tool, prompt or resource.
pub(super) fn warn_unmatched(config: &Config, snapshot: &Snapshot) {
    let http = &config.http;
    let tokens = http.tokens.iter().flat_map(|token| {
        let patterns = token.tools.iter().flatten();
        patterns.map(move |pattern| (format!("http.tokens {:?}", token.name), pattern))
    });
    let scopes = http
        .oauth
        .iter()
        .flat_map(|oauth| &oauth.tools)
        .flat_map(|(scope, patterns)| {
            patterns
                .iter()
                .map(move |pattern| (format!("http.oauth.tools.{scope}"), pattern))
        });
    let recorded = config
        .record
        .tools
        .iter()
        .flatten()
        .map(|pattern| ("record.tools".to_owned(), pattern));
    for (setting, pattern) in tokens.chain(scopes).chain(recorded) {
        let names = snapshot.tools.keys().chain(snapshot.prompts.keys());
        let uris = snapshot
            .resources
            .keys()
            .chain(snapshot.templates.keys())
            .chain(snapshot.skill_files.keys());
        if !names.chain(uris).any(|name| pattern.matches(name)) {
            tracing::warn!(
                "{setting}: no tool, prompt or resource matches {:?}",
                pattern.to_string()
            );
        }
    }
}
