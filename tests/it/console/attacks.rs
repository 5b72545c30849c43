//! What attackers try: each row of a table is a request and its expected outcome.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use super::site::{Site, cookie, encode_form, enter, hidden_field, logged_token, post};
use super::{PAGES, RATES, folder};
use crate::http::auth::{plugins, token};
use crate::support::{Folder, HttpResponse, HttpServer, TinyComponent, TinyTool};

/// A request that must have no effect.
struct Attack {
    what: &'static str,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// The status of the response.
    status: u16,
}

/// Creates a GET request.
fn get(what: &'static str, path: &str, headers: &[(&'static str, &str)], status: u16) -> Attack {
    request(what, "GET", path, headers, "", status)
}

fn request(
    what: &'static str,
    method: &'static str,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &str,
    status: u16,
) -> Attack {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    Attack {
        what,
        method,
        path: path.to_owned(),
        headers,
        body: body.to_owned(),
        status,
    }
}

/// Checks the headers that every response of the console has.
fn assert_security_headers(response: &HttpResponse, what: &str) {
    let header = |name: &str| response.header(name).unwrap_or_default();
    assert_eq!(
        (header("x-frame-options"), header("x-content-type-options")),
        ("DENY", "nosniff"),
        "{what}"
    );
    let policy = header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{what}: {policy}"
    );
    assert_eq!(
        response.header("access-control-allow-origin"),
        None,
        "{what}"
    );
    assert_eq!(
        header("cross-origin-resource-policy"),
        "same-origin",
        "{what}"
    );
}

