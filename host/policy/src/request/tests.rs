//! Tables of allowed and denied requests, one case per line.

use toolbay_settings::toml_file;

use super::*;

/// Returns the entries of `permissions.http` in a grant.
pub(crate) fn rules(http: &str) -> Vec<HttpRule> {
    #[derive(serde::Deserialize)]
    struct Permissions {
        http: Vec<HttpRule>,
    }
    toml_file::parse_document::<Permissions>(http)
        .unwrap_or_else(|error| panic!("{error}"))
        .http
}

/// Returns the origin and the rule of an allowed request, or the reason for a denied one in one
/// word.
fn verdict(request: HttpRequest<'_>, rules: &[HttpRule]) -> String {
    match request.check(rules) {
        Ok(AllowedRequest {
            origin,
            rule_index: rule,
        }) => format!("{origin} by {rule}"),
        Err(DenialReason::Authority(malformed)) => format!("{malformed:?}"),
        Err(denied) => format!("{denied:?}").split('(').next().unwrap().to_owned(),
    }
}

/// Checks every case and reports all differences.
fn table<T: std::fmt::Debug + Copy>(cases: &[(T, &str)], verdict: impl Fn(T) -> String) {
    let differ: Vec<String> = cases
        .iter()
        .map(|(case, expected)| (case, expected, verdict(*case)))
        .filter(|(_, expected, verdict)| verdict != *expected)
        .map(|(case, expected, verdict)| {
            format!("{case:?}: expected {expected:?}, not {verdict:?}")
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The grant for [`AUTHORITIES`].
const HTTP: &str = r#"http = [
    "https://api.example.com",
    "https://*.example.org",
    "https://bücher.example",
    "https://[2606:4700::6810:84e5]",
    "https://93.184.215.14",
    "https://localhost:8443",
    "https://[::ffff:10.0.0.7]",
    "https://a_b.example:444",
]"#;

/// Authorities over https, and the expected verdict. A number is the index of an entry in [`HTTP`].
const AUTHORITIES: &[(&str, &str)] = &[
    // Spellings of an allowed host.
    ("api.example.com", "https://api.example.com by 0"),
    ("API.Example.COM", "https://api.example.com by 0"),
    ("api.example.com.", "https://api.example.com by 0"),
    ("api.example.com:443", "https://api.example.com by 0"),
    ("api.example.com.:443", "https://api.example.com by 0"),
    ("ａｐｉ.example.com", "https://api.example.com by 0"),
    ("api\u{ad}.example.com", "https://api.example.com by 0"),
    ("a_b.example:444", "https://a_b.example:444 by 7"),
    // Names that resemble an allowed one.
    ("example.com", "Host"),
    ("api.example.com.evil.example", "Host"),
    ("evil-api.example.com", "Host"),
    ("evil.api.example.com", "Host"),
    ("api.example.co", "Host"),
    ("api-example.com", "Host"),
    ("xapi.example.com", "Host"),
    ("аpi.example.com", "Host"),
    ("evil.example", "Host"),
    ("com", "Host"),
    // Subdomains.
    ("a.example.org", "https://a.example.org by 1"),
    ("a.b.example.org", "https://a.b.example.org by 1"),
    ("A.EXAMPLE.ORG.", "https://a.example.org by 1"),
    (
        "münchen.example.org",
        "https://xn--mnchen-3ya.example.org by 1",
    ),
    ("example.org", "Host"),
    ("example.org.", "Host"),
    ("aexample.org", "Host"),
    ("evilexample.org", "Host"),
    ("a.example.org.evil.example", "Host"),
    (".example.org", "EmptyLabel"),
    ("*.example.org", "Name"),
    // IDNA.
    ("bücher.example", "https://xn--bcher-kva.example by 2"),
    ("BÜCHER.example", "https://xn--bcher-kva.example by 2"),
    (
        "bu\u{308}cher.example",
        "https://xn--bcher-kva.example by 2",
    ),
    (
        "xn--bcher-kva.example",
        "https://xn--bcher-kva.example by 2",
    ),
    (
        "XN--BCHER-KVA.example",
        "https://xn--bcher-kva.example by 2",
    ),
    ("bucher.example", "Host"),
    ("xn--.example.org", "Name"),
    ("xn--a.example.org", "Name"),
    ("xn--zz--zz.example.org", "Name"),
    ("a\u{202e}b.example.org", "Name"),
    ("\u{ad}", "Empty"),
    ("\u{fffd}.example.org", "Name"),
    // Characters that look like dots or other ASCII.
    ("api。example。com", "Dot"),
    ("api．example.com", "Dot"),
    ("api.example｡com", "Dot"),
    ("evil.example。example.org", "Dot"),
    ("a․example.org", "Name"),
    ("api.example.com／evil", "Name"),
    ("user＠api.example.com", "Name"),
    ("api.example.com：80", "Name"),
    ("api％2eexample.com", "Name"),
    ("＊.example.org", "Name"),
    // Labels and lengths.
    ("", "Empty"),
    (".", "EmptyLabel"),
    ("..", "EmptyLabel"),
    ("a..example.org", "EmptyLabel"),
    ("api.example.com..", "EmptyLabel"),
    // Ports. As in the URL standard, leading zeros are ignored, and a port without digits is the
    // default.
    ("api.example.com:", "https://api.example.com by 0"),
    ("api.example.com:0443", "https://api.example.com by 0"),
    ("localhost:8443", "https://localhost:8443 by 5"),
    ("localhost:08443", "https://localhost:8443 by 5"),
    ("localhost", "OtherPort"),
    ("localhost:443", "OtherPort"),
    ("localhost:8444", "OtherPort"),
    ("api.example.com:80", "OtherPort"),
    ("api.example.com:8443", "OtherPort"),
    ("api.example.com:0", "Port"),
    ("api.example.com:00", "Port"),
    ("api.example.com:65535", "OtherPort"),
    ("api.example.com:65536", "Port"),
    ("api.example.com:65979", "Port"),
    ("api.example.com:99999999999999999999443", "Port"),
    ("api.example.com:80:443", "Port"),
    ("api.example.com::443", "Port"),
    ("api.example.com:+443", "Port"),
    ("api.example.com:-443", "Port"),
    ("api.example.com:4_43", "Port"),
    ("api.example.com:0x1bb", "Port"),
    ("api.example.com:４４３", "Port"),
    ("api.example.com:443a", "Port"),
    (":443", "Empty"),
    (":", "Empty"),
    // User information, and characters that a parser may interpret as the end of a host.
    ("api.example.com@evil.example", "Userinfo"),
    ("user@api.example.com", "Userinfo"),
    ("user:password@api.example.com", "Userinfo"),
    ("@api.example.com", "Userinfo"),
    ("api.example.com@", "Userinfo"),
    ("a@b@api.example.com", "Userinfo"),
    ("api.example.com:443@evil.example", "Userinfo"),
    ("api.example.com\\@evil.example", "Character"),
    ("api.example.com#@evil.example", "Character"),
    ("evil.example?api.example.com", "Character"),
    ("evil.example/api.example.com", "Character"),
    ("evil.example\\api.example.com", "Character"),
    ("evil.example#.example.org", "Character"),
    ("//api.example.com", "Character"),
    ("https://api.example.com", "Character"),
    ("https:api.example.com", "Port"),
    // Spaces, controls and encodings.
    (" api.example.com", "Character"),
    ("api.example.com ", "Character"),
    ("api.example.com\t", "Character"),
    ("api.exa\nmple.com", "Character"),
    ("api.example.com\r\nHost: evil.example", "Character"),
    ("api.example.com\0", "Character"),
    ("api.example.com\u{7f}", "Character"),
    ("api.example.com\u{85}", "Character"),
    ("api.example.com\u{a0}", "Character"),
    ("api.example.com\u{2028}", "Character"),
    ("api%2eexample.com", "Percent"),
    ("%61pi.example.com", "Percent"),
    ("api.example.com%00.evil.example", "Percent"),
    ("evil.example%2f.example.org", "Percent"),
    ("a<b.example.org", "Name"),
    ("a|b.example.org", "Name"),
    ("a!b.example.org", "Name"),
    ("a,b.example.org", "Name"),
    ("a\"b.example.org", "Name"),
    // IPv4 addresses in every spelling.
    ("93.184.215.14", "https://93.184.215.14 by 4"),
    ("93.184.215.14.", "https://93.184.215.14 by 4"),
    ("0x5d.184.215.14", "https://93.184.215.14 by 4"),
    ("1572394766", "https://93.184.215.14 by 4"),
    ("93.184.215.15", "IpLiteral"),
    ("127.0.0.1", "IpLiteral"),
    ("127.1", "IpLiteral"),
    ("127.0.1", "IpLiteral"),
    ("2130706433", "IpLiteral"),
    ("0x7f000001", "IpLiteral"),
    ("0x7f.1", "IpLiteral"),
    ("0X7F.0.0.1", "IpLiteral"),
    ("0177.0.0.1", "IpLiteral"),
    ("017700000001", "IpLiteral"),
    ("127.0.0.1.", "IpLiteral"),
    ("0", "IpLiteral"),
    ("0x", "IpLiteral"),
    ("169.254.169.254", "IpLiteral"),
    ("0xa9fea9fe", "IpLiteral"),
    ("2852039166", "IpLiteral"),
    ("169.254.43518", "IpLiteral"),
    ("127.0.0.1:443", "IpLiteral"),
    ("256.0.0.1", "Address"),
    ("1.2.3.4.5", "Address"),
    ("4294967296", "Address"),
    ("127.0.0.08", "Address"),
    ("api.example.0x7f", "Address"),
    ("a.example.org.1", "Address"),
    ("１２７.0.0.1", "Address"),
    ("127。0。0。1", "Address"),
    ("①②⑦.0.0.1", "Address"),
    // IPv6.
    (
        "[2606:4700::6810:84e5]",
        "https://[2606:4700::6810:84e5] by 3",
    ),
    (
        "[2606:4700:0::6810:84E5]",
        "https://[2606:4700::6810:84e5] by 3",
    ),
    (
        "[2606:4700::104.16.132.229]",
        "https://[2606:4700::6810:84e5] by 3",
    ),
    (
        "[2606:4700::6810:84e5]:0443",
        "https://[2606:4700::6810:84e5] by 3",
    ),
    ("[2606:4700::6810:84e5]:8443", "OtherPort"),
    ("[::ffff:10.0.0.7]", "https://[::ffff:10.0.0.7] by 6"),
    ("[::ffff:a00:7]", "https://[::ffff:10.0.0.7] by 6"),
    ("10.0.0.7", "IpLiteral"),
    ("[::ffff:93.184.215.14]", "IpLiteral"),
    ("[::1]", "IpLiteral"),
    ("[::]", "IpLiteral"),
    ("[::ffff:169.254.169.254]", "IpLiteral"),
    ("[fd00:ec2::254]", "IpLiteral"),
    ("[64:ff9b::a9fe:a9fe]", "IpLiteral"),
    ("[fe80::1%25eth0]", "Percent"),
    ("[fe80::1%eth0]", "Percent"),
    ("[fe80::1", "Bracket"),
    ("[]", "Address"),
    ("[api.example.com]", "Address"),
    ("[::1]x", "Bracket"),
    ("[::1]443", "Bracket"),
    ("[::1]]", "Bracket"),
    ("[[::1]]", "Bracket"),
    ("[::1].example.org", "Bracket"),
    ("x[::1]", "Bracket"),
    ("::1", "Empty"),
    ("2606:4700::6810:84e5", "Port"),
    ("[v1.fe80]", "Address"),
];

/// Returns the verdict on an authority over https.
fn at(authority: &str) -> String {
    verdict(
        HttpRequest {
            scheme: "https",
            authority,
            method: "GET",
            path_with_query: "/",
        },
        &rules(HTTP),
    )
}

#[test]
fn authorities() {
    table(AUTHORITIES, at);
}

#[test]
fn long_authorities() {
    let label = "a".repeat(63);
    let longest = format!(
        "{}.{label}.{label}.{label}.example.org",
        "b".repeat(253 - 3 * 64 - 12)
    );
    let by_longest = format!("https://{longest} by 1");
    table(
        &[
            (
                format!("{label}.example.org").as_str(),
                format!("https://{label}.example.org by 1").as_str(),
            ),
            (&format!("a{label}.example.org"), "LabelLength"),
            (&longest, &by_longest),
            (&format!("{longest}."), &by_longest),
            (&format!("b{longest}"), "NameLength"),
            (
                &format!("api.example.com:{}443", "0".repeat(200)),
                "https://api.example.com by 0",
            ),
            (&format!("api.example.com:{}443", "0".repeat(240)), "Length"),
        ],
        at,
    );
}

#[test]
fn schemes() {
    let rules = rules(
        r#"http = ["https://tls.example", "http://plain.example", "http://both.example:443"]"#,
    );
    let cases = [
        (("https", "tls.example"), "https://tls.example by 0"),
        (("HTTPS", "tls.example"), "https://tls.example by 0"),
        (("http", "tls.example"), "OtherScheme"),
        (("http", "tls.example:443"), "OtherScheme"),
        (("http", "plain.example"), "http://plain.example by 1"),
        (("http", "plain.example:80"), "http://plain.example by 1"),
        (("http", "plain.example:443"), "OtherPort"),
        (("https", "plain.example"), "OtherScheme"),
        (("http", "both.example:443"), "http://both.example:443 by 2"),
        (("http", "both.example"), "OtherPort"),
        (("http", "169.254.169.254"), "IpLiteral"),
        (("ftp", "tls.example"), "Scheme"),
        (("file", ""), "Scheme"),
        (("ws", "plain.example"), "Scheme"),
        (("", "tls.example"), "Scheme"),
        (("https:", "tls.example"), "Scheme"),
        (("https ", "tls.example"), "Scheme"),
    ];
    table(&cases, |(scheme, authority)| {
        verdict(
            HttpRequest {
                scheme,
                authority,
                method: "GET",
                path_with_query: "/latest/meta-data/",
            },
            &rules,
        )
    });
}

#[test]
fn methods_and_paths() {
    let rules = rules(
        r#"http = [
            { origin = "https://a.example", methods = ["GET", "POST", "purge"], paths = ["/v1", "/files/"] },
            { origin = "https://a.example", methods = ["DELETE"] },
            { origin = "https://b.example", paths = ["/"] },
            "https://c.example",
        ]"#,
    );
    let first = "https://a.example by 0";
    let (second, third, fourth) = (
        "https://a.example by 1",
        "https://b.example by 2",
        "https://c.example by 3",
    );
    let cases = [
        // Methods.
        (("GET", "a", "/v1"), first),
        (("POST", "a", "/v1"), first),
        (("purge", "a", "/v1"), first),
        (("DELETE", "a", "/v1"), second),
        (("DELETE", "a", "/%2e%2e/x"), second),
        (("get", "a", "/v1"), "Method"),
        (("Get", "a", "/v1"), "Method"),
        (("PURGE", "a", "/v1"), "Method"),
        (("HEAD", "a", "/v1"), "Method"),
        (("PUT", "a", "/secret"), "Method"),
        (("get", "c", "/"), fourth),
        (("PROPFIND", "c", "/"), fourth),
        (("CONNECT", "c", "/"), "ForbiddenMethod"),
        (("connect", "c", "/"), "ForbiddenMethod"),
        (("TRACE", "c", "/"), "ForbiddenMethod"),
        (("Track", "c", "/"), "ForbiddenMethod"),
        (("", "c", "/"), "MalformedMethod"),
        (("GET ", "c", "/"), "MalformedMethod"),
        (("GET / HTTP/1.1\r\n", "c", "/"), "MalformedMethod"),
        (("GÉT", "c", "/"), "MalformedMethod"),
        // Prefixes of paths.
        (("GET", "a", "/v1/"), first),
        (("GET", "a", "/v1/x"), first),
        (("GET", "a", "/v1?a=/../b"), first),
        (("GET", "a", "/v1/?%2e%2e"), first),
        (("GET", "a", "/v1//x"), first),
        (("GET", "a", "/files/x"), first),
        (("GET", "a", "/v10"), "Path"),
        (("GET", "a", "/V1"), "Path"),
        (("GET", "a", "/files"), "Path"),
        (("GET", "a", "/"), "Path"),
        (("GET", "a", ""), "Path"),
        (("GET", "a", "?/v1"), "Path"),
        (("GET", "a", "//v1"), "Path"),
        (("GET", "a", "/x/v1"), "Path"),
        (("GET", "a", "/v1;x"), "Path"),
        (("GET", "a", "/%76%31"), "Path"),
        (("GET", "b", ""), third),
        (("GET", "b", "?a"), third),
        (("GET", "b", "/any/thing"), third),
        // Dot segments are resolved first.
        (("GET", "a", "/v1/./x"), first),
        (("GET", "a", "/x/../v1/y"), first),
        (("GET", "a", "/v1/x/../y"), first),
        (("GET", "a", "/v1/.."), "Path"),
        (("GET", "a", "/v1/../secret"), "Path"),
        (("GET", "a", "/v1/x/../../secret"), "Path"),
        (("GET", "a", "/../../v1/../secret"), "Path"),
        (("GET", "a", "/files/."), first),
        (("GET", "a", "/files/.."), "Path"),
        // Encodings that could hide a dot segment.
        (("GET", "a", "/v1/%2e%2e/secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/%2E./secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/..%2fsecret"), "AmbiguousPath"),
        (("GET", "a", "/v1/..%5Csecret"), "AmbiguousPath"),
        (("GET", "a", "/v1/..\\secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/%252e%252e/secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/%c0%ae%c0%ae/secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/..;/secret"), "AmbiguousPath"),
        (("GET", "a", "/v1//../secret"), "AmbiguousPath"),
        (("GET", "a", "/v1/%00"), "AmbiguousPath"),
        (("GET", "a", "/v1/%0d%0aHost:%20evil"), "AmbiguousPath"),
        (("GET", "a", "/v1/%zz"), "AmbiguousPath"),
        (("GET", "a", "/v1/ü"), "AmbiguousPath"),
        (("GET", "b", "/%2e%2e"), "AmbiguousPath"),
        (("GET", "c", "/%2e%2e/%5c"), fourth),
        (("GET", "c", "/\\x"), fourth),
        // Texts that are not request paths.
        (("GET", "c", "x"), "MalformedPath"),
        (("GET", "c", "@evil.example/"), "MalformedPath"),
        (("GET", "c", "https://evil.example/"), "MalformedPath"),
        (("GET", "c", "/a b"), "MalformedPath"),
        (("GET", "c", "/?a b"), "MalformedPath"),
        (("GET", "c", "/\r\nHost: evil.example"), "MalformedPath"),
        (("GET", "c", "/\0"), "MalformedPath"),
        (("GET", "c", "/#x"), "MalformedPath"),
        (("OPTIONS", "c", "*"), fourth),
        (("GET", "c", "*"), "MalformedPath"),
        (("OPTIONS", "b", "*"), "AmbiguousPath"),
    ];
    table(&cases, |(method, host, path_with_query)| {
        let authority = &format!("{host}.example");
        verdict(
            HttpRequest {
                scheme: "https",
                authority,
                method,
                path_with_query,
            },
            &rules,
        )
    });
}

#[test]
fn a_denial_is_a_sentence_for_the_model_and_a_line_for_the_operator() {
    let rules = rules(
        r#"http = [
            "https://api.example.com",
            { origin = "https://*.example.org", methods = ["GET"], paths = ["/v1/"] },
        ]"#,
    );
    let requests = [
        ("https", "evil.example", "GET", "/"),
        ("https", "evil.example:0444", "GET", "/"),
        ("http", "api.example.com", "GET", "/"),
        ("https", "api.example.com:8443", "GET", "/"),
        ("https", "a.example.org", "POST", "/v1/x"),
        ("https", "a.example.org", "POST", "/v2/x?q=1"),
        ("https", "a.example.org", "GET", "/v2/../v3"),
        ("https", "a.example.org", "GET", "/v1/..%2f"),
        ("https", "93.184.215.14", "GET", "/"),
        ("http", "0xa9fea9fe", "GET", "/"),
        ("https", "[64:ff9b::10.0.0.1]:8443", "GET", "/"),
        ("ftp", "evil.example", "GET", "/"),
        ("https", "api.example.com@evil.example", "GET", "/"),
        ("https", "api.example.com\\@evil.example", "GET", "/"),
        ("https", "127.0.0.256", "GET", "/"),
        ("https", "api.example.com", "GET\u{1b}", "/"),
        ("https", "api.example.com", "trace", "/"),
        ("https", "api.example.com", "GET", "/a b"),
    ];
    let messages: Vec<String> = requests
        .into_iter()
        .map(|(scheme, authority, method, path_with_query)| {
            let denied = HttpRequest {
                scheme,
                authority,
                method,
                path_with_query,
            }
            .check(&rules)
            .unwrap_err();
            let remedy = denied.remedy().unwrap_or_else(|| "(nothing)".to_owned());
            format!("{denied}\n    {}", remedy.replace('\n', "\n    "))
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
        https://evil.example is not among the origins that this tool may send requests to.
            http = ["https://evil.example"]
        https://evil.example:444 is not among the origins that this tool may send requests to.
            http = ["https://evil.example:444"]
        This tool may call api.example.com over https, and not over http.
            http = ["http://api.example.com"]
        This tool may call api.example.com at another port, and not at 8443.
            http = ["https://api.example.com:8443"]
        The method is not among those that this tool may use at https://a.example.org (case matters).
            http = [{ origin = "https://a.example.org", methods = ["POST"], paths = ["/v1/x"] }]
        The method is not among those that this tool may use at https://a.example.org (case matters).
            http = [{ origin = "https://a.example.org", methods = ["POST"], paths = ["/v2/x"] }]
        The path is not among those that this tool may call at https://a.example.org.
            http = [{ origin = "https://a.example.org", methods = ["GET"], paths = ["/v3"] }]
        This tool may call only some paths at https://a.example.org, and its paths must be plain: without encoded dots, slashes, backslashes and control characters, and without segments such as `..;`.
            (nothing)
        This tool may call an IP address only if its grant lists it.
            http = ["https://93.184.215.14"]
        This tool may call an IP address only if its grant lists it.
            http = ["http://169.254.169.254"]
            private_networks = ["169.254.169.254"]
        This tool may call an IP address only if its grant lists it.
            http = ["https://[64:ff9b::a00:1]:8443"]
            private_networks = ["64:ff9b::a00:1", "10.0.0.1"]
        The scheme of a request must be http or https.
            (nothing)
        The address of the request contains user information (the part before `@`), which is not allowed.
            (nothing)
        The address of the request contains a space, a control character, a slash, `\`, `?` or `#`.
            (nothing)
        The address of the request ends in a number or has brackets, but is not a valid IP address.
            (nothing)
        The method of the request is not a valid HTTP method.
            (nothing)
        No tool may send requests with the method TRACE.
            (nothing)
        The path of a request must begin with `/`, without spaces, control characters and `#`.
            (nothing)
        "#);
}

#[test]
fn remedy_allows_no_other_method_or_path() {
    let entry = r#"{ origin = "https://*.example.org", methods = ["GET"], paths = ["/read"] }"#;
    let new_request = |method, path_with_query| HttpRequest {
        scheme: "https",
        authority: "a.example.org",
        method,
        path_with_query,
    };
    for (method, path) in [("POST", "/write"), ("POST", "/read"), ("GET", "/write")] {
        let before = rules(&format!("http = [{entry}]"));
        let denied = new_request(method, path).check(&before).unwrap_err();
        let added = rules(&denied.remedy().unwrap());
        let after: Vec<HttpRule> = before.iter().chain(&added).cloned().collect();
        for other in ["GET", "POST", "DELETE"] {
            for place in ["/read", "/write", "/", "/other"] {
                let is_new = other == method && place == path;
                let was_allowed = new_request(other, place).check(&before).is_ok();
                assert_eq!(
                    new_request(other, place).check(&after).is_ok(),
                    was_allowed || is_new,
                    "{other} {place} after {method} {path}"
                );
            }
        }
    }
    // The suggestion names one method and one path, even if the entry allows all methods or all
    // paths.
    for (entry, method, path, remedy) in [
        (
            r#"{ origin = "https://a.example.org", methods = ["GET"] }"#,
            "POST",
            "/x",
            r#"http = [{ origin = "https://a.example.org", methods = ["POST"], paths = ["/x"] }]"#,
        ),
        (
            r#"{ origin = "https://a.example.org", paths = ["/x"] }"#,
            "POST",
            "/y",
            r#"http = [{ origin = "https://a.example.org", methods = ["POST"], paths = ["/y"] }]"#,
        ),
    ] {
        let denied = new_request(method, path)
            .check(&rules(&format!("http = [{entry}]")))
            .unwrap_err();
        assert_eq!(denied.remedy().as_deref(), Some(remedy));
    }
    let denied = new_request("POST", "/a%2fb").check(&rules(
        r#"http = [{ origin = "https://a.example.org", methods = ["GET"] }]"#,
    ));
    assert_eq!(
        denied.unwrap_err().remedy(),
        None,
        "no entry says this path"
    );
}
