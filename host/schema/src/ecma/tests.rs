//! Tests of `ecma`.

use super::*;

#[test]
fn patterns_of_ecma_262_are_accepted() {
    let patterns = [
        "",
        "^a$",
        "a|b",
        "(a)(?:b)(?<c>d)\\1\\k<c>",
        "(?=a)(?!b)(?<=c)(?<!d)",
        "a*?b+?c??d{2}e{2,}f{2,3}?",
        "[^a-z\\d_.-]",
        "[\\w\\-.]",
        "\\p{Lu}\\P{Script=Greek}",
        "\\u{1f600}\\u0041\\x41\\cA\\0",
        "[]",
        "[^]",
        "[a-]",
        "[-a]",
        "\\/\\.",
        "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        "[\\b]",
        "\\bword\\b",
        "[[a]",
        "\\2(a)(b)",
        "[\\ud83d\\ude00-\\ud83d\\ude01]",
        "[(){}*+?.|^$]",
    ];
    for pattern in patterns {
        assert_eq!(check_pattern(pattern).err(), None, "{pattern}");
    }
}

#[test]
fn other_patterns_are_rejected_with_their_location_and_a_replacement() {
    let patterns = [
        "(?i)^x$",
        "(?P<n>x)",
        "(?x) a b",
        "\\Ax\\z",
        "[[:alpha:]]",
        "a++",
        "\\h",
        "(?>a)",
        "(?#c)",
        "(?P=n)",
        "(?i:a)",
        "(?'n'x)",
        "a{,3}",
        "a{3,2}",
        "{",
        "}",
        "]",
        "a)",
        "(a",
        "[a",
        "\\",
        "*",
        "^*",
        "(?=a)*",
        "a**",
        "\\_",
        "\\@",
        "\\Q",
        "[\\w-.]",
        "[z-a]",
        "\\1",
        "\\k<n>",
        "\\k",
        "\\07",
        "\\x{41}",
        "\\xg",
        "\\pL",
        "\\p{Greek}",
        "\\p{^L}",
        "\\p{sc=}",
        "(?<1>a)",
        "(?<a>x)(?<a>y)",
        "\\u{110000}",
        "[\\1]",
        "[[:foo:]]",
        "(?R)",
        "(?1)",
        "\\a\\e",
    ];
    let said: Vec<String> = patterns
        .iter()
        .map(|pattern| check_pattern(pattern).unwrap_err())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn syntax_that_engines_do_not_support_is_rewritten() {
    for (pattern, written) in [
        (r"(?<year>\d{4})\k<year>1", r"(\d{4})(?:\1)1"),
        (r"\k<b>(?<a>x)(y)(?<b>z)", r"(?:\3)(x)(y)(z)"),
        (r"(?<a>x)\1", r"(x)\1"),
        ("[]|[^]", r"[^\x00-\u{10ffff}]|[\x00-\u{10ffff}]"),
        (r"\0[\b]\ud83d\ude00", r"\x00[\x08]\u{1f600}"),
    ] {
        assert_eq!(
            check_pattern(pattern).unwrap().engine_source.as_deref(),
            Some(written),
            "{pattern}"
        );
    }
    assert_eq!(check_pattern(r"(?<a>x)\b").unwrap().engine_source, None);
    let largest = check_pattern("a{2,}b{1,1000}c{7}").unwrap().largest_count;
    assert_eq!(largest.as_deref(), Some("at character 7, \"{1,1000}\""));
}

#[test]
fn a_class_is_scanned_once_even_with_many_possible_names() {
    // Searching for the end of each would take hours.
    check_pattern(&format!("[{}]", "[:a".repeat(400_000))).unwrap();
    let groups: Vec<String> = (0..20_000).map(|n| format!("(?<g{n}>a)")).collect();
    check_pattern(&groups.concat()).unwrap();
}

#[test]
fn quoted_parts_are_short() {
    let said = check_pattern(&format!("(?i){}", "a".repeat(10_000))).unwrap_err();
    assert!(said.len() < 400, "{said}");
    assert!(check_pattern(&"(".repeat(10_000)).is_err());
}
