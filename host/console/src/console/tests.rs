use std::time::SystemTime;

use axum::body::{Body, Bytes, to_bytes};
use futures_util::future::{BoxFuture, poll_immediate};
use http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};
use toolbay_model::{CallUsage, Digest, JsonText};
use tower_service::Service as _;

use super::*;
use crate::access::AdminToken;
use crate::approvals::ApprovalNote;
use crate::call_note::tests::note;
use crate::call_note::{CallNote, TextExcerpt};
use crate::denials::DenialNote;
use crate::formatting::encode_query;
use crate::operations::ConsoleViewer;
use crate::pages::held_plugin;
use crate::request_permits::MAX_PER_OWNER;
use crate::secret::hash_secret;
use crate::server_data::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, GrantProposal, GrantText,
    HeldPlugin, LimitRow, LimitSource, OfferRow, PluginDetail, PluginFile, PluginRow, PluginStatus,
    PreviousGrant, ServerStatus, ToolDetail, ToolRow, ToolsPage, UsageRow, UsageSummary,
    VersionApproval, VersionApprovalOutcome, WaitingApproval,
};

const BODY_TIME: Duration = Duration::from_mins(1);

/// Text that pages must escape, regardless of its source.
const HOSTILE: &str =
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;</textarea></title>";

/// A server that returns this text for everything.
struct Stub(&'static str);

impl Stub {
    fn tool(&self) -> ToolRow {
        let text = || self.0.to_owned();
        ToolRow {
            name: text(),
            plugin: text(),
            title: Some(text()),
            description: Some(text()),
            approval: Some(text()),
        }
    }

    fn row(&self) -> PluginRow {
        let text = || self.0.to_owned();
        PluginRow {
            id: text(),
            status: PluginStatus::Stale,
            purpose: Some(text()),
            is_held: true,
            tools: 1,
            problems: vec![text()],
            permissions: vec![text()],
        }
    }
}

impl ConsoleOperations for Stub {
    fn status(&self) -> ServerStatus {
        ServerStatus {
            version: "1.2.3",
            folder: self.0.to_owned(),
            is_loaded: true,
            offered: vec![(2, "tools"), (1, "prompts")],
            running: (1, 64),
            waiting: 2,
            memory: (128 << 20, 1 << 30),
            notes: vec![self.0.to_owned()],
            no_cache: None,
            has_audit_log: true,
            records_contents: true,
        }
    }

    fn proposal(&self, plugin: &str) -> Option<GrantProposal> {
        let text = || self.0.to_owned();
        (plugin == self.0).then(|| GrantProposal {
            text: text(),
            excess: vec![text()],
            missing: vec![text()],
        })
    }

    fn plugins(&self) -> Vec<PluginRow> {
        vec![self.row()]
    }

    fn plugin(&self, id: &str) -> Option<PluginDetail> {
        (id == self.0).then(|| PluginDetail {
            row: self.row(),
            digest: Some("ab".repeat(32)),
            file: Some(PluginFile {
                path: self.0.to_owned(),
                link_target: Some(self.0.to_owned()),
                size: 1 << 20,
                modified_at: Some(SystemTime::UNIX_EPOCH),
            }),
            loaded_at: Some(SystemTime::UNIX_EPOCH),
            toolchain: vec![self.0.to_owned()],
            terms: vec![self.0.to_owned()],
            limits: [
                ("fuel", LimitSource::Grant),
                ("memory", LimitSource::Server),
                ("stack", LimitSource::BuiltIn),
            ]
            .map(|(key, source)| LimitRow {
                key: key.to_owned(),
                value: "1,000".to_owned(),
                source,
            })
            .into(),
            usage: Some(UsageSummary {
                calls: 2,
                stopped: 1,
                rows: vec![UsageRow {
                    key: "fuel",
                    used: "900".to_owned(),
                    limit: "1,000".to_owned(),
                    percent: 90,
                }],
                suggestion: self.0.to_owned(),
            }),
            grant: Some(GrantText {
                text: format!("a\n{}\nb\n", self.0),
                previous: Some(PreviousGrant {
                    text: format!("a\nold {}\nb\n", self.0),
                    replaced_at: SystemTime::UNIX_EPOCH,
                }),
            }),
            proposal: self.proposal(self.0),
            tools: vec![self.tool()],
            offers: vec![(
                "Prompts",
                vec![OfferRow {
                    name: self.0.to_owned(),
                    title: Some(self.0.to_owned()),
                    description: Some(self.0.to_owned()),
                }],
            )],
            disabled: vec![(self.0.to_owned(), Duration::from_secs(7))],
            can_suspend: true,
            approval: Some(VersionApproval {
                by: self.0.to_owned(),
                at: SystemTime::UNIX_EPOCH,
            }),
        })
    }

    fn held_version(&self, plugin: &str) -> Option<HeldPlugin> {
        (plugin == self.0).then(|| held_plugin(self.0))
    }

    fn approve_version(
        &self,
        _viewer: &ConsoleViewer,
        plugin: &str,
        base: Option<Digest>,
        version: Digest,
    ) -> BoxFuture<'static, VersionApprovalOutcome> {
        let held = held_plugin(plugin);
        let is_shown = base == held.base && version == held.version;
        Box::pin(std::future::ready(if is_shown {
            VersionApprovalOutcome::Done
        } else {
            VersionApprovalOutcome::Changed
        }))
    }

    fn tools(&self, _search: &str, _from: usize, _most: usize) -> ToolsPage {
        ToolsPage {
            rows: vec![self.tool()],
            total: 300,
            is_similar: false,
        }
    }

    fn tool(&self, name: &str) -> Option<ToolDetail> {
        let properties = json!({
            self.0: {"type": "string", "description": self.0, "default": self.0},
            "choice": {"enum": [self.0]},
            "group": {"type": "object", "description": self.0, "properties": {self.0: {"type": "integer"}}},
            "list": {"type": "array", "items": {"type": "string"}, "default": [self.0]},
            "any": {"default": {"a": self.0}},
        });
        (name == self.0).then(|| ToolDetail {
            row: self.tool(),
            input: JsonText::from(
                json!({"type": "object", "properties": properties, "description": self.0}),
            ),
            output: Some(JsonText::from(json!({"description": self.0}))),
            hints: vec!["read-only"],
        })
    }

    fn may_use(&self, viewer: &ConsoleViewer, _tool: &str) -> bool {
        viewer.name != "token:watcher"
    }

    fn call_tool(
        &self,
        _viewer: &ConsoleViewer,
        _tool: String,
        arguments: Map<String, Value>,
        allowed: Option<Digest>,
    ) -> BoxFuture<'static, ConsoleCallOutcome> {
        let text = self.0;
        let question = Digest::new(hash_secret(text));
        Box::pin(async move {
            if arguments.contains_key("any") && allowed != Some(question) {
                return ConsoleCallOutcome::Question(text.to_owned(), question);
            }
            let content = json!([
                {"type": "text", "text": text},
                {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
                {"type": "image", "mimeType": "image/png", "data": text},
                {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
                {"type": "audio", "mimeType": text, "data": "AAAA"},
                {"type": "resource_link", "uri": format!("javascript:{text}"), "name": text},
            ]);
            let result = json!({"content": content, "structuredContent": {"a": text}});
            ConsoleCallOutcome::Ended {
                result: Ok(result),
                outcome: "ok",
                usage: Some(CallUsage::default()),
            }
        })
    }

    fn waiting_approvals(&self) -> Vec<WaitingApproval> {
        let at = SystemTime::UNIX_EPOCH;
        let text = || self.0.to_owned();
        vec![WaitingApproval {
            id: 7,
            asked_at: at,
            expires_at: at,
            caller: text(),
            plugin: text(),
            tool: text(),
            question: text(),
            covered_calls: "this call",
            is_for_operator: false,
        }]
    }

    fn answer_approval(
        &self,
        viewer: &ConsoleViewer,
        id: u64,
        _yes: bool,
    ) -> BoxFuture<'_, ApprovalOutcome> {
        Box::pin(std::future::ready(match id {
            7 if self.may_use(viewer, self.0) => ApprovalOutcome::Done,
            7 => ApprovalOutcome::Forbidden,
            _ => ApprovalOutcome::Gone,
        }))
    }

    fn set_suspended(&self, _viewer: &ConsoleViewer, plugin: &str, _rests: bool) -> bool {
        plugin == self.0
    }

    fn stop_call(&self, _viewer: &ConsoleViewer, _id: u64) -> bool {
        true
    }

    fn clear_cache(
        &self,
        _viewer: &ConsoleViewer,
    ) -> BoxFuture<'static, Result<ClearedCache, String>> {
        Box::pin(async { Ok(ClearedCache::default()) })
    }

    fn audit_lines(
        &self,
        _most: usize,
    ) -> BoxFuture<'static, Option<Result<Vec<AuditLine>, String>>> {
        let text = || self.0.to_owned();
        let line = AuditLine {
            time: text(),
            event: text(),
            outcome: text(),
            caller: text(),
            plugin: text(),
            tool: text(),
            details: text(),
        };
        Box::pin(async move { Some(Ok(vec![line])) })
    }
}

