//! The official Rust client against the real server.
//!
//!     client MODE TRANSPORT SERVER PLUGINS NEWCOMER
//!
//! MODE is `auto`, or the revision that a session begins with; TRANSPORT `stdio` or `http`; SERVER the binary; PLUGINS
//! a folder with the sample plugins; NEWCOMER a further plugin, with the tool `shout`, to drop in.

#![expect(
    deprecated,
    reason = "it asks for what the newest revision advises against, too"
)]

mod checks;
mod person;
mod serving;
mod surface;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientConfig,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::checks::Checks;
use crate::person::Person;
use crate::serving::Served;

/// What the whole conversation may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// The grant of a plugin that never ends: one call at a time, for as long as it likes.
const ENDLESS: &str = "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"\n";

/// What the server says unasked, as the client hears it, and who answers what it asks.
struct Ear {
    revision: ProtocolVersion,
    person: Person,
    steps: Mutex<Vec<f64>>,
    stepped: UnboundedSender<()>,
    changed: UnboundedSender<()>,
    updated: UnboundedSender<String>,
}

impl ClientHandler for Ear {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.steps.lock().unwrap().push(progress.progress);
        let _ = self.stepped.send(());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.changed.send(());
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.updated.send(update.uri);
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.person.elicit(question))
    }

    async fn create_message(
        &self,
        question: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(self.person.sample(&question))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.person.roots())
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.capabilities = Person::capabilities();
        config.client_info = Implementation::new("toolbay-tests", "0");
        config.with_protocol_version(self.revision.clone())
    }
}

/// A client, and the other ends of its [`Ear`].
struct Conversation {
    client: RunningService<RoleClient, Ear>,
    stepped: UnboundedReceiver<()>,
    changed: UnboundedReceiver<()>,
    updated: UnboundedReceiver<String>,
    folder: PathBuf,
}

impl Conversation {
    async fn names(&self) -> Result<Vec<String>> {
        Ok(self
            .client
            .list_all_tools()
            .await?
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect())
    }

    async fn call(
        &self,
        name: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        self.client.call_tool(parameters(name, arguments)).await
    }

    /// Waits until the client is told of a list in which there is, or is not, a tool.
    async fn told(&mut self, name: &str, listed: bool) -> Result<()> {
        loop {
            self.changed
                .recv()
                .await
                .context("the server says no more")?;
            if self.names().await?.iter().any(|own| own == name) == listed {
                return Ok(());
            }
        }
    }
}

fn parameters(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name)
        .with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn text(result: &CallToolResult) -> &str {
    result
        .content
        .iter()
        .find_map(|block| block.as_text())
        .map_or("", |text| &text.text)
}

async fn converse(
    mode: &str,
    mut at: Conversation,
    newcomer: &Path,
    checks: &mut Checks,
) -> Result<()> {
    let revision = at
        .client
        .peer()
        .peer_info()
        .context("it did not say who it is")?
        .protocol_version
        .to_string();
    let expected = if mode == "auto" { "2026-07-28" } else { mode };
    checks.check(
        &format!("connects, with revision {revision}"),
        revision == expected,
        expected,
    );

    let names = at.names().await?;
    let known = ["calculate_sum", "test_tool_with_progress", "loop_forever"];
    checks.check(
        "lists tools",
        known
            .iter()
            .all(|tool| names.iter().any(|name| name == tool)),
        &names,
    );
    let sum = at.call("calculate_sum", json!({"a": 1, "b": 2.5})).await?;
    // Before 2025-06-18 the text alone says it.
    let structured = (revision.as_str() >= "2025-06-18").then(|| json!({"sum": 3.5}));
    checks.check(
        "calls a tool",
        text(&sum).contains("3.5") && sum.structured_content == structured,
        &sum,
    );
    let failed = at.call("test_error_handling", json!({})).await?;
    checks.check(
        "a failure is a result",
        failed.is_error == Some(true),
        &failed,
    );
    let unknown = at.call("no_such_tool", json!({})).await;
    let code = if let Err(ServiceError::McpError(error)) = &unknown {
        error.code.0
    } else {
        0
    };
    checks.check("an unknown tool is error -32602", code == -32602, &unknown);

    at.call("test_tool_with_progress", json!({})).await?;
    for _ in 0..3 {
        at.stepped.recv().await.context("the server says no more")?;
    }
    let steps = std::mem::take(&mut *at.client.service().steps.lock().unwrap());
    checks.check(
        "progress comes as it is made",
        steps == [0.0, 50.0, 100.0],
        &steps,
    );

    // It computes for ever, and no other call of its plugin gets its turn meanwhile.
    let endless = CallToolRequest::new(parameters("loop_forever", json!({})));
    let options = PeerRequestOptions::no_options();
    let endless = at
        .client
        .send_cancellable_request(endless.into(), options)
        .await?;
    at.stepped.recv().await.context("the call did not begin")?;
    endless.cancel(Some("changed my mind".into())).await?;
    let next = at.call("count", json!({})).await?;
    checks.check(
        "a call that is given up ends, and the next one gets its turn",
        text(&next) == "1",
        &next,
    );

    surface::converse(&mut at, &revision, checks).await?;
    tasks::converse(&at, &revision, checks).await?;

    let target = at.folder.join("newcomer.wasm");
    fs::copy(newcomer, &target)?;
    at.told("shout", true).await?;
    let shouted = at.call("shout", json!({"text": "hello"})).await?;
    checks.check(
        "is told of a new tool, and calls it",
        text(&shouted).contains("HELLO"),
        &shouted,
    );
    fs::remove_file(&target)?;
    at.told("shout", false).await?;
    checks.check("is told that it is gone", true, "");
    at.client.cancel().await?;
    Ok(())
}

