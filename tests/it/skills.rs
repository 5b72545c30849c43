//! Skills: folders of files that clients receive as a whole, with digests.

mod changes;

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::auth::token;
use crate::support::{Folder, HttpResponse, HttpServer, HttpSession, ToolbayCommand, initialize};

const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Returns a `SKILL.md` with this name.
pub(super) fn manifest(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {description}\nmetadata:\n  version: \"1.10\"\n---\n# {name}\r\nRead.\n"
    )
}

/// Writes a file of a folder in the plugin folder.
pub(super) fn write(folder: &Folder, path: &str, text: impl AsRef<[u8]>) {
    let path = folder.plugin_path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Creates a folder with the skill `pdf`, a skill nested in it, and the skill `zip`.
pub(super) fn skills() -> Folder {
    let folder = Folder::new();
    write(
        &folder,
        "pdf.skill/SKILL.md",
        manifest("pdf", "Reads PDFs."),
    );
    write(&folder, "pdf.skill/templates/invoice.md", "# Invoice\n");
    write(&folder, "pdf.skill/templates/eu/a b.md", "one\r\ntwo");
    write(&folder, "pdf.skill/logo.png", b"\x89PNG\0\x1b");
    write(
        &folder,
        "pdf.skill/forms/SKILL.md",
        manifest("forms", "Fills forms."),
    );
    write(&folder, "zip.skill/SKILL.md", manifest("zip", "Zips."));
    folder
}

/// A client over HTTP, of any revision.
pub(super) struct Peer<'a> {
    server: &'a HttpServer,
    revision: &'a str,
    session: Option<HttpSession<'a>>,
}

impl<'a> Peer<'a> {
    pub(super) fn new(server: &'a HttpServer, revision: &'a str) -> Self {
        let session = (revision < crate::support::MODERN).then(|| server.start_session(revision));
        Self {
            server,
            revision,
            session,
        }
    }

    fn ask(&self, method: &str, params: Value) -> HttpResponse {
        match &self.session {
            Some(session) => session.request(method, params),
            None => self
                .server
                .post_stateless_in(self.revision, method, params, &[]),
        }
    }

    pub(super) fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).response_message();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    fn code(&self, method: &str, params: Value) -> i64 {
        let answer = self.ask(method, params).response_message();
        answer["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{method} did not fail: {answer}"))
    }
}

/// Returns the bytes of a read result.
pub(super) fn bytes(read: &Value) -> Vec<u8> {
    let content = &read["contents"][0];
    match content["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64.decode(content["blob"].as_str().unwrap()).unwrap(),
    }
}

/// Returns whether bytes have the digest and the size in the entry of a skill.
pub(super) fn matches_digest(file: &Value, bytes: &[u8]) -> bool {
    file["digest"] == format!("sha256:{:x}", Sha256::digest(bytes)) && file["size"] == bytes.len()
}

pub(super) fn uris(items: &Value) -> Vec<&str> {
    items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["uri"].as_str().unwrap())
        .collect()
}

const ALL: [&str; 3] = [
    "skill://pdf/SKILL.md",
    "skill://pdf/forms/SKILL.md",
    "skill://zip/SKILL.md",
];