/// A console with the tokens `secret-ops` and `secret-watcher`.
struct Site(Router);

struct Got {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Site {
    fn new(text: &'static str) -> Self {
        let activity = Arc::<ServerActivity>::default();
        let excerpt = Some(TextExcerpt::new(text));
        let mut call = CallNote {
            caller: text.to_owned(),
            plugin: Some(text.to_owned()),
            failure_reason: Some(text.to_owned()),
            arguments: excerpt.clone(),
            result: excerpt,
            ..note(text, "fuel")
        };
        call.trail.record_message("info", text);
        call.trail.record_denial(text);
        call.approval = Some(text.to_owned());
        call.trace_id = Some(text.to_owned());
        activity.record_call(call.clone());
        call.plugin = None;
        call.id = 2;
        activity.record_call(call);
        let at = SystemTime::UNIX_EPOCH;
        let words = || text.to_owned();
        activity.record_denial(DenialNote {
            at,
            plugin: words(),
            tool: words(),
            operation: words(),
            remedy: Some(words()),
        });
        for (word, at) in [("requested", SystemTime::now()), ("declined", at)] {
            let time = Duration::from_hours(1);
            let arguments = Some(Digest::new([if word == "requested" { 1 } else { 2 }; 32]));
            activity.record_approval(ApprovalNote {
                at,
                caller: words(),
                plugin: words(),
                tool: words(),
                status: word,
                answered_by: Some(words()),
                arguments,
                time_limit: time,
            });
        }
        activity.record_log_lines(&format!("2026-05-01T08:00:00Z  WARN {text}\n"));
        let admin = |name: &str| AdminToken {
            name: format!("token:{name}"),
            sha256: hash_secret(&format!("secret-{name}")),
        };
        let access = ConsoleAccess::admins(vec![admin("ops"), admin("watcher")], vec![admin("ci")]);
        Self(
            Console::new(
                Arc::new(Stub(text)),
                activity,
                access,
                8931,
                Duration::from_hours(8),
                |_| None,
                BODY_TIME,
            )
            .router(),
        )
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Got {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "127.0.0.1:8931");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .0
            .call(request.body(Body::from(body)).unwrap())
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let body = String::from_utf8(to_bytes(body, 1 << 22).await.unwrap().to_vec()).unwrap();
        Got {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }

    /// Logs in with a token. Returns the cookie.
    async fn enter(&mut self, token: &str) -> String {
        let response = self.post("/console/login", "", &[("token", token)]).await;
        assert_eq!(response.status, 303);
        let cookie = response.headers[SET_COOKIE].to_str().unwrap();
        assert!(
            cookie.ends_with("; Path=/console; Max-Age=28800; HttpOnly; SameSite=Strict"),
            "{cookie}"
        );
        cookie.split(';').next().unwrap().to_owned()
    }

    async fn get(&mut self, path: &str, cookie: &str) -> Got {
        self.send("GET", path, &[(COOKIE.as_str(), cookie)], String::new())
            .await
    }

    async fn post(&mut self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Got {
        let headers = [
            (COOKIE.as_str(), cookie),
            (ORIGIN.as_str(), "http://127.0.0.1:8931"),
            (CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded"),
        ];
        self.send("POST", path, &headers, encode_query(form)).await
    }
}

/// Returns the value of a hidden field of a page.
fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap();
    rest.split('"').next().unwrap().to_owned()
}

const PAGES: [&str; 9] = [
    "",
    "/plugins",
    "/tools",
    "/calls",
    "/denials",
    "/approvals",
    "/audit",
    "/log",
    "/log?q=WARN",
];

/// Asserts that the page contains none of the hostile text as markup.
fn check(response: &Got, subject: &str) {
    for bad in [
        "<script>alert",
        "<img src=x",
        "</textarea></title>",
        "&amp;</",
        "javascript:\"'",
    ] {
        assert!(
            !response.body.contains(bad),
            "{subject}: {bad}\n{}",
            response.body
        );
    }
    // Two scripts of the console, and no inline scripts or styles.
    let own = response.body.matches("<script src=\"/console/").count();
    assert_eq!(
        (response.body.matches("<script").count(), own),
        (2, 2),
        "{subject}"
    );
    for attribute in [" onerror=\"", " onclick=", " style=", " srcdoc="] {
        assert!(!response.body.contains(attribute), "{subject}: {attribute}");
    }
    guarded_by_headers(&response.headers, subject);
}

fn guarded_by_headers(headers: &HeaderMap, subject: &str) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
        "{subject}: {policy}"
    );
    assert!(
        !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(headers[name], value, "{subject}: {name}");
    }
}

#[tokio::test]
async fn every_page_shows_hostile_text_as_text() {
    let mut site = Site::new(HOSTILE);
    let cookie = site.enter("secret-ops").await;
    let named = |key: &str| encode_query(&[(key, HOSTILE)]);
    let mut paths: Vec<String> = PAGES.iter().map(|path| format!("/console{path}")).collect();
    paths.extend(
        ["plugins", "tools", "calls", "log"].map(|page| format!("/console/{page}?{}", named("q"))),
    );
    paths.push(format!("/console/plugin?{}", named("id")));
    paths.push(format!("/console/plugin?{}&{}", named("id"), named("done")));
    paths.push(format!("/console/held?{}", named("id")));
    for field in ["plugin", "outcome", "caller"] {
        paths.push(format!("/console/calls?{}", named(field)));
    }
    paths.push(format!("/console/denials?{}", named("plugin")));
    paths.extend([1, 2].map(|id| format!("/console/call?id={id}")));
    paths.extend(["15m", "7d"].map(|range| format!("/console?range={range}")));
    paths.push(format!("/console/tool?{}", named("name")));
    paths.push(format!("/console/tool?{}&json=1", named("name")));
    for path in &paths {
        let response = site.get(path, &cookie).await;
        assert_eq!(response.status, 200, "{path}");
        check(&response, path);
        // The hostile text is present as text.
        assert!(
            response.body.contains("&lt;script&gt;alert(1)") || path.contains('?'),
            "{path}"
        );
    }
    for path in [
        "/console/plugin?id=no",
        "/console/held?id=no",
        "/console/tool?name=no",
        "/console/call?id=3",
        "/console/call",
        "/console/no-such-page",
        "/console/a/b",
    ] {
        let response = site.get(path, &cookie).await;
        assert_eq!(response.status, 404, "{path}");
        check(&response, path);
        assert!(response.body.contains("<nav"), "{path}");
    }
}

#[tokio::test]
async fn call_asks_for_approval_and_shows_its_result_as_text() {
    let mut site = Site::new(HOSTILE);
    let cookie = site.enter("secret-ops").await;
    let page = site
        .get(
            &format!("/console/tool?{}", encode_query(&[("name", HOSTILE)])),
            &cookie,
        )
        .await
        .body;
    let csrf = hidden(&page, "csrf");
    let schema = hidden(&page, "schema");
    let usual = [
        ("csrf", csrf.as_str()),
        ("tool", HOSTILE),
        ("schema", schema.as_str()),
        ("f0", HOSTILE),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&usual[..], more].concat();
    let got = site.post("/console/tool", &cookie, &with(&[])).await;
    assert_eq!(got.status, 200);
    check(&got, "a result");
    assert!(
        got.body
            .contains("src=\"data:image/png;base64,iVBORw0KGgo=\""),
        "{}",
        got.body
    );
    assert_eq!(
        got.body.matches("<img").count(),
        1,
        "neither what is no base64 nor an SVG"
    );
    assert!(!got.body.contains("href=\"javascript"));
    let got = site
        .post("/console/tool", &cookie, &with(&[("f4", "{\"a\": 1}")]))
        .await;
    check(&got, "a question");
    assert!(
        got.body.contains("Approve this call?") && !got.body.contains("Structured content</h3>"),
        "{}",
        got.body
    );
    let allow = hidden(&got.body, "allow");
    let approved_form = [&with(&[("f4", "{\"a\": 1}")])[..], &[("allow", &allow)]].concat();
    let got = site.post("/console/tool", &cookie, &approved_form).await;
    assert!(got.body.contains("Structured content</h3>"), "{}", got.body);
    let got = site
        .post(
            "/console/tool",
            &cookie,
            &with(&[("f2_0", HOSTILE), ("f4", "{")]),
        )
        .await;
    check(&got, "wrong fields");
    assert!(
        got.body.contains("2 fields cannot be read") && got.body.contains("expected an integer"),
        "{}",
        got.body
    );
    let outdated = [
        ("csrf", csrf.as_str()),
        ("tool", HOSTILE),
        ("schema", "ab"),
        ("f0", "x"),
    ];
    let got = site.post("/console/tool", &cookie, &outdated).await;
    assert!(
        got.body
            .contains("The tool has changed since this form was loaded"),
        "{}",
        got.body
    );
}

#[tokio::test]
async fn viewer_without_access_to_a_tool_can_neither_call_it_nor_view_its_calls() {
    let mut site = Site::new("echo");
    let cookie = site.enter("secret-watcher").await;
    let page = site.get("/console/tool?name=echo", &cookie).await.body;
    assert!(
        page.contains("no right to call") && !page.contains("data-call"),
        "{page}"
    );
    let csrf = hidden(&page, "csrf");
    let form = [
        ("csrf", csrf.as_str()),
        ("tool", "echo"),
        ("raw", "yes"),
        ("json", "{}"),
    ];
    let response = site.post("/console/tool", &cookie, &form).await;
    assert_eq!(response.status, 403);
    assert!(!response.body.contains("Structured content</h3>"));
    assert!(
        !site
            .get("/console/calls", &cookie)
            .await
            .body
            .contains("Contents")
    );
    let ops = site.enter("secret-ops").await;
    assert!(
        site.get("/console/calls", &ops)
            .await
            .body
            .contains("Contents")
    );
}

#[tokio::test]
async fn pages_need_a_session_and_changes_need_its_token() {
    let mut site = Site::new("echo");
    for path in PAGES {
        let response = site.get(&format!("/console{path}"), "").await;
        assert_eq!(
            (
                response.status,
                response.headers[LOCATION].to_str().unwrap()
            ),
            (303, "/console/login"),
            "{path}"
        );
        assert!(response.body.is_empty());
        guarded_by_headers(&response.headers, path);
    }
    assert_eq!(site.get("/", "").await.headers[LOCATION], "/console");
    let login = site.get("/console/login", "").await;
    assert_eq!(login.status, 200);
    guarded_by_headers(&login.headers, "login");
    let live = site
        .send(
            "GET",
            "/console/calls",
            &[("toolbay-live", "1")],
            String::new(),
        )
        .await;
    assert_eq!(
        live.status, 401,
        "the script is told, and not led to the login"
    );
    let cookie = site.enter("secret-ops").await;
    for path in [
        "/console/plugin",
        "/console/held",
        "/console/tool",
        "/console/cache",
        "/console/approval",
        "/console/logout",
    ] {
        for form in [
            &[("id", "echo"), ("tool", "echo")][..],
            &[("csrf", "guessed"), ("id", "echo")],
        ] {
            assert_eq!(site.post(path, &cookie, form).await.status, 403, "{path}");
        }
        assert_eq!(
            site.post(path, "", &[("csrf", "x")]).await.status,
            401,
            "{path}"
        );
    }
    let other = site.enter("secret-ops").await;
    let csrf = hidden(&site.get("/console", &other).await.body, "csrf");
    let foreign = site
        .post(
            "/console/plugin",
            &cookie,
            &[("csrf", &csrf), ("id", "echo"), ("disabled", "yes")],
        )
        .await;
    assert_eq!(foreign.status, 403, "the token of another session");
    let own = site
        .post(
            "/console/plugin",
            &other,
            &[("csrf", &csrf), ("id", "echo"), ("disabled", "yes")],
        )
        .await;
    assert_eq!(
        (own.status, own.headers[LOCATION].to_str().unwrap()),
        (303, "/console/plugin?id=echo&done=disabled")
    );
    let cleared = site
        .post("/console/cache", &other, &[("csrf", &csrf)])
        .await;
    assert_eq!(cleared.headers[LOCATION], "/console?done=cleared");
    let left = site
        .post("/console/logout", &other, &[("csrf", &csrf)])
        .await;
    assert!(
        left.headers[SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(
        site.get("/console", &other).await.status,
        303,
        "it has ended"
    );
    assert_eq!(site.get("/console", &cookie).await.status, 200);
}

#[tokio::test]
async fn pages_of_a_plugin_and_of_calls_as_they_are() {
    let mut site = Site::new("echo");
    let cookie = site.enter("secret-ops").await;
    let mut main = async |path: &str| {
        let page = site.get(path, &cookie).await.body;
        let csrf = hidden(&page, "csrf");
        let (_, main) = page.split_once("<main").unwrap();
        main.replace(&csrf, "CSRF").replace("><", ">\n<")
    };
    insta::assert_snapshot!("plugin", main("/console/plugin?id=echo").await);
    insta::assert_snapshot!("calls", main("/console/calls?failed=yes").await);
    insta::assert_snapshot!("tool", main("/console/tool?name=echo").await);
    insta::assert_snapshot!("denied", main("/console/denials").await);
}

#[tokio::test]
async fn waiting_call_is_answered_by_viewers_who_may_call_the_tool() {
    let mut site = Site::new("echo");
    let cookie = site.enter("secret-ops").await;
    let page = site.get("/console/approvals", &cookie).await.body;
    let csrf = hidden(&page, "csrf");
    assert!(
        page.contains("value=\"approve\"") && page.contains("value=\"decline\""),
        "{page}"
    );
    for (answer, location) in [("approve", "approved"), ("decline", "declined")] {
        let form = [("csrf", csrf.as_str()), ("id", "7"), ("answer", answer)];
        let got = site.post("/console/approval", &cookie, &form).await;
        assert_eq!(
            (got.status, got.headers[LOCATION].to_str().unwrap()),
            (303, &*format!("/console/approvals?done={location}"))
        );
    }
    for id in ["8", "0", "-7", "", "7 or 8", "99999999999999999999"] {
        let form = [("csrf", csrf.as_str()), ("id", id), ("answer", "approve")];
        let got = site.post("/console/approval", &cookie, &form).await;
        assert_eq!(
            (
                got.status,
                got.body.contains("No call waits for this answer")
            ),
            (409.try_into().unwrap(), true),
            "{id}"
        );
    }
    for answer in ["", "yes", "Approve"] {
        let form = [("csrf", csrf.as_str()), ("id", "7"), ("answer", answer)];
        assert_eq!(
            site.post("/console/approval", &cookie, &form).await.status,
            400,
            "{answer}"
        );
    }
    let watcher = site.enter("secret-watcher").await;
    let page = site.get("/console/approvals", &watcher).await.body;
    assert!(
        !page.contains("value=\"approve\"") && page.contains("may not call this tool"),
        "{page}"
    );
    let form = [
        ("csrf", hidden(&page, "csrf")),
        ("id", "7".to_owned()),
        ("answer", "approve".to_owned()),
    ];
    let form: Vec<(&str, &str)> = form
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(
        site.post("/console/approval", &watcher, &form).await.status,
        403
    );
}

#[tokio::test]
async fn slow_forms_of_a_viewer_do_not_block_other_viewers() {
    let mut site = Site::new("echo");
    let (ops, again, watcher) = (
        site.enter("secret-ops").await,
        site.enter("secret-ops").await,
        site.enter("secret-watcher").await,
    );
    let slow = |router: &Router, cookie: &str| {
        let body =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let request = Request::builder()
            .method("POST")
            .uri("/console/tool")
            .header(HOST, "127.0.0.1:8931")
            .header(ORIGIN, "http://127.0.0.1:8931")
            .header(COOKIE, cookie)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        Box::pin(router.clone().call(request.body(body).unwrap()))
    };
    // Two sessions of one token are one viewer.
    let mut slow_requests = Vec::new();
    for number in 0..70 {
        let mut sending = slow(&site.0, if number % 2 == 0 { &ops } else { &again });
        let polled = poll_immediate(&mut sending).await;
        match polled {
            Some(Ok(response)) => assert_eq!(
                response.status(),
                StatusCode::SERVICE_UNAVAILABLE,
                "{number}"
            ),
            None => slow_requests.push(sending),
        }
    }
    assert_eq!(slow_requests.len(), MAX_PER_OWNER);
    assert_eq!(site.get("/console", &ops).await.status, 503);
    assert_eq!(
        site.get("/console", &watcher).await.status,
        200,
        "another viewer"
    );
    drop(slow_requests);
    assert_eq!(site.get("/console", &again).await.status, 200);
}

#[tokio::test]
async fn waiting_calls_are_counted_on_every_page_for_those_who_can_answer_them() {
    let mut site = Site::new("echo");
    let operator = site.enter("secret-ops").await;
    for path in ["", "/plugins", "/approvals", "/log"] {
        let page = site.get(&format!("/console{path}"), &operator).await.body;
        assert!(page.contains("<title>(1) "), "{path}: {page}");
        assert!(
            page.contains("aria-label=\"1 call waits\"") && page.contains("data-newest=\"7\""),
            "{path}: {page}"
        );
    }
    let page = site.get("/console/approvals", &operator).await.body;
    assert!(page.contains(">Approve this call</button>"), "{page}");
    let counted = site.get("/console/waiting", &operator).await;
    assert_eq!(counted.body, "{\"count\":1,\"newest\":7}");
    assert_eq!(counted.headers["content-type"], "application/json");
    let watcher = site.enter("secret-watcher").await;
    let page = site.get("/console/plugins", &watcher).await.body;
    assert!(page.contains("<title>Plugins"), "{page}");
    let counted = site.get("/console/waiting", &watcher).await;
    assert_eq!(counted.body, "{\"count\":0,\"newest\":0}");
    let counted = site.get("/console/waiting", "").await;
    assert_eq!(counted.status, 303);
}

#[tokio::test]
async fn exports_select_calls_and_hide_contents_like_the_page() {
    let mut site = Site::new(HOSTILE);
    let ops = site.enter("secret-ops").await;
    let watcher = site.enter("secret-watcher").await;
    for (path, media_type) in [
        ("/console/calls.csv", "text/csv; charset=utf-8"),
        ("/console/calls.jsonl", "application/jsonl; charset=utf-8"),
    ] {
        let export = site.get(path, &ops).await;
        assert_eq!(export.status, 200);
        assert_eq!(export.headers[CONTENT_TYPE], media_type);
        let disposition = export.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment; "), "{disposition}");
        guarded_by_headers(&export.headers, path);
        // Names are in both, contents only in the first.
        let count = |got: &Got| got.body.matches("alert(1)").count();
        let hidden = site.get(path, &watcher).await;
        assert!(
            count(&hidden) > 0 && count(&hidden) < count(&export),
            "{path}"
        );
        let none = site.get(&format!("{path}?plugin=other"), &ops).await;
        assert_eq!((none.status, count(&none)), (200, 0));
        let wrong = site.get(&format!("{path}?from=soon"), &ops).await;
        assert_eq!(wrong.status, 400, "{}", wrong.body);
        assert_eq!(site.get(path, "").await.status, 303);
    }
}

#[tokio::test]
async fn page_of_a_call_shows_its_contents_only_to_those_who_may_call_the_tool() {
    let mut site = Site::new("echo");
    let ops = site.enter("secret-ops").await;
    let watcher = site.enter("secret-watcher").await;
    let page = site.get("/console/call?id=1", &ops).await.body;
    for heading in [
        "Arguments",
        "Result",
        "Denials",
        "Log messages",
        "info: echo",
    ] {
        assert!(page.contains(heading), "{heading}: {page}");
    }
    let page = site.get("/console/call?id=1", &watcher).await.body;
    assert!(
        page.contains("is not shown") && !page.contains("info: echo"),
        "{page}"
    );
}

#[tokio::test]
async fn valid_token_without_the_right_gets_a_page_that_states_this() {
    let mut site = Site::new("echo");
    let response = site
        .post("/console/login", "", &[("token", "secret-ci")])
        .await;
    assert_eq!(response.status, 403);
    assert!(!response.headers.contains_key(SET_COOKIE));
    assert!(
        response.body.contains("admin = true") && response.body.contains("token:ci"),
        "{}",
        response.body
    );
    guarded_by_headers(&response.headers, "no right");
    let wrong = site.post("/console/login", "", &[("token", "x")]).await;
    assert_eq!(wrong.status, 401);
}
