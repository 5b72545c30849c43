//! Promised restrictions that a Landlock version does not support.

/// Restrictions by the Landlock version that introduced them. Version 2 adds none: without it,
/// moving a file to another directory is always denied.
const RESTRICTION_VERSIONS: [(u32, &str); 6] = [
    (1, "reading, writing and starting files elsewhere"),
    (3, "truncating files elsewhere"),
    (4, "listening on TCP ports"),
    (5, "requests to devices"),
    (6, "signals to other processes"),
    (6, "abstract Unix sockets of other processes"),
];

/// Returns the promised restrictions that Landlock does not enforce on a kernel with this version,
/// each as the end of a sentence. `is_fully_enforced` states whether all requested restrictions are
/// enforced. `covers_all_threads` states whether they apply to every thread of the process.
pub(crate) fn missing_restrictions(
    version: u32,
    is_fully_enforced: bool,
    covers_all_threads: bool,
) -> Vec<String> {
    let unsupported: Vec<_> = RESTRICTION_VERSIONS
        .iter()
        .filter(|(since, _)| *since > version)
        .collect();
    let mut missing = Vec::new();
    if !unsupported.is_empty() {
        let list: Vec<_> = unsupported
            .iter()
            .map(|(since, restriction)| format!("{restriction} (since version {since})"))
            .collect();
        missing.push(format!(
            "version {version} does not prevent {}",
            list.join(", ")
        ));
    }
    if !covers_all_threads {
        missing.push("threads that existed before are not confined".to_owned());
    }
    // The kernel does not report which other restrictions it leaves out.
    if !is_fully_enforced && missing.is_empty() {
        missing.push("the kernel enforces only a part of it".to_owned());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_lacks_the_restrictions_of_later_ones() {
        let words = [
            "elsewhere",
            "truncating",
            "TCP ports",
            "devices",
            "signals",
            "abstract",
        ];
        for (version, lacking) in [
            (0, 6),
            (1, 5),
            (2, 5),
            (3, 4),
            (4, 3),
            (5, 2),
            (6, 0),
            (7, 0),
            (8, 0),
            (9, 0),
        ] {
            let message = missing_restrictions(version, lacking == 0, true).join("; ");
            let (has, lacks) = words.split_at(words.len() - lacking);
            assert!(
                lacks.iter().all(|word| message.contains(word)),
                "{version}: {message}"
            );
            // The first restriction's text is contained in the second's.
            assert!(
                has.iter().skip(1).all(|word| !message.contains(word)),
                "{version}: {message}"
            );
            assert_eq!(message.is_empty(), lacking == 0, "{version}: {message}");
        }
        assert!(missing_restrictions(1, false, true)[0].starts_with(
            "version 1 does not prevent truncating files elsewhere (since version 3)"
        ));
    }

    #[test]
    fn partial_enforcement_is_reported_for_every_version() {
        assert_eq!(
            missing_restrictions(7, false, true),
            ["the kernel enforces only a part of it"]
        );
        assert_eq!(
            missing_restrictions(7, false, false),
            ["threads that existed before are not confined"]
        );
        assert_eq!(missing_restrictions(7, true, true), [""; 0]);
        assert_eq!(missing_restrictions(3, false, false).len(), 2);
    }
}