/// Checks that the text has nothing that only a session may show.
fn assert_no_session_content(said: &str, what: &str) {
    for secret in ["Log out", "Plugin folder", "name=\"csrf\"", ">echo</a>"] {
        assert!(!said.contains(secret), "{what}: {said}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn forged_and_unauthenticated_requests_have_no_effect() {
    let site = Site::open(HttpServer::start_with_config(&folder(), RATES).wait_until_ready());
    let own = site.origin();
    let cookie = site.cookie.as_str();
    let (name, value) = cookie.split_once('=').unwrap();
    let port = site.server.address.port();
    let neighbour = format!("http://127.0.0.1:{}", if port == 1 { 2 } else { port - 1 });
    let localhost = format!("http://localhost:{port}");
    let form = "application/x-www-form-urlencoded";
    let rest = encode_form(&[("csrf", &site.csrf), ("id", "a"), ("disabled", "yes")]);
    let without = encode_form(&[("id", "a"), ("disabled", "yes")]);
    let guessed = encode_form(&[("csrf", "guessed"), ("id", "a"), ("disabled", "yes")]);
    let huge = format!("{rest}&x={}", "x".repeat(2 << 20));
    let many = (0..500)
        .map(|n| format!("&x{n}=1"))
        .collect::<Vec<_>>()
        .concat();
    let many = format!("{rest}{many}");
    let twice = format!("{rest}&id=b");
    let usual = [("Cookie", cookie), ("Content-Type", form)];
    let with = |more: &[(&'static str, &'static str)]| [&usual[..], more].concat();
    let change = |what, headers: &[(&'static str, &str)], body: &str, status| {
        request(what, "POST", "/console/plugin", headers, body, status)
    };
    let swapped = format!("{name}={}", value.chars().rev().collect::<String>());
    let twice_the_cookie = format!("{cookie}; {cookie}");
    let other_name = format!("toolbay_console_1={value}");
    let absolute = format!("http://evil.example/console?{}", "x=1");
    let mut attacks = vec![
        get(
            "a cookie that was made up",
            "/console",
            &[("Cookie", &swapped)],
            303,
        ),
        get(
            "an empty cookie",
            "/console",
            &[("Cookie", &format!("{name}="))],
            303,
        ),
        get(
            "the cookie twice",
            "/console",
            &[("Cookie", &twice_the_cookie)],
            303,
        ),
        get(
            "the cookie of another server",
            "/console",
            &[("Cookie", &other_name)],
            303,
        ),
        get(
            "the cookie as a bearer token",
            "/console",
            &[("Authorization", &format!("Bearer {value}"))],
            303,
        ),
        get(
            "the cookie in the address",
            &format!("/console?{name}={value}"),
            &[],
            303,
        ),
        get(
            "a link on a page of others",
            "/console",
            &[("Cookie", cookie), ("Sec-Fetch-Site", "cross-site")],
            303,
        ),
        get(
            "a page on another port of this host",
            "/console",
            &[("Cookie", cookie), ("Sec-Fetch-Site", "same-site")],
            303,
        ),
        get(
            "an origin on another port of this host",
            "/console",
            &[("Cookie", cookie), ("Origin", &neighbour)],
            303,
        ),
        get(
            "another name of this host",
            "/console",
            &[("Cookie", cookie), ("Origin", &localhost)],
            303,
        ),
        get(
            "a foreign origin",
            "/console",
            &[("Cookie", cookie), ("Origin", "https://evil.example")],
            403,
        ),
        get(
            "the origin of a sandbox",
            "/console",
            &[("Cookie", cookie), ("Origin", "null")],
            403,
        ),
        get(
            "a name that leads here (DNS rebinding)",
            "/console",
            &[("Cookie", cookie), ("Host", "evil.example")],
            403,
        ),
        get(
            "such a name with the port",
            "/console",
            &[
                ("Cookie", cookie),
                ("Host", &format!("evil.example:{port}")),
            ],
            403,
        ),
        get(
            "a name that begins like this host",
            "/console",
            &[("Cookie", cookie), ("Host", "127.0.0.1.evil.example")],
            403,
        ),
        get(
            "no name",
            "/console",
            &[("Cookie", cookie), ("Host", "-")],
            400,
        ),
        get(
            "a target with a foreign host",
            &absolute,
            &[("Cookie", cookie)],
            403,
        ),
        get(
            "news without a session",
            "/console/calls",
            &[("Toolbay-Live", "1")],
            401,
        ),
        change(
            "a form of a foreign page",
            &with(&[("Origin", "https://evil.example")]),
            &rest,
            403,
        ),
        change(
            "a form of a sandbox",
            &with(&[("Origin", "null")]),
            &rest,
            403,
        ),
        change("a form of nobody", &usual, &rest, 403),
        change(
            "a form of another port",
            &[&usual[..], &[("Origin", neighbour.as_str())]].concat(),
            &rest,
            403,
        ),
        change(
            "a form of another name",
            &[&usual[..], &[("Origin", localhost.as_str())]].concat(),
            &rest,
            403,
        ),
        change(
            "two origins",
            &[
                &usual[..],
                &[("Origin", own.as_str()), ("Origin", own.as_str())],
            ]
            .concat(),
            &rest,
            403,
        ),
        change(
            "a form that says same-site",
            &[
                &usual[..],
                &[("Origin", own.as_str()), ("Sec-Fetch-Site", "same-site")],
            ]
            .concat(),
            &rest,
            403,
        ),
    ];
    let at_home = [&usual[..], &[("Origin", own.as_str())]].concat();
    let stranger = [("Content-Type", form), ("Origin", own.as_str())];
    let json = [
        ("Cookie", cookie),
        ("Content-Type", "application/json"),
        ("Origin", own.as_str()),
    ];
    let plain = [
        ("Cookie", cookie),
        ("Content-Type", "text/plain"),
        ("Origin", own.as_str()),
    ];
    attacks.extend([
        change("no session", &stranger, &rest, 401),
        change("no token", &at_home, &without, 403),
        change("a token that was guessed", &at_home, &guessed, 403),
        request(
            "the token in the address",
            "POST",
            &format!("/console/plugin?csrf={}", site.csrf),
            &at_home,
            &without,
            403,
        ),
        change("a form as JSON", &json, "{\"csrf\": \"x\"}", 415),
        change(
            "a form as text, which pages of others can send",
            &plain,
            &rest,
            415,
        ),
        change("a huge form", &at_home, &huge, 413),
        change("a form with many fields", &at_home, &many, 400),
        change("a field twice", &at_home, &twice, 400),
        request(
            "a huge login",
            "POST",
            "/console/login",
            &at_home,
            &format!("token={}", "x".repeat(8 << 10)),
            413,
        ),
        request(
            "a wrong token",
            "POST",
            "/console/login",
            &stranger,
            "token=toolbay_wrong",
            401,
        ),
        request(
            "an empty token",
            "POST",
            "/console/login",
            &stranger,
            "token=",
            401,
        ),
        request(
            "a login of a foreign page",
            "POST",
            "/console/login",
            &[("Content-Type", form), ("Origin", "https://evil.example")],
            "token=x",
            403,
        ),
        get(
            "a call by a link",
            &format!(
                "/console/tool?name=echo&csrf={}&tool=echo&json={{}}",
                site.csrf
            ),
            &[],
            303,
        ),
        get(
            "clearing by a link",
            "/console/cache",
            &[("Cookie", cookie)],
            405,
        ),
        get(
            "logging out by a link",
            "/console/logout",
            &[("Cookie", cookie)],
            405,
        ),
        request(
            "another method",
            "PUT",
            "/console/plugin",
            &at_home,
            "",
            405,
        ),
        request(
            "deleting",
            "DELETE",
            "/console/plugin?id=a",
            &at_home,
            "",
            405,
        ),
        request(
            "asking what is allowed",
            "OPTIONS",
            "/console/plugin",
            &at_home,
            "",
            405,
        ),
        request(
            "sending a form to a page",
            "POST",
            "/console/denials",
            &at_home,
            &rest,
            405,
        ),
        get("a path with dots", "/console/../console/plugins", &[], 303),
        get(
            "a path with encoded dots",
            "/console/%2e%2e/console/plugins",
            &[],
            303,
        ),
        get(
            "a path below a file",
            "/console/style.css/../plugins",
            &[],
            303,
        ),
        get("a path in capitals", "/CONSOLE/plugins", &[], 404),
        get("two slashes", "//console/plugins", &[], 404),
        get("an encoded slash", "/console%2fplugins", &[], 404),
        get(
            "a file of the system",
            "/console/..%2f..%2f..%2fetc%2fpasswd",
            &[],
            303,
        ),
    ]);
    assert!(attacks.len() >= 25);
    for attack in &attacks {
        let Attack {
            what,
            method,
            path,
            headers,
            body,
            status,
        } = attack;
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let got = site.server.request(method, path, &headers, body.as_bytes());
        assert_eq!(got.status, *status, "{what}");
        assert_eq!(got.header("set-cookie"), None, "{what}");
        assert_eq!(got.header("access-control-allow-origin"), None, "{what}");
        if [303, 401, 405, 413, 415].contains(status) {
            assert_security_headers(&got, what);
        }
        if *method != "OPTIONS" && *status != 303 {
            assert_no_session_content(&got.text(), what);
        }
    }
    assert!(
        !site.page("/plugin?id=a").contains(">disabled</span>"),
        "none of them did anything"
    );
    assert!(!site.server.log.text().contains("the plugin was disabled"));
}

#[test]
fn rejected_logins_have_few_lines_in_the_log() {
    let site = Site::open(HttpServer::start_with_config(&folder(), RATES).wait_until_ready());
    for _ in 0..200 {
        assert_eq!(enter(&site.server, "wrong").status, 401);
    }
    site.server
        .log
        .wait_for("a login with a wrong or used token (");
    let page = site.page("/log");
    assert!(page.contains("console: opened"), "{page}");
    let log = site.server.log.text();
    assert!(
        log.lines().filter(|line| line.contains("rejected")).count() < 15,
        "{log}"
    );
}

#[test]
fn nothing_is_shown_without_a_session() {
    let server = HttpServer::start_with_config(&folder(), RATES).wait_until_ready();
    for path in PAGES {
        let got = server.get(&format!("/console{path}"), &[]);
        assert_eq!(
            (got.status, got.header("location")),
            (303, Some("/console/login")),
            "{path}"
        );
        assert_security_headers(&got, path);
    }
    for path in ["/console/login", "/console/style.css", "/console/script.js"] {
        let got = server.get(path, &[]);
        assert_eq!(got.status, 200, "{path}");
        assert_security_headers(&got, path);
        assert_no_session_content(&got.text(), path);
    }
    assert_eq!(server.get("/", &[]).header("location"), Some("/console"));
}

#[test]
fn the_address_in_the_log_opens_the_console_once_and_is_not_shown_in_it() {
    let site = Site::open(HttpServer::start_with_config(&folder(), RATES).wait_until_ready());
    let used = logged_token(&site.server, 1);
    let again = enter(&site.server, &used);
    assert_eq!((again.status, cookie(&again)), (401, None));
    let next = logged_token(&site.server, 2);
    assert_ne!(used, next);
    let log = site.page("/log");
    assert!(
        log.contains("console: opened") && !log.contains(&used) && !log.contains(&next),
        "{log}"
    );
    // In a URL that servers see, the token is worthless.
    for path in [
        format!("/console/login?token={next}"),
        format!("/console?token={next}"),
        format!("/console/login?{next}"),
    ] {
        assert_eq!(cookie(&site.server.get(&path, &[])), None, "{path}");
    }
    assert_eq!(
        site.server
            .get("/console", &[("Authorization", &format!("Bearer {next}"))])
            .status,
        303
    );
    assert_eq!(
        enter(&site.server, &next).status,
        303,
        "and it still opens the console"
    );
}

#[test]
fn a_session_ends_at_logout_and_the_number_of_sessions_is_limited() {
    let site = Site::open(HttpServer::start_with_config(&folder(), RATES).wait_until_ready());
    let opens = |cookie: &str| site.server.get("/console", &[("Cookie", cookie)]).status == 200;
    let mut cookies = Vec::new();
    for count in 2..22 {
        let set = enter(&site.server, &logged_token(&site.server, count));
        assert!(
            set.header("set-cookie")
                .unwrap()
                .ends_with("; Path=/console; Max-Age=28800; HttpOnly; SameSite=Strict")
        );
        cookies.push(cookie(&set).unwrap());
    }
    assert!(
        !opens(&site.cookie),
        "the one that was idle longest made room"
    );
    assert_eq!(cookies.iter().filter(|cookie| opens(cookie)).count(), 16);
    let last = cookies.last().unwrap();
    let csrf = hidden_field(
        &site.server.get("/console", &[("Cookie", last)]).text(),
        "csrf",
    );
    let before = &cookies[18];
    let foreign = post(
        &site.server,
        "/console/logout",
        &[("Cookie", before)],
        &encode_form(&[("csrf", &csrf)]),
    );
    assert_eq!(foreign.status, 403, "the token of another session");
    let left = post(
        &site.server,
        "/console/logout",
        &[("Cookie", last)],
        &encode_form(&[("csrf", &csrf)]),
    );
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(!opens(last) && opens(before));
    let late = post(
        &site.server,
        "/console/cache",
        &[("Cookie", last)],
        &encode_form(&[("csrf", &csrf)]),
    );
    assert_eq!(late.status, 401);
}

#[test]
fn behind_a_tls_proxy_the_cookie_is_secure() {
    let folder = folder();
    let config = format!(
        "{RATES}[http]\nanonymous = true\nallowed_hosts = [\"tools.example.com\"]\n\
         allowed_origins = [\"https://tools.example.com\"]\n"
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let body = encode_form(&[("token", &logged_token(&server, 1))]);
    let through = [
        ("Host", "tools.example.com"),
        ("Origin", "https://tools.example.com"),
    ];
    let set = post(&server, "/console/login", &through, &body);
    assert!(
        set.header("set-cookie")
            .unwrap()
            .ends_with("; HttpOnly; SameSite=Strict; Secure")
    );
}

/// Text that is markup if a page does not escape it. It is a valid file name.
const HOSTILE: &str = "\"'><img src=x onerror=alert(1)><script>alert(1)<!--&amp;";

#[test]
fn text_of_plugins_and_clients_is_escaped_on_every_page() {
    let words = Some(HOSTILE.to_owned());
    let tool = TinyTool {
        title: words.clone(),
        description: words,
        ..TinyTool::new("echo")
    };
    let folder = Folder::with(
        &format!("{HOSTILE}.wasm"),
        TinyComponent::with_tools(vec![tool])
            .with_text(HOSTILE)
            .build(),
    );
    folder.put(
        "</pre><script>x.wasm".replace('/', "-").as_str(),
        format!("{HOSTILE} is no plugin"),
    );
    folder.put("a.txt.wasm", HOSTILE);
    let config = format!(
        "{RATES}[console]\ncontents = true\n[audit]\nfolder = \"audit\"\narguments = \"full\"\n"
    );
    let site = Site::open(HttpServer::start_with_config(&folder, &config).wait_until_ready());
    let call = |tool: &str| {
        let params = serde_json::json!({"name": tool, "arguments": {HOSTILE: HOSTILE}});
        site.server
            .post_stateless("tools/call", params, &[("Mcp-Name", "=?base64?eA==?=")])
            .status
    };
    call(HOSTILE);
    let params = serde_json::json!({"name": "echo", "arguments": {HOSTILE: HOSTILE}});
    site.server
        .post_stateless("tools/call", params, &[])
        .response_message();
    let page = site.page("/tool?name=echo");
    let schema = hidden_field(&page, "schema");
    let argument = serde_json::json!({HOSTILE: HOSTILE}).to_string();
    let form = [
        ("tool", "echo"),
        ("schema", schema.as_str()),
        ("raw", "yes"),
        ("json", argument.as_str()),
    ];
    let mut pages = vec![("a result".to_owned(), site.post("/tool", &form).text())];
    pages.push((
        "a mistake".to_owned(),
        site.post(
            "/tool",
            &[
                ("tool", "echo"),
                ("schema", &schema),
                ("raw", "yes"),
                ("json", HOSTILE),
            ],
        )
        .text(),
    ));
    let named = |key: &str| encode_form(&[(key, HOSTILE)]);
    let mut paths: Vec<String> = PAGES.iter().map(|path| (*path).to_owned()).collect();
    paths.extend(
        ["/plugins", "/tools", "/calls", "/log"].map(|path| format!("{path}?{}", named("q"))),
    );
    paths.extend([
        format!("/plugin?{}", named("id")),
        format!("/plugin?{}&{}", named("id"), named("done")),
    ]);
    paths.extend([
        "/tool?name=echo".to_owned(),
        "/tool?name=echo&json=yes".to_owned(),
        format!("?{}", named("done")),
    ]);
    pages.extend(
        paths
            .into_iter()
            .map(|path| (path.clone(), site.page(&path))),
    );
    for (path, page) in &pages {
        for markup in [
            "<img src=x",
            "<script>alert",
            "\"'>",
            "<!--",
            "-pre><script>",
        ] {
            assert!(!page.contains(markup), "{path}: {markup}: {page}");
        }
        assert_eq!(page.matches("<script").count(), 2, "{path}");
        let own = page.matches("<script src=\"/console/").count();
        assert_eq!(own, 2, "{path}");
    }
    let (_, calls) = pages.iter().find(|(path, _)| path == "/calls").unwrap();
    assert!(
        calls.contains("&lt;img src=x onerror=alert(1)&gt;"),
        "{calls}"
    );
    let nothing = site.server.get(
        &format!(
            "/console/plugin?{}",
            encode_form(&[("id", "x\r\nSet-Cookie: a=b")])
        ),
        &[("Cookie", &site.cookie)],
    );
    assert_eq!((nothing.status, nothing.header("set-cookie")), (404, None));
    let split = site.post(
        "/plugin",
        &[("id", "x\r\nSet-Cookie: a=b"), ("disabled", "yes")],
    );
    assert_eq!((split.status, split.header("set-cookie")), (404, None));
}

/// Returns the head of a form request, whose body is sent later.
fn head(server: &HttpServer, path: &str, cookie: &str, length: usize) -> String {
    let address = server.address;
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nCookie: {cookie}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn incomplete_logins_do_not_block_other_logins() {
    let server = HttpServer::start_with_config(&folder(), RATES).wait_until_ready();
    let token = logged_token(&server, 1);
    let begun = format!("{}token=x", head(&server, "/console/login", "", 100));
    let slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    for path in ["/console/login", "/console/style.css"] {
        assert_eq!(server.get(path, &[]).status, 200, "{path}");
    }
    assert_eq!(enter(&server, &token).status, 303);
    drop(slow);
}

#[test]
fn a_form_that_does_not_arrive_ends_at_the_request_timeout() {
    let server = HttpServer::start_with_config(
        &folder(),
        &format!("{RATES}[http]\nidle_timeout = \"1s\"\n"),
    )
    .wait_until_ready();
    for path in ["/", "/console/login", "/console/tool"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream
            .write_all(format!("{}token=x", head(&server, path, "", 100)).as_bytes())
            .unwrap();
        // Reads until the server closes the connection.
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 408 "), "{path}: {response}");
    }
}

#[test]
fn a_form_that_arrives_after_its_token_was_removed_has_no_effect() {
    let (operator, operators) = token("operator", "tools = [\"time.*\"]\nadmin = true");
    let (_, others) = token("other", "admin = true");
    let folder = plugins();
    let site = Site::enter(
        HttpServer::start_with_config(&folder, &format!("{RATES}{others}{operators}"))
            .wait_until_ready(),
        &operator,
    );
    let page = site.page("/tool?name=time.now");
    let body = encode_form(&[
        ("csrf", &site.csrf),
        ("tool", "secret"),
        ("schema", &hidden_field(&page, "schema")),
        ("raw", "yes"),
        ("json", "{}"),
    ]);
    let mut stream = TcpStream::connect(site.server.address).unwrap();
    let (before, last) = body.split_at(body.len() - 1);
    stream
        .write_all(
            format!(
                "{}{before}",
                head(&site.server, "/console/tool", &site.cookie, body.len())
            )
            .as_bytes(),
        )
        .unwrap();
    // When this request is answered, the server has started to read the one above.
    assert_eq!(
        site.server
            .get("/console", &[("Cookie", &site.cookie)])
            .status,
        200
    );
    folder.write_config(&format!("{RATES}{others}"));
    assert!(
        Command::new("kill")
            .args(["-HUP", &site.server.pid().to_string()])
            .status()
            .unwrap()
            .success()
    );
    site.server.log.wait_for("tokens were removed");
    stream.write_all(last.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(!answer.contains("class=\"result\""), "{answer}");
}
