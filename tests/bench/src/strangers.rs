//! Honest clients over HTTP, on an idle server and next to one hostile client.

mod honest;
mod hostile;
mod outcome;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use toolbay_testkit::{
    DEADLINE, HttpServerProcess, ObservableValue, ServerProgram, TestFolder, TinyComponent,
    TinyCoreModule, TinyTool, ToolbayCommand,
};

use self::honest::Honest;
pub(crate) use self::hostile::Kind;
pub(crate) use self::outcome::{Outcome, table};

/// Number of concurrent honest clients.
const CLIENTS: usize = 16;

/// The defaults except for the rate limits, because the honest clients call more often than one
/// caller may.
const CONFIG: &str = "[rate_limit]\ncalls = 1_000_000\nper = \"1s\"\n[caller_rate_limit]\ncalls = 1_000_000\nper = \"1s\"\n";

/// Enables the audit log, for a client that tries to fill it.
const AUDIT: &str = "[audit]\nfolder = \"audit\"\n";

/// Number of templates of the plugin that has many.
const TEMPLATES: usize = 3000;

/// A schema for which arguments are slow to check.
const STRICT: &str = r#"{"type": "object", "properties": {
    "text": {"type": "string", "pattern": "^(a|b)*(ab){3}$"}, "list": {"type": "array", "uniqueItems": true}}}"#;

/// Measures all kinds `rounds` times. For each kind, a new server runs without and then with a
/// client of the kind, each for `time`.
pub(crate) fn measure(
    server: &Path,
    kinds: &[Kind],
    rounds: u32,
    time: Duration,
    say: impl Fn(&str),
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = kinds
        .iter()
        .copied()
        .map(Outcome::new)
        .collect::<Result<_>>()?;
    for _ in 0..rounds {
        for outcome in &mut outcomes {
            say(outcome.kind.words());
            beside(server, outcome, time)
                .with_context(|| format!("beside a client that {}", outcome.kind.words()))?;
        }
    }
    Ok(outcomes)
}

fn beside(server: &Path, outcome: &mut Outcome, time: Duration) -> Result<()> {
    let kind = outcome.kind;
    let folder = TestFolder::create(&ServerProgram::new(server), "toolbay-bench-")?;
    let tool = TinyTool {
        description: Some("x".repeat(100_000)),
        ..TinyTool::new("light")
    };
    if kind == Kind::Places {
        // Both tools are in the same plugin, so that its slots used by the hostile client are
        // unavailable to the honest ones. The tool ends if it has no arguments.
        let tools = [&tool, &TinyTool::new("endless")]
            .map(TinyTool::clone)
            .to_vec();
        let endless = "(if (i32.gt_u (local.get $arguments-length) (i32.const 2)) (then (loop $again (br $again))))";
        fs::write(
            folder.plugin_path("light.wasm"),
            TinyComponent::with_tools(tools)
                .with_text("fine")
                .before_call(endless)
                .build(),
        )?;
    } else {
        fs::write(
            folder.plugin_path("light.wasm"),
            TinyComponent::with_tools(vec![tool])
                .with_text("fine")
                .build(),
        )?;
    }
    fs::write(
        folder.plugin_path("guarded.wasm"),
        TinyComponent::new(&["guarded"]).build(),
    )?;
    fs::write(
        folder.plugin_path("guarded.toml"),
        "require_approval = \"always\"\n",
    )?;
    fs::write(folder.plugin_path("resources.wasm"), resources().build())?;
    let strict = TinyTool {
        input: STRICT.to_owned(),
        ..TinyTool::new("strict")
    };
    fs::write(
        folder.plugin_path("strict.wasm"),
        TinyComponent::with_tools(vec![strict]).build(),
    )?;
    let audit = if kind == Kind::Rejected { AUDIT } else { "" };
    fs::write(
        folder.sibling_path("toolbay.toml"),
        format!("{CONFIG}{audit}"),
    )?;
    let (command, _folder) = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .into_parts();
    let mut listener = HttpServerProcess::start(command)?;
    let began = Instant::now();
    while !Honest::new(listener.address)?.is_served() {
        ensure!(
            began.elapsed() < DEADLINE,
            "the server does not answer; its log:\n{}",
            listener.log.text()
        );
    }
    let (idle, refused) = honest(&listener, time)?;
    ensure!(
        refused == 0,
        "the server refused {refused} calls while no hostile client was there"
    );
    outcome.idle.extend(idle);
    let over = ObservableValue::new(false);
    let address = listener.address;
    let (beside, refused) = thread::scope(|threads| {
        let hostile = threads.spawn(|| kind.go_on(address, &over));
        let measured = honest(&listener, time);
        over.update(|over| *over = true);
        outcome.attacks += hostile.join().unwrap_or_default();
        measured
    })?;
    outcome.beside.extend(beside);
    outcome.refused += refused;
    listener.process.terminate()?;
    let status = listener.process.wait_for_exit(DEADLINE)?;
    ensure!(
        status.success(),
        "the server ended with {status}:\n{}",
        listener.log.tail(20)
    );
    Ok(())
}

/// Returns resources, and templates that are slow to compare with URIs that do not match.
fn resources() -> TinyCoreModule {
    let variables = (0..14)
        .map(|n| format!("{{+w{n}}}x"))
        .collect::<Vec<_>>()
        .concat();
    let plain = (0..hostile::URIS).fold(TinyCoreModule::new(), |all, n| {
        all.resource(&format!("plain:{n}"), &format!("r{n}"))
    });
    (0..TEMPLATES).fold(plain, |all, n| {
        all.template(
            &format!("expensive:{{+v{n}}}x{variables}Q{{+z}}"),
            &format!("t{n}"),
        )
    })
}

/// Returns the durations of the calls of all honest clients, and the number of rejected calls.
fn honest(listener: &HttpServerProcess, time: Duration) -> Result<(Vec<Duration>, u64)> {
    let end = Instant::now() + time;
    thread::scope(|threads| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| threads.spawn(|| Honest::new(listener.address)?.go_on(end)))
            .collect();
        let mut all = Vec::new();
        let mut refused = 0;
        for client in clients {
            let (took, not) = client.join().ok().context("an honest client panicked")??;
            all.extend(took);
            refused += not;
        }
        Ok((all, refused))
    })
}