#[test]
fn clients_of_every_revision_get_skills_whose_files_match_their_digests() {
    let server = HttpServer::start(&skills()).wait_until_ready();
    let discovered = server.result("server/discover", json!({}));
    assert_eq!(
        discovered["capabilities"]["extensions"][EXTENSION],
        json!({"directoryRead": true})
    );
    for revision in discovered["supportedVersions"].as_array().unwrap() {
        let revision = revision.as_str().unwrap();
        let peer = Peer::new(&server, revision);
        if peer.session.is_some() {
            let begun = server
                .post(&[], initialize(revision).to_string().as_bytes())
                .response_message();
            let capabilities = &begun["result"]["capabilities"];
            assert_eq!(
                capabilities["extensions"][EXTENSION],
                json!({"directoryRead": true}),
                "{revision}"
            );
        }
        let listed = peer.result("skills/list", json!({}));
        assert_eq!(uris(&listed["skills"]), ALL, "{revision}");
        assert_eq!(listed.get("ttlMs").is_some(), peer.session.is_none());
        for skill in listed["skills"].as_array().unwrap() {
            let got = peer.result("skills/get", json!({"uri": skill["uri"]}));
            assert_eq!(&got["skill"], skill);
            assert!(got.get("nextCursor").is_none());
            assert_eq!(skill["frontmatter"]["metadata"], json!({"version": "1.10"}));
            for file in skill["resources"].as_array().unwrap() {
                let read = peer.result("resources/read", json!({"uri": file["uri"]}));
                assert!(
                    matches_digest(file, &bytes(&read)),
                    "{revision} {file} {read}"
                );
            }
        }
        let pdf = &listed["skills"][0];
        assert_eq!(
            uris(&pdf["resources"]),
            [
                "skill://pdf/SKILL.md",
                "skill://pdf/forms/SKILL.md",
                "skill://pdf/logo.png",
                "skill://pdf/templates/eu/a%20b.md",
                "skill://pdf/templates/invoice.md",
            ]
        );
        let resources = peer.result("resources/list", json!({}))["resources"].take();
        assert_eq!(uris(&resources), ALL);
        let first = &resources[0];
        let shown = json!([first["name"], first["description"], first["mimeType"]]);
        assert_eq!(shown, json!(["pdf", "Reads PDFs.", "text/markdown"]));
        let folder = peer.result(
            "resources/directory/read",
            json!({"uri": "skill://pdf/templates"}),
        );
        let children = folder["resources"].as_array().unwrap();
        let children: Vec<Value> = children
            .iter()
            .map(|child| json!([child["uri"], child["name"], child["mimeType"]]))
            .collect();
        assert_eq!(
            json!(children),
            json!([
                ["skill://pdf/templates/eu", "eu", "inode/directory"],
                [
                    "skill://pdf/templates/invoice.md",
                    "invoice.md",
                    "text/markdown"
                ],
            ])
        );
        for (method, uri) in [
            ("skills/get", "skill://pdf"),
            ("skills/get", "skill://pdf/logo.png"),
            ("skills/get", "skill://none/SKILL.md"),
            ("resources/directory/read", "skill://pdf/SKILL.md"),
            ("resources/directory/read", "skill://none"),
        ] {
            assert_eq!(
                peer.code(method, json!({"uri": uri})),
                -32602,
                "{revision} {method} {uri}"
            );
        }
    }
}

#[test]
fn no_uri_leads_out_of_a_skill() {
    let folder = skills();
    fs::write(folder.sibling_path("secret"), "hush").unwrap();
    write(&folder, "pdf.resources/own.md", "own");
    let server = HttpServer::start(&folder).wait_until_ready();
    let peer = Peer::new(&server, crate::support::MODERN);
    // Equivalent URIs are the same file, under the URI in the list.
    for uri in [
        "skill://pdf/%53KILL.md",
        "skill://PDF/SKILL.md",
        "SKILL://pdf/SKILL.md",
    ] {
        let read = peer.result("resources/read", json!({"uri": uri}));
        assert_eq!(read["contents"][0]["uri"], "skill://pdf/SKILL.md", "{uri}");
        let got = peer.result("skills/get", json!({"uri": uri}));
        assert_eq!(got["skill"]["uri"], "skill://pdf/SKILL.md", "{uri}");
        let spelled = uri
            .replace("/SKILL.md", "/templates")
            .replace("/%53KILL.md", "/%74emplates");
        let folder = peer.result("resources/directory/read", json!({"uri": spelled}));
        assert_eq!(
            folder["resources"][1]["uri"], "skill://pdf/templates/invoice.md",
            "{spelled}"
        );
        assert_eq!(
            peer.code("resources/directory/read", json!({"uri": uri})),
            -32602,
            "{uri}"
        );
    }
    let long = format!("skill://pdf/{}", "a/".repeat(1_500));
    for uri in [
        "skill://pdf/../zip/SKILL.md",
        "skill://pdf/../../secret",
        "skill://pdf/..%2f..%2fsecret",
        "skill://pdf/%2e%2e/%2e%2e/secret",
        "skill://pdf/templates/../SKILL.md",
        "skill://pdf//SKILL.md",
        "skill://pdf/./SKILL.md",
        "skill://pdf/SKILL.md/",
        "skill://pdf/SKILL.md%00",
        "skill://pdf/SKILL.md?a",
        "skill://pdf/SKILL.md#a",
        "skill://pdf/templates/eu/a b.md",
        "skill:pdf/SKILL.md",
        "skill:///etc/passwd",
        "skill://",
        "skill:/",
        "skill://pdf/",
        "skill://pdf/own.md",
        "skill://zip/logo.png",
        "toolbay://pdf/SKILL.md",
        "file:///etc/passwd",
        "/etc/passwd",
        "",
        long.as_str(),
    ] {
        for method in ["resources/read", "skills/get", "resources/directory/read"] {
            assert_eq!(
                peer.code(method, json!({"uri": uri})),
                -32602,
                "{method} {uri}"
            );
        }
    }
    for params in [
        json!({}),
        json!({"uri": 7}),
        json!({"uri": ["skill://pdf"]}),
        json!([]),
        json!(null),
    ] {
        for method in ["skills/get", "resources/directory/read"] {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let session = server.start_session("2025-11-25");
            assert_eq!(
                session.post(&message).response_message()["error"]["code"],
                -32602,
                "{method} {params}"
            );
        }
    }
}

