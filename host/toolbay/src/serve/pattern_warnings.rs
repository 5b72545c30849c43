//! Warnings about patterns in the configuration that match nothing.

use toolbay_catalog::Snapshot;
use toolbay_mcp::NamePattern;

use crate::config::Config;

/// Returns a message for each pattern of tokens, scopes and recordings that matches no tool, prompt
/// or resource.
pub(crate) fn unmatched_patterns(config: &Config, snapshot: &Snapshot) -> Vec<String> {
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
    let is_unmatched = |pattern: &NamePattern| {
        let names = snapshot.tools.keys().chain(snapshot.prompts.keys());
        let uris = snapshot
            .resources
            .keys()
            .chain(snapshot.templates.keys())
            .chain(snapshot.skill_files.keys());
        !names.chain(uris).any(|name| pattern.matches(name))
    };
    tokens
        .chain(scopes)
        .chain(recorded)
        .filter(|(_, pattern)| is_unmatched(pattern))
        .map(|(setting, pattern)| {
            format!(
                "{setting}: no tool, prompt or resource matches {:?}",
                pattern.to_string()
            )
        })
        .collect()
}
