//! Tests of `uri_template`.

use proptest::prelude::*;

use super::*;
use crate::resource_uri::uri::MAX_URI_BYTES;

fn matches(template: &str, uri: &str) -> bool {
    UriTemplate::parse(template).unwrap().matches(uri)
}

#[test]
fn a_variable_stands_for_one_segment_and_a_reserved_one_for_any_text() {
    for (template, uri) in [
        ("x://{id}", "x://a"),
        ("x://{id}/data", "x://123/data"),
        ("x://{+path}", "x://a/b?c#d"),
        ("x://{a}/{b}", "x://1/2"),
        ("x://{a}-{b}", "x://1-2-3"),
        ("x://{+path}/{id}", "x://a/b/c"),
        ("x://{a}.{+b}.md", "x://v.1.2.md.md"),
        ("x://{a}aab{b}", "x://aaaabb"),
        ("x://{a}?q={q}", "x://a?q=b%20c"),
    ] {
        assert!(matches(template, uri), "{template} {uri}");
    }
    for (template, uri) in [
        ("x://{id}", "x://"),
        ("x://{id}", "x://a/b"),
        ("x://{id}", "x://a?b"),
        ("x://{id}", "x://a#b"),
        ("x://{id}", "y://a"),
        ("x://{id}/data", "x:///data"),
        ("x://{id}/data", "x://a/data/"),
        ("x://{+path}", "x://"),
        ("x://{a}-{b}", "x://12"),
        ("x://{a}/{b}", "x://1/2/3"),
        ("x://{id}", "x://a b"),
        ("x://{id}", "x://ü"),
        ("x://{id}", "x://%2"),
    ] {
        assert!(!matches(template, uri), "{template} {uri}");
    }
}

#[test]
fn no_uri_with_a_parent_segment_matches() {
    for uri in [
        "x://a/../b",
        "x://..",
        "x://a/..",
        "x://%2e%2e/b",
        "x://%2E./b",
        "x://a%2f..%2fb",
        "x://a%5c..%5Cb",
        "x://a?p=../b",
        "x://a?p=b&q=..",
    ] {
        assert!(!matches("x://{+path}", uri), "{uri}");
    }
    // A plugin uses the value as a path, and not the whole URI.
    for (template, uri) in [
        ("x://file-{+path}", "x://file-../b"),
        ("x://file-{+path}", "x://file-%2e%2e%2fb"),
        ("x://{+path}-file", "x://a/..-file"),
        ("x://{+path}.md", "x://a/...md"),
        ("x://{a}-{b}", "x://a-.."),
        ("x://{a}2{b}", "x://%2e"),
    ] {
        assert!(!matches(template, uri), "{template} {uri}");
    }
    for uri in ["x://a..b", "x://...", "x://a/.b", "x://a/..b"] {
        assert!(matches("x://{+path}", uri), "{uri}");
    }
    let longest = format!("x://{}", "a".repeat(MAX_URI_BYTES - 4));
    assert!(matches("x://{id}", &longest));
    assert!(!matches("x://{id}", &format!("{longest}a")));
}

#[test]
fn mistakes_say_what_is_wrong() {
    let long = format!("x:{{a}}{}", "a".repeat(MAX_TEMPLATE_BYTES));
    let many = format!(
        "x:{}",
        (0..17).fold(String::new(), |all, n| format!("{all}/{{a{n}}}"))
    );
    let templates = [
        "",
        "x://a",
        "{a}",
        "a/{b}",
        "x:{",
        "x:{a",
        "x:{}",
        "x:{+}",
        "x:{a}}",
        "x:{a}{b}",
        "x:{a}/{a}",
        "x:{#a}",
        "x:{/a}",
        "x:{?a,b}",
        "x:{a,b}",
        "x:{a*}",
        "x:{a:3}",
        "x:{a-b}",
        "x:{ü}",
        "x:{a}/ü",
        "x:{a}/%2",
        "x:../{a}",
        "x:{a}/%2e%2e/b",
        "x:{a}/../b",
        "x:{{a}}",
        &long,
        &many,
    ];
    let said: Vec<String> = templates
        .iter()
        .map(|template| UriTemplate::parse(template).expect_err(template))
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn the_names_of_variables_are_those_to_complete() {
    let template = UriTemplate::parse("x://{folder}/{+path}.md").unwrap();
    assert_eq!(template.variables().collect::<Vec<_>>(), ["folder", "path"]);
}

#[test]
fn the_worst_uri_takes_as_long_as_any_other() {
    // Trying all splits one after the other would take longer than the age of the universe.
    let template = UriTemplate::parse(&format!(
        "x:{}b",
        (0..16).fold(String::new(), |all, n| format!("{all}{{+v{n}}}a"))
    ))
    .unwrap();
    let uri = format!("x:{}", "a".repeat(MAX_URI_BYTES - 2));
    assert!(!template.matches(&format!("{}cb", &uri[..MAX_URI_BYTES - 2])));
    assert!(!template.matches(&uri));
}

/// Like [`UriTemplate::matches`], but tries all splits. Only for short texts.
fn slowly(parts: &[UriTemplatePart], rest: &[u8]) -> bool {
    let Some((part, others)) = parts.split_first() else {
        return rest.is_empty();
    };
    (1..=rest.len())
        .take_while(|end| part.is_reserved || !b"/?#".contains(&rest[end - 1]))
        .filter(|end| !has_parent_segment(std::str::from_utf8(&rest[..*end]).unwrap()))
        .any(|end| {
            rest[end..]
                .strip_prefix(&*part.text.text)
                .is_some_and(|rest| slowly(others, rest))
        })
}

proptest! {
    #[test]
    fn matching_is_the_same_as_trying_all_ways(
        template in "x:(\\{\\+?a\\})?[ab/]{0,3}\\{\\+?b\\}([ab/]{1,4}\\{\\+?c\\})?[ab/?]{0,3}",
        uri in "x:[ab/?.]{0,12}",
    ) {
        let Ok(template) = UriTemplate::parse(&template) else { return Ok(()) };
        let expected = !has_parent_segment(&uri)
            && uri.strip_prefix(&*template.prefix).is_some_and(|rest| slowly(&template.parts, rest.as_bytes()));
        prop_assert_eq!(template.matches(&uri), expected);
    }

    #[test]
    fn uris_that_are_built_from_a_template_match(a in "[a-z0-9%._~-]{1,20}", b in "[a-z/?#=&]{1,20}") {
        let uri = format!("x://{a}/{b}.md");
        let valid = check_characters(&uri).is_ok() && !has_parent_segment(&uri);
        prop_assert_eq!(matches("x://{a}/{+b}.md", &uri), valid);
    }

    #[test]
    fn no_text_makes_it_panic(template in "\\PC*", uri in "\\PC*") {
        if let Ok(template) = UriTemplate::parse(&template) {
            template.matches(&uri);
        }
        if let Ok(template) = UriTemplate::parse(&format!("x:{template}{{a}}")) {
            template.matches(&format!("x:{uri}"));
        }
    }

    #[test]
    fn no_match_leaves_the_folder(path in "([a-c]|\\.|/|%2e|%2E|%2f|%5c|\\?|=){0,16}") {
        let uri = format!("x://root/{path}");
        if matches("x://root/{+path}", &uri) {
            let decoded = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
            prop_assert!(!decoded.split(['/', '\\']).any(|segment| segment == ".."), "{}", uri);
        }
    }
}
