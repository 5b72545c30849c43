//! Tests of the entries of a grant: the canonical form of valid entries, and the messages for
//! invalid ones.

use serde::Deserialize;
use toolbay_settings::toml_file;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    permissions: Permissions,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Permissions {
    http: Vec<HttpRule>,
}

/// Returns the rule of an entry, or the error message. `entry` is TOML.
fn read(entry: &str) -> Result<HttpRule, String> {
    let mut grant: Grant = toml_file::parse("a.toml", &format!("[permissions]\nhttp = [{entry}]"))?;
    Ok(grant.permissions.http.remove(0))
}

#[test]
fn entries_have_one_canonical_form() {
    for (entry, canonical) in [
        (
            r#""https://api.example.com""#,
            r#""https://api.example.com""#,
        ),
        (
            r#""HTTPS://API.Example.COM.""#,
            r#""https://api.example.com""#,
        ),
        (
            r#""https://api.example.com:443""#,
            r#""https://api.example.com""#,
        ),
        (
            r#""https://api.example.com:80""#,
            r#""https://api.example.com:80""#,
        ),
        (
            r#""http://api.example.com:80""#,
            r#""http://api.example.com""#,
        ),
        (r#""http://localhost:8080""#, r#""http://localhost:8080""#),
        (
            r#""https://bücher.example""#,
            r#""https://xn--bcher-kva.example""#,
        ),
        (
            r#""https://*.Bücher.example.:444""#,
            r#""https://*.xn--bcher-kva.example:444""#,
        ),
        (r#""https://*.example.org""#, r#""https://*.example.org""#),
        (r#""http://127.0.0.1:8080""#, r#""http://127.0.0.1:8080""#),
        (
            r#""https://[2001:DB8:0::1]:8443""#,
            r#""https://[2001:db8::1]:8443""#,
        ),
        (
            r#"{ origin = "https://a.example:443" }"#,
            r#""https://a.example""#,
        ),
        (
            r#"{ origin = "https://a.example", methods = ["GET", "GET", "PURGE"] }"#,
            r#"{"origin":"https://a.example","methods":["GET","PURGE"]}"#,
        ),
        (
            r#"{ paths = ["/v1/", "/%c3%bc", "/v1/"], origin = "https://a.example" }"#,
            r#"{"origin":"https://a.example","paths":["/v1/","/%C3%BC"]}"#,
        ),
    ] {
        let rule = read(entry).unwrap_or_else(|error| panic!("{entry}: {error}"));
        let json = serde_json::to_string(&rule).unwrap();
        assert_eq!(json, canonical);
        assert_eq!(serde_json::from_str::<HttpRule>(&json).unwrap(), rule);
        assert_eq!(read(&rule.to_string()), Ok(rule));
    }
}

/// Returns the error messages for these entries, one line each.
fn mistakes(entries: &[&str]) -> String {
    let messages = entries.iter().map(|entry| match read(entry) {
        Err(wrong) => wrong,
        Ok(rule) => panic!("{entry} was read as {rule}"),
    });
    messages.collect::<Vec<_>>().join("\n")
}

const ORIGINS: &[&str] = &[
    // Schemes.
    r#""api.example.com""#,
    r#""localhost:8080""#,
    r#""*""#,
    r#""""#,
    r#""ftp://example.com""#,
    r#""//example.com""#,
    // Parts that do not belong to an origin.
    r#""https://api.example.com/""#,
    r#""https://api.example.com/v1/?a=b""#,
    r#""https://api.example.com?a=b""#,
    r#""https://api.example.com#top""#,
    r#""https://allowed.com\\@evil.com""#,
    r#""https://allowed.com/@evil.com""#,
    r#""https://user:password@example.com""#,
    r#""https://user@example.com/v1""#,
    // Hosts.
    r#""https://""#,
    r#""https:///x""#,
    r#""https://api example.com""#,
    r#""https://a..example.com""#,
    r#""https://api%2eexample.com""#,
    r#""https://api。example.com""#,
    r#""https://a!b.example.com""#,
    // Patterns.
    r#""https://*""#,
    r#""https://*.com""#,
    r#""https://*.*.example.com""#,
    r#""https://*example.com""#,
    r#""https://api.*.com""#,
    r#""https://*.10.0.0.1""#,
    r#""https://*.""#,
    r#""https://api.example.com:*""#,
    // IP addresses.
    r#""http://0x7f.1""#,
    r#""http://2130706433""#,
    r#""http://127.1:8080""#,
    r#""http://0177.0.0.1""#,
    r#""http://127.0.0.1.""#,
    r#""http://127.0.0.256""#,
    r#""http://::1""#,
    r#""http://[fe80::1%25eth0]""#,
    r#""http://[::1""#,
    // Ports.
    r#""https://example.com:""#,
    r#""https://example.com:0""#,
    r#""https://example.com:0443""#,
    r#""https://example.com:65536""#,
    r#""https://example.com:80:443""#,
];

#[test]
fn errors_in_an_origin_suggest_a_correct_form() {
    insta::assert_snapshot!(mistakes(ORIGINS), @r#"
        a.toml:2:9: permissions.http[0]: "api.example.com" has no scheme; write "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "localhost:8080" has no scheme; write "https://localhost:8080"
        a.toml:2:9: permissions.http[0]: "*" is not an origin, such as "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "" is not an origin, such as "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "ftp://example.com" must begin with "https://" or "http://"
        a.toml:2:9: permissions.http[0]: "//example.com" is not an origin, such as "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "https://api.example.com/" ends with a slash, which an origin does not have; write "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "https://api.example.com/v1/?a=b" has a path; put the path into `paths`, as in { origin = "https://api.example.com", paths = ["/v1/"] }
        a.toml:2:9: permissions.http[0]: "https://api.example.com?a=b" has a query, which a rule cannot restrict; write "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "https://api.example.com#top" has a fragment, which no request has; write "https://api.example.com"
        a.toml:2:9: permissions.http[0]: "https://allowed.com\\@evil.com" has a backslash, which an origin does not have
        a.toml:2:9: permissions.http[0]: "https://allowed.com/@evil.com" has a path; put the path into `paths`, as in { origin = "https://allowed.com", paths = ["/@evil.com"] }
        a.toml:2:9: permissions.http[0]: "https://…@example.com" contains user information (the part before `@`), which is not allowed
        a.toml:2:9: permissions.http[0]: "https://…@example.com" contains user information (the part before `@`), which is not allowed
        a.toml:2:9: permissions.http[0]: "https://" has no host
        a.toml:2:9: permissions.http[0]: "https://" has no host
        a.toml:2:9: permissions.http[0]: "https://api example.com" contains a space, a control character, a slash, `\`, `?` or `#`
        a.toml:2:9: permissions.http[0]: "https://a..example.com" has an empty label: a dot at the beginning, or two dots in a row
        a.toml:2:9: permissions.http[0]: "https://api%2eexample.com" contains `%`; write a host without percent-encoding and without an IPv6 zone
        a.toml:2:9: permissions.http[0]: "https://api。example.com" contains a character that only looks like a dot; write `.`
        a.toml:2:9: permissions.http[0]: "https://a!b.example.com" is not a valid host name
        a.toml:2:9: permissions.http[0]: "https://*" would allow every host; list the hosts, such as api.example.com or *.example.com
        a.toml:2:9: permissions.http[0]: "https://*.com" would allow every host below com; name at least two labels after `*.`, as in *.example.com
        a.toml:2:9: permissions.http[0]: "https://*.*.example.com" has a `*` that is not the whole first label; a pattern is written as in *.example.com
        a.toml:2:9: permissions.http[0]: "https://*example.com" has a `*` that is not the whole first label; a pattern is written as in *.example.com
        a.toml:2:9: permissions.http[0]: "https://api.*.com" has a `*` that is not the whole first label; a pattern is written as in *.example.com
        a.toml:2:9: permissions.http[0]: "https://*.10.0.0.1" has `*` before an IP address; list each address, such as 10.0.0.1
        a.toml:2:9: permissions.http[0]: "https://*." has no host
        a.toml:2:9: permissions.http[0]: "https://api.example.com:*" has a port that is not a number from 1 to 65535
        a.toml:2:9: permissions.http[0]: "http://0x7f.1" has another spelling of the address 127.0.0.1; write 127.0.0.1
        a.toml:2:9: permissions.http[0]: "http://2130706433" has another spelling of the address 127.0.0.1; write 127.0.0.1
        a.toml:2:9: permissions.http[0]: "http://127.1:8080" has another spelling of the address 127.0.0.1; write 127.0.0.1
        a.toml:2:9: permissions.http[0]: "http://0177.0.0.1" has another spelling of the address 127.0.0.1; write 127.0.0.1
        a.toml:2:9: permissions.http[0]: "http://127.0.0.1." has another spelling of the address 127.0.0.1; write 127.0.0.1
        a.toml:2:9: permissions.http[0]: "http://127.0.0.256" ends in a number or has brackets, but is not a valid IP address
        a.toml:2:9: permissions.http[0]: "http://::1" must have its IPv6 address in brackets; write "http://[::1]"
        a.toml:2:9: permissions.http[0]: "http://[fe80::1%25eth0]" contains `%`; write a host without percent-encoding and without an IPv6 zone
        a.toml:2:9: permissions.http[0]: "http://[::1" has brackets that do not surround an IPv6 address, as in [2001:db8::1]
        a.toml:2:9: permissions.http[0]: "https://example.com:" has no port after its last colon; add the port, or leave out the colon
        a.toml:2:9: permissions.http[0]: "https://example.com:0" has a port that is not a number from 1 to 65535
        a.toml:2:9: permissions.http[0]: "https://example.com:0443" has leading zeros in its port; write 443
        a.toml:2:9: permissions.http[0]: "https://example.com:65536" has a port that is not a number from 1 to 65535
        a.toml:2:9: permissions.http[0]: "https://example.com:80:443" has a port that is not a number from 1 to 65535
    "#);
}

const TABLES: &[&str] = &[
    "7",
    r#"["https://example.com"]"#,
    "{}",
    r#"{ origins = "https://example.com" }"#,
    r#"{ origin = "https://example.com", method = ["GET"] }"#,
    "{ origin = 7 }",
    r#"{ origin = "https://example.com/v1" }"#,
    // Methods.
    r#"{ origin = "https://example.com", methods = "GET" }"#,
    r#"{ origin = "https://example.com", methods = [] }"#,
    r#"{ origin = "https://example.com", methods = ["GET", "post"] }"#,
    r#"{ origin = "https://example.com", methods = ["*"] }"#,
    r#"{ origin = "https://example.com", methods = [""] }"#,
    r#"{ origin = "https://example.com", methods = ["GET POST"] }"#,
    r#"{ origin = "https://example.com", methods = ["CONNECT"] }"#,
    r#"{ origin = "https://example.com", methods = ["trace"] }"#,
    // Paths.
    r#"{ origin = "https://example.com", paths = [] }"#,
    r#"{ origin = "https://example.com", paths = ["v1"] }"#,
    r#"{ origin = "https://example.com", paths = [""] }"#,
    r#"{ origin = "https://example.com", paths = ["/v1/*"] }"#,
    r#"{ origin = "https://example.com", paths = ["/v1?a=b"] }"#,
    r#"{ origin = "https://example.com", paths = ["/a b"] }"#,
    r#"{ origin = "https://example.com", paths = ["/v1/../v2"] }"#,
    r#"{ origin = "https://example.com", paths = ["/v1/%2e%2e"] }"#,
    r#"{ origin = "https://example.com", paths = ["/a%2fb"] }"#,
    r#"{ origin = "https://example.com", paths = ["/100%"] }"#,
    r#"{ origin = "https://example.com", paths = ["/a\\b"] }"#,
];

#[test]
fn errors_in_a_table_suggest_a_correct_form() {
    insta::assert_snapshot!(mistakes(TABLES), @r#"
        a.toml:2:9: permissions.http[0]: expected an origin in quotes, such as "https://api.example.com", or a table with `origin`, not 7
        a.toml:2:9: permissions.http[0]: expected an origin in quotes, such as "https://api.example.com", or a table with `origin`, not a list
        a.toml:2:9: permissions.http[0]: the key `origin` is missing
        a.toml:2:11: unknown key `origins`; did you mean `origin`?
        a.toml:2:43: unknown key `method`; did you mean `methods`?
        a.toml:2:20: permissions.http[0].origin: expected a string in quotes, not 7
        a.toml:2:20: permissions.http[0].origin: "https://example.com/v1" has a path; put the path into `paths`, as in { origin = "https://example.com", paths = ["/v1"] }
        a.toml:2:53: permissions.http[0].methods: expected a list, not "GET"
        a.toml:2:53: permissions.http[0].methods: expected at least one method; to allow every method, leave out `methods`
        a.toml:2:53: permissions.http[0].methods[1]: "post" is not "POST": methods are case-sensitive; write "POST"
        a.toml:2:53: permissions.http[0].methods[0]: "*" is not a method; to allow every method, leave out `methods`
        a.toml:2:53: permissions.http[0].methods[0]: "" is not a method; to allow every method, leave out `methods`
        a.toml:2:53: permissions.http[0].methods[0]: "GET POST" is not a method, such as "GET"
        a.toml:2:53: permissions.http[0].methods[0]: "CONNECT" cannot be allowed: no tool may use CONNECT
        a.toml:2:53: permissions.http[0].methods[0]: "trace" cannot be allowed: no tool may use TRACE
        a.toml:2:51: permissions.http[0].paths: expected at least one path; to allow every path, leave out `paths`
        a.toml:2:51: permissions.http[0].paths[0]: "v1" must begin with `/`, as in "/v1/"
        a.toml:2:51: permissions.http[0].paths[0]: "" must begin with `/`, as in "/v1/"
        a.toml:2:51: permissions.http[0].paths[0]: "/v1/*" has `*`, which is not a pattern here: an entry covers every path that begins with it
        a.toml:2:51: permissions.http[0].paths[0]: "/v1?a=b" must be a path without query and fragment; a rule cannot restrict those
        a.toml:2:51: permissions.http[0].paths[0]: "/a b" has characters that the path of a request cannot contain; write them percent-encoded, such as %20 for a space
        a.toml:2:51: permissions.http[0].paths[0]: "/v1/../v2" has `.` or `..` as a segment; write "/v2"
        a.toml:2:51: permissions.http[0].paths[0]: "/v1/%2e%2e" never matches: paths with an encoded dot, slash, backslash or control character, an invalid percent-encoding, or a segment such as `..;` are denied
        a.toml:2:51: permissions.http[0].paths[0]: "/a%2fb" never matches: paths with an encoded dot, slash, backslash or control character, an invalid percent-encoding, or a segment such as `..;` are denied
        a.toml:2:51: permissions.http[0].paths[0]: "/100%" never matches: paths with an encoded dot, slash, backslash or control character, an invalid percent-encoding, or a segment such as `..;` are denied
        a.toml:2:51: permissions.http[0].paths[0]: "/a\\b" has characters that the path of a request cannot contain; write them percent-encoded, such as %20 for a space
    "#);
}
