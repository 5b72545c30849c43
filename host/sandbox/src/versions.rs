//! The versions of the contract that are served.

/// The versions that are served, oldest first, each with its WIT: what a core module needs to become a component.
pub(crate) const SERVED: [(&str, &str); 2] = [
    ("0.1.0", include_str!("../../../wit/0.1.0/plugin.wit")),
    ("0.2.0", include_str!("../../../wit/0.2.0/plugin.wit")),
];

/// The versions that are served, as people read them: `0.1.0 and 0.2.0`.
pub(crate) fn served() -> String {
    SERVED.map(|(version, _)| version).join(" and ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_is_named() {
        assert_eq!(super::served(), "0.1.0 and 0.2.0");
    }
}