/// A folder with what the conversation calls; the rest of `root` is the server's own.
fn lay_out(root: &Path, plugins: &Path, newcomer: &Path) -> Result<PathBuf> {
    let folder = root.join("plugins");
    fs::create_dir(&folder)?;
    fs::copy(
        plugins.join("calculator.wasm"),
        folder.join("calculator.wasm"),
    )?;
    for guest in ["conformance.wasm", "hostile.wasm"] {
        fs::copy(newcomer.with_file_name(guest), folder.join(guest))?;
    }
    fs::write(folder.join("hostile.toml"), ENDLESS)?;
    Ok(folder)
}

async fn run(
    mode: &str,
    transport: &str,
    server: &Path,
    folder: PathBuf,
    newcomer: &Path,
    checks: &mut Checks,
) -> Result<()> {
    let root = folder.parent().context("the folder is nowhere")?.to_owned();
    let command = |first: &str| {
        let mut command = Command::new(server);
        command
            .arg(first)
            .arg("--plugins")
            .arg(&folder)
            .current_dir(&root)
            .env("XDG_CACHE_HOME", root.join("cache"));
        command
    };
    // So that all tools are there at once, however slow the machine is.
    let compiled = command("compile").output().await?;
    if !compiled.status.success() {
        bail!(
            "toolbay compile failed: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
    }
    let ((stepped, steps), (changed, changes)) = (unbounded_channel(), unbounded_channel());
    let (updated, updates) = unbounded_channel();
    let legacy = serde_json::from_value(json!(mode))?;
    let revision = if mode == "auto" {
        ProtocolVersion::LATEST
    } else {
        legacy
    };
    let person = Person::new();
    let ear = Ear {
        revision,
        person,
        steps: Mutex::default(),
        stepped,
        changed: changed.clone(),
        updated,
    };
    let lifecycle = match mode {
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: None,
        },
        _ => ClientLifecycleMode::Initialize,
    };
    let mut served = None;
    let client = if transport == "http" {
        let http = Served::start(command("serve")).await?;
        let to = StreamableHttpClientTransport::from_uri(http.url.as_str());
        served = Some(http);
        ear.serve_with_lifecycle(to, lifecycle).await?
    } else {
        let mut serve = command("serve");
        serve.args(["--log", "warn"]);
        ear.serve_with_lifecycle(TokioChildProcess::new(serve)?, lifecycle)
            .await?
    };
    if mode == "auto" {
        // In this era a client hears of changes where it asked to.
        let mut news = client
            .listen(SubscriptionFilter::builder().tools_list_changed().build())
            .await?;
        tokio::spawn(async move {
            while let Ok(Some(_)) = news.next().await {
                let _ = changed.send(());
            }
        });
    }
    let conversation = Conversation {
        client,
        stepped: steps,
        changed: changes,
        updated: updates,
        folder,
    };
    converse(mode, conversation, newcomer, checks).await?;
    if let Some(served) = served {
        let code = served.end().await?;
        checks.check("the server ends well", code == Some(0), code);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, transport, server, plugins, newcomer] = args.as_slice() else {
        bail!("usage: client MODE TRANSPORT SERVER PLUGINS NEWCOMER");
    };
    let root = tempfile::Builder::new().prefix("toolbay-").tempdir()?;
    let newcomer = Path::new(newcomer);
    let folder = lay_out(root.path(), Path::new(plugins), newcomer)?;
    let mut checks = Checks::default();
    let conversation = run(
        mode,
        transport,
        Path::new(server),
        folder,
        newcomer,
        &mut checks,
    );
    match tokio::time::timeout(PATIENCE, conversation).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => checks.check("the conversation goes on to its end", false, error),
        Err(elapsed) => checks.check("the conversation goes on to its end", false, elapsed),
    }
    println!("{} passed, {} failed", checks.passed, checks.failed);
    Ok(if checks.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
