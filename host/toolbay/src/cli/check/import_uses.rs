//! The purposes of imports, for people.

/// Purpose and required permission of an interface, by the prefix of its name. The first match
/// applies.
const INTERFACE_USES: [(&str, &str); 13] = [
    (
        "toolbay:plugin/",
        "uses the host's log, progress, configuration and questions to the user (always allowed)",
    ),
    (
        "wasi:cli/environment",
        "uses environment variables (only those listed in permissions.environment)",
    ),
    (
        "wasi:cli/",
        "uses standard input and output, and exits (always allowed; output is captured)",
    ),
    ("wasi:clocks/", "uses clocks (always allowed)"),
    (
        "wasi:config/",
        "reads values of [config] in the grant (always allowed)",
    ),
    (
        "wasi:filesystem/",
        "uses files (only in folders listed in [[permissions.mounts]])",
    ),
    (
        "wasi:http/",
        "sends HTTP requests (only those listed in permissions.http)",
    ),
    (
        "wasi:io/",
        "uses streams, for its other imports (always allowed)",
    ),
    (
        "wasi:keyvalue/",
        "stores state between calls (only with [permissions.state])",
    ),
    (
        "wasi:logging/",
        "writes to the host's log (always allowed, within limits.log)",
    ),
    ("wasi:random/", "uses random numbers (always allowed)"),
    (
        "wasi:sockets/",
        "opens TCP connections (only those listed in permissions.tcp; UDP and listening are denied)",
    ),
    // Loading rejects any other interface that contains more than types.
    ("", "uses types of other interfaces (always allowed)"),
];

/// Returns the purposes of the imports, without duplicates.
pub(super) fn import_uses<'a>(imports: impl Iterator<Item = &'a String>) -> Vec<&'static str> {
    let mut words: Vec<&str> = Vec::new();
    for import in imports {
        let interface = INTERFACE_USES
            .iter()
            .find(|(start, _)| import.starts_with(start));
        words.extend(
            interface
                .map(|(_, words)| *words)
                .filter(|known| !words.contains(known)),
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use toolbay_sandbox::IMPORT_PREFIXES;

    use super::*;

    #[test]
    fn every_import_that_is_linked_has_a_use() {
        for prefix in IMPORT_PREFIXES {
            assert!(
                INTERFACE_USES.iter().any(|(known, _)| *known == prefix),
                "{prefix}"
            );
        }
        for (known, _) in INTERFACE_USES {
            assert!(
                known.is_empty()
                    || IMPORT_PREFIXES
                        .iter()
                        .any(|prefix| known.starts_with(prefix)),
                "{known}"
            );
        }
    }
}