#[test]
fn lists_and_folders_have_pages() {
    let folder = skills();
    let server = HttpServer::start_with_config(&folder, "page_size = 1").wait_until_ready();
    let peer = Peer::new(&server, crate::support::MODERN);
    let all = |method: &str, member: &str, params: Value| {
        let mut found = Vec::new();
        let mut cursor = None::<Value>;
        loop {
            let mut params = params.clone();
            if let Some(cursor) = &cursor {
                params["cursor"] = cursor.clone();
            }
            let page = peer.result(method, params);
            assert_eq!(page[member].as_array().unwrap().len(), 1);
            found.extend(uris(&page[member]).into_iter().map(str::to_owned));
            cursor = page.get("nextCursor").cloned();
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(all("skills/list", "skills", json!({})), ALL);
    let within = |uri: &str| all("resources/directory/read", "resources", json!({"uri": uri}));
    let children =
        ["SKILL.md", "forms", "logo.png", "templates"].map(|name| format!("skill://pdf/{name}"));
    assert_eq!(within("skill://pdf"), children);
    assert_eq!(within("skill://zip"), ["skill://zip/SKILL.md"]);
    let first = peer.result("resources/directory/read", json!({"uri": "skill://pdf"}));
    for (method, uri) in [
        ("resources/directory/read", "skill://zip"),
        ("skills/list", ""),
    ] {
        for cursor in [&first["nextCursor"], &json!("!"), &json!(7)] {
            assert_eq!(
                peer.code(method, json!({"uri": uri, "cursor": cursor})),
                -32602,
                "{method} {cursor}"
            );
        }
    }
    let empty = json!({"uri": "skill://pdf", "cursor": ""});
    assert_eq!(
        peer.result("resources/directory/read", empty)["resources"],
        first["resources"]
    );
}

#[test]
fn a_skill_is_listed_only_if_the_caller_can_read_all_of_its_files() {
    let folder = skills();
    let (all, one) = token("all", "\ntools = [\"skill://pdf/*\"]");
    let (part, two) = token(
        "part",
        "\ntools = [\"skill://pdf/SKILL.md\", \"skill://pdf/forms/*\"]",
    );
    let (none, three) = token("none", "\ntools = [\"other\"]");
    let server =
        HttpServer::start_with_config(&folder, &format!("{one}{two}{three}")).wait_until_ready();
    let ask = |token: &str, method: &str, params: Value| {
        let bearer = format!("Bearer {token}");
        server
            .post_stateless(method, params, &[("Authorization", &bearer)])
            .response_message()
    };
    let listed = |token: &str| {
        let answer = ask(token, "skills/list", json!({}));
        assert_eq!(answer["result"]["cacheScope"], "private");
        uris(&answer["result"]["skills"])
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let can = |token: &str, method: &str, uri: &str| {
        let answer = ask(token, method, json!({"uri": uri}));
        assert!(
            answer.get("result").is_some() || answer["error"]["code"] == -32602,
            "{answer}"
        );
        answer.get("result").is_some()
    };
    assert_eq!(listed(&all), ALL[..2]);
    assert_eq!(listed(&part), ["skill://pdf/forms/SKILL.md"]);
    assert_eq!(listed(&none), Vec::<String>::new());
    assert!(can(&all, "skills/get", ALL[0]) && !can(&all, "skills/get", ALL[2]));
    assert!(!can(&part, "skills/get", ALL[0]) && can(&part, "skills/get", ALL[1]));
    assert!(
        can(&part, "resources/read", ALL[0])
            && !can(&part, "resources/read", "skill://pdf/logo.png")
    );
    assert!(!can(&none, "resources/read", ALL[0]) && !can(&none, "skills/get", ALL[0]));
    let folder = ask(
        &part,
        "resources/directory/read",
        json!({"uri": "skill://pdf"}),
    );
    assert_eq!(
        uris(&folder["result"]["resources"]),
        ["skill://pdf/SKILL.md", "skill://pdf/forms"]
    );
    assert!(!can(
        &part,
        "resources/directory/read",
        "skill://pdf/templates"
    ));
    assert!(!can(&none, "resources/directory/read", "skill://pdf"));
}

#[test]
fn the_grant_bounds_files_and_rates() {
    let folder = skills();
    write(&folder, "big.skill/SKILL.md", manifest("big", "Is big."));
    write(&folder, "big.skill/data.bin", vec![0; 2 << 20]);
    folder.put("zip.toml", "[rate_limit]\ncalls = 1\nper = \"1h\"\n");
    let server = HttpServer::start(&folder).wait_until_ready();
    let peer = Peer::new(&server, crate::support::MODERN);
    server.log.wait_for(
        "big.skill: data.bin is larger than 1.0 MiB (to allow more, raise limits.output in big.toml); nothing in it is \
         offered",
    );
    assert_eq!(
        peer.code("resources/read", json!({"uri": "skill://big/data.bin"})),
        -32602
    );
    peer.result("resources/read", json!({"uri": ALL[2]}));
    let again = peer
        .ask("resources/read", json!({"uri": ALL[2]}))
        .response_message();
    assert_eq!(
        again["error"]["data"]["dev.toolbay/error"], "rate-limited",
        "{again}"
    );
    folder.put("big.toml", "[limits]\noutput = \"3MiB\"\n");
    while peer
        .ask("skills/get", json!({"uri": "skill://big/SKILL.md"}))
        .response_message()
        .get("result")
        .is_none()
    {}
    let read = peer.result("resources/read", json!({"uri": "skill://big/data.bin"}));
    assert_eq!(bytes(&read), vec![0; 2 << 20]);
}

#[test]
fn list_shows_skills_and_problems_of_folders() {
    let folder = skills();
    write(
        &folder,
        "other.skill/SKILL.md",
        manifest("another", "Is called otherwise."),
    );
    write(
        &folder,
        "Two Words.skill/SKILL.md",
        manifest("two-words", "Is called otherwise."),
    );
    write(&folder, "empty.skill/readme.md", "Nothing.");
    for n in 0..513 {
        write(&folder, &format!("many.skill/{n}.md"), "");
    }
    folder.put("lonely.toml", "");
    folder.put("file.skill", "");
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    insta::assert_snapshot!(outcome.stdout);
    let outcome = ToolbayCommand::new(&folder).args(["list", "--json"]).run();
    let listed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(uris(&listed["skills"]), ALL);
    assert_eq!(uris(&listed["resources"]), ALL);
    assert_eq!(listed["plugins"]["pdf"]["skills"], json!(ALL[..2]));
    assert!(
        listed["plugins"]["pdf"].get("resources").is_none(),
        "{listed}"
    );
}
