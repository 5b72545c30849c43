//! Recognition of WASI 0.3 interface names.

/// Returns whether an interface belongs to WASI 0.3, including its release candidates.
pub(crate) fn is_wasi_p3(interface: &str) -> bool {
    interface_version(interface)
        .is_some_and(|version| version == "0.3" || version.starts_with("0.3."))
}

/// Returns whether an interface belongs to a release candidate of WASI 0.3.
pub(crate) fn is_wasi_p3_candidate(interface: &str) -> bool {
    is_wasi_p3(interface)
        && interface_version(interface).is_some_and(|version| version.contains('-'))
}

fn interface_version(interface: &str) -> Option<&str> {
    Some(interface.strip_prefix("wasi:")?.split_once('@')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wasi_has_a_version_of_wasi() {
        let newer = |name: &str| (is_wasi_p3(name), is_wasi_p3_candidate(name));
        assert_eq!(newer("wasi:cli/stdout@0.3.0"), (true, false));
        assert_eq!(newer("wasi:cli/stdout@0.3.17"), (true, false));
        assert_eq!(newer("wasi:cli/stdout@0.3.0-rc-2026-03-15"), (true, true));
        for other in [
            "wasi:cli/stdout@0.2.3",
            "wasi:cli/stdout@0.30.0",
            "acme:cli/stdout@0.3.0",
            "wasi:cli/stdout",
            "",
        ] {
            assert_eq!(newer(other), (false, false), "{other}");
        }
    }
}
