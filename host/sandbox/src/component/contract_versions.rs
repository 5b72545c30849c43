//! Supported versions of the contract.

/// Supported versions, oldest first, each with its WIT, which is used to turn a core module into a
/// component.
pub(crate) const SUPPORTED_VERSIONS: [(&str, &str); 2] = [
    ("0.1.0", include_str!("../../../../wit/0.1.0/plugin.wit")),
    ("0.2.0", include_str!("../../../../wit/0.2.0/plugin.wit")),
];

/// Returns the supported versions as text for messages: `0.1.0 and 0.2.0`.
pub(crate) fn supported_versions_text() -> String {
    SUPPORTED_VERSIONS.map(|(version, _)| version).join(" and ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_of_versions_is_readable() {
        assert_eq!(super::supported_versions_text(), "0.1.0 and 0.2.0");
    }
}
