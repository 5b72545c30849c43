//! Tests of `path`.

use super::*;

#[test]
fn dot_segments_are_resolved_as_by_the_url_standard() {
    let paths = [
        "/",
        "/v1",
        "/v1/",
        "/.",
        "/..",
        "/v1/.",
        "/v1/..",
        "/v1/./x",
        "/v1/../x",
        "/../../x",
        "/a/b/../../c/",
        "/v1/x/..",
        "/...",
        "/v1/.x",
        "/v1//x",
        "//x",
        "/%C3%BC",
    ];
    for path in paths {
        let url = url::Url::parse(&format!("http://a.example{path}")).unwrap();
        assert_eq!(normalize_path(path).as_deref(), Ok(url.path()), "{path}");
    }
}

#[test]
fn ambiguous_paths_are_errors() {
    let paths = [
        "",
        "x",
        "*",
        "/%2e",
        "/%2E%2e/x",
        "/a%2fb",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
        "/a b",
        "/a\tb",
        "/a\u{7f}",
        "/ü",
        "/%00",
        "/%0d%0a",
        "/%7f",
        "/%",
        "/%2",
        "/%zz",
        "/%u002e",
        "/%252e",
        "/%25%32%65",
        "/%252525252e",
        "/%c0%ae",
        "/%ff",
        "/..;/x",
        "/.;a=1/x",
        "/..%3b/x",
        "/..%20/x",
        "/v1//../x",
        "/v1/..//x",
        "/%2525252525252541",
    ];
    for path in paths {
        assert_eq!(normalize_path(path), Err(AmbiguousPath), "{path}");
    }
}

#[test]
fn harmless_encodings_are_converted_to_upper_case() {
    for (path, resolved) in [
        ("/%c3%bc/x", "/%C3%BC/x"),
        ("/100%25", "/100%25"),
        ("/a%20b", "/a%20b"),
        ("/%41%2541", "/%41%2541"),
        ("/a;b=c/..a", "/a;b=c/..a"),
    ] {
        assert_eq!(normalize_path(path).as_deref(), Ok(resolved));
    }
}

#[test]
fn a_prefix_ends_at_a_segment() {
    for (prefix, path, covered) in [
        ("/", "/", true),
        ("/", "/x", true),
        ("/v1", "/v1", true),
        ("/v1", "/v1/", true),
        ("/v1", "/v1/x", true),
        ("/v1", "/v10", false),
        ("/v1", "/v1;a", false),
        ("/v1", "/V1", false),
        ("/v1/", "/v1", false),
        ("/v1/", "/v1/", true),
        ("/v1/", "/v1/x/y", true),
        ("/v1/", "/v2/", false),
        ("/%c3%bc", "/%C3%BC/x", true),
    ] {
        let covers = PathPrefix::parse(prefix)
            .unwrap()
            .covers(&normalize_path(path).unwrap());
        assert_eq!(covers, covered, "{prefix} {path}");
    }
}
