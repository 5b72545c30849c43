//! The Rust plugins of `examples/`, with the grants that come with them, against servers on this
//! machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};
use toolbay_testkit::markdown::code_blocks;
use toolbay_testkit::workspace;

use crate::support::{
    Folder, StdioServer, ToolbayCommand, error_kind_and_text, example, result_text,
};

/// The responses of a site, by method and path.
type Pages = BTreeMap<String, String>;

/// A web server.
struct Site {
    address: SocketAddr,
    /// The received requests, each with its head and its body.
    requests: Receiver<(String, String)>,
}

impl Site {
    fn start(pages: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let pages: Arc<Pages> = Arc::new(
            pages
                .into_iter()
                .map(|(path, page)| (path.to_owned(), page))
                .collect(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let pages = Arc::clone(&pages);
                let sender = sender.clone();
                thread::spawn(move || serve(stream.unwrap(), &pages, &sender));
            }
        });
        Self { address, requests }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers one request.
fn serve(
    mut stream: TcpStream,
    pages: &Pages,
    requests: &Sender<(String, String)>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    drop(requests.send((head, String::from_utf8_lossy(&body).into_owned())));
    let missing = response(
        "404 Not Found",
        "application/json",
        r#"{"message": "Not Found"}"#,
    );
    stream.write_all(pages.get(&asked).unwrap_or(&missing).as_bytes())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let headers = if headers.contains(':') {
        headers.to_owned()
    } else {
        format!("Content-Type: {headers}")
    };
    format!(
        "HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the grant of an example, with `origin` replaced by the origin of `site`.
fn grant(name: &str, origin: &str, site: &Site) -> String {
    let grant =
        fs::read_to_string(workspace::root().join(format!("examples/{name}/{name}.toml"))).unwrap();
    let changed = grant.replace(origin, &site.origin());
    assert_ne!(changed, grant, "{origin}");
    changed.replace(
        "[permissions]\n",
        "[permissions]\nprivate_networks = [\"127.0.0.1\"]\n",
    )
}

/// Starts a server with one example.
fn server(name: &str, grant: &str, secrets: &[(&str, &str)]) -> StdioServer {
    let folder = Folder::with(&format!("{name}.wasm"), example(name));
    folder.put(&format!("{name}.toml"), grant);
    let command = secrets
        .iter()
        .fold(ToolbayCommand::new(&folder), |command, (name, value)| {
            command.env(name, value)
        });
    let mut server = StdioServer::run(command.args(["serve"])).with_handshake("2025-11-25");
    server.wait_until("the example is offered", |server| {
        !server.tool_names().is_empty()
    });
    server
}

const TOKEN: &str = "github_pat_0123456789abcdef";

fn github(site: &Site) -> StdioServer {
    let grant = grant("github", "https://api.github.com", site)
        + &format!("[config]\napi = \"{}\"\n", site.origin());
    server("github", &grant, &[("GITHUB_TOKEN", TOKEN)])
}

fn issue(repository: &str) -> Value {
    json!({"repository": repository, "title": "It rains in", "body": "The *roof* leaks.", "labels": ["bug"]})
}

#[test]
fn github_opens_an_issue_with_a_token_that_it_does_not_have() {
    let opened =
        r#"{"number": 7, "html_url": "https://github.com/acme/website/issues/7", "state": "open"}"#;
    let site = Site::start([(
        "POST /repos/acme/website/issues",
        response("201 Created", "application/json", opened),
    )]);
    let mut server = github(&site);
    let result = server.call("github_create_issue", issue("acme/website"));
    let expected = json!({"number": 7, "url": "https://github.com/acme/website/issues/7"});
    assert_eq!(result["structuredContent"], expected, "{result}");
    let (head, body) = site.requests.recv().unwrap();
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains(&format!("authorization: bearer {TOKEN}\r\n")),
        "{head}"
    );
    assert!(head.contains("user-agent: toolbay-github\r\n"), "{head}");
    let sent: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        sent,
        json!({"title": "It rains in", "body": "The *roof* leaks.", "labels": ["bug"]})
    );
}

#[test]
fn github_can_only_do_what_its_grant_allows() {
    let site = Site::start([]);
    let mut server = github(&site);
    for other in ["acme/secrets", "evil/website"] {
        let (kind, text) = error_kind_and_text(&server.call("github_create_issue", issue(other)));
        assert_eq!(kind, "denied", "{other}: {text}");
        assert!(text.starts_with("The request is denied."), "{text}");
    }
    let (_, text) = error_kind_and_text(&server.call("github_create_issue", issue("acme/..")));
    assert!(text.contains("repository"), "{text}");
    assert!(site.requests.try_recv().is_err());
}

#[test]
fn github_reports_why_an_issue_was_not_created() {
    let limited = "Content-Type: application/json\r\nx-ratelimit-remaining: 0";
    for (status, headers, expected) in [
        (
            "401 Unauthorized",
            "application/json",
            "GitHub does not accept the token: the operator must renew it",
        ),
        (
            "403 Forbidden",
            limited,
            "GitHub's rate limit is used up: try again later",
        ),
        ("410 Gone", "application/json", "acme/website has no issues"),
        (
            "500 Internal Server Error",
            "application/json",
            "GitHub answered with status 500",
        ),
    ] {
        // A token that a server repeats in its response is redacted.
        let said = format!(r#"{{"message": "no {TOKEN}"}}"#);
        let site = Site::start([(
            "POST /repos/acme/website/issues",
            response(status, headers, &said),
        )]);
        let result = github(&site).call("github_create_issue", issue("acme/website"));
        assert_eq!(
            result_text(&result),
            format!("{expected} (no [secret:github_token])")
        );
    }
}

fn fetch(site: &Site) -> StdioServer {
    server(
        "fetch",
        &grant("fetch", "https://doc.rust-lang.org", site),
        &[],
    )
}

#[test]
fn fetch_turns_a_page_into_markdown() {
    let page = "<html><head><title>B</title></head><body><h1>Bread</h1><p>Flour and <b>water</b>.</p></body></html>";
    let site = Site::start([
        (
            "GET /bread",
            response("200 OK", "text/html; charset=utf-8", page),
        ),
        (
            "GET /old",
            response("301 Moved Permanently", "Location: /bread", ""),
        ),
        (
            "GET /data",
            response("200 OK", "application/json", "{\"a\": [1]}"),
        ),
        ("GET /picture", response("200 OK", "image/png", "x")),
        (
            "GET /long",
            response("200 OK", "text/plain", &"0123456789".repeat(300_000)),
        ),
    ]);
    let mut server = fetch(&site);
    let mut fetched =
        |path: &str| server.call("fetch", json!({"url": format!("{}{path}", site.origin())}));
    let bread = format!("{}/bread\n\n# Bread\n\nFlour and **water**.", site.origin());
    assert_eq!(result_text(&fetched("/bread")), bread);
    assert_eq!(result_text(&fetched("/old")), bread);
    assert_eq!(
        result_text(&fetched("/data")),
        format!("{}/data\n\n{{\"a\": [1]}}", site.origin())
    );
    assert_eq!(
        result_text(&fetched("/picture")),
        "the address leads to image/png, which is no text"
    );
    assert_eq!(
        result_text(&fetched("/missing")),
        "The server answered with status 404."
    );
    let long = result_text(&fetched("/long"));
    assert!(
        long.ends_with("0123456789\n\n[2077152 more characters: call again with start = 20000]"),
        "{}",
        long.len()
    );
    let last = json!({"url": format!("{}/long", site.origin()), "start": 2_097_150});
    assert!(
        result_text(&server.call("fetch", last))
            .ends_with("/long\n\n01\n\n[the page is longer than what is read of one]")
    );
}

#[test]
fn fetch_reads_only_the_sites_of_its_grant() {
    let other = Site::start([("GET /", response("200 OK", "text/plain", "secret"))]);
    let origin = format!("http://localhost:{}", other.address.port());
    let site = Site::start([(
        "GET /away",
        response("302 Found", &format!("Location: {origin}/"), ""),
    )]);
    let mut server = fetch(&site);
    for url in [format!("{origin}/"), format!("{}/away", site.origin())] {
        let (kind, text) = error_kind_and_text(&server.call("fetch", json!({"url": url})));
        let expected =
            format!("{origin} is not among the origins that this tool may send requests to.");
        assert_eq!(
            (kind.as_str(), text.lines().last().unwrap()),
            ("denied", expected.as_str())
        );
    }
    server.log.wait_for(&format!(
        "add to [permissions] in fetch.toml: http = [\"{origin}\"]"
    ));
    assert!(other.requests.try_recv().is_err());
    let result = server.call("fetch", json!({"url": "no address"}));
    assert!(
        result_text(&result).contains("`url`") || result_text(&result).contains("/url"),
        "{result}"
    );
}

#[test]
fn fetch_survives_pages_that_attack_it() {
    let deep = response("200 OK", "text/html", &"<div></p>".repeat(2_000));
    let cut = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<p>short"
        .to_owned();
    let site = Site::start([
        ("GET /deep", deep),
        ("GET /cut", cut),
        ("GET /round", response("302 Found", "Location: /round", "")),
    ]);
    let mut server = fetch(&site);
    let mut fetched = |path: &str| {
        result_text(&server.call("fetch", json!({"url": format!("{}{path}", site.origin())})))
    };
    assert_eq!(
        fetched("/deep"),
        "the elements of the page are nested more than 400 deep"
    );
    assert!(fetched("/cut").contains("incomplete HTTP response"));
    assert!(fetched("/round").starts_with("the page redirects more than 5 times, at last to "));
}

#[test]
fn the_book_has_the_grant_of_every_example() {
    let page = fs::read_to_string(workspace::root().join("docs/src/recipes.md")).unwrap();
    let shown: Vec<String> = code_blocks(&page)
        .into_iter()
        .filter(|block| block.language() == "toml")
        .map(|b| b.text)
        .collect();
    let mut examples = 0;
    for entry in fs::read_dir(workspace::root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let grant = fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
        let lines: Vec<&str> = grant
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        let rules = lines.join("\n");
        assert!(
            shown.iter().any(|block| block.trim() == rules.trim()),
            "{name}: the page has another grant"
        );
        assert!(
            page.contains(&format!("\n## {name}\n")),
            "{name} has no section"
        );
        examples += 1;
    }
    assert_eq!(shown.len(), examples);
}
