//! A server with a plugin that must always respond. The guests are put into its folder one after
//! the other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::process_usage::{reset_peak_memory, vitals};
use toolbay_testkit::{
    DEADLINE, ServerProgram, StdioClient, TestFolder, TinyComponent, ToolbayCommand, message,
    revision,
};

use crate::guest::Guest;

/// The memory limit of each call, in KiB.
const MEMORY: u64 = 24 << 10;

/// Maximum growth of the server during a call beyond the call's memory, in KiB.
const PEAK: u64 = 32 << 10;

/// Maximum growth of the server after any number of guests, compared with before the first, in KiB.
/// The pool retains up to 2 MiB of touched memory in each of 32 slots, and the allocator retains
/// some memory for each thread.
const GROWTH: u64 = (32 * 2 + 24) << 10;

/// Maximum number of additional descriptors after any number of guests: one for a thread of the
/// runtime that comes and goes, one for the log, and two for the directory of temporary folders,
/// which the first guest opens.
const DESCRIPTORS: u64 = 4;

/// Maximum response time of the plugin while a guest runs. On an idle server, it takes a
/// millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum 99th percentile of pings while guests run.
const PING: Duration = Duration::from_millis(10);

/// Number of calls that make the server reach its maximum size without guests.
const WARM_UP: usize = 20;

/// All stored data is next to the plugin folder, so that it can be inspected.
const CONFIG: &str = r#"
log = "warn"
[circuit_breaker]
crashes = 0
[server]
# Each guest brings a grant with a folder that no grant names at the start.
confine_folders = ["data"]
scratch = "scratch"
[state]
folder = "kept"
"#;

/// Small limits, so that many guests run in a short time.
const GRANT: &str = r#"
[limits]
memory = "24MiB"
fuel = 300_000_000
timeout = "700ms"
stdio = "1MiB"
http_requests = 20
http_bytes = "4MiB"
tcp_connections = 20
tcp_bytes = "4MiB"

[permissions]
http = ["http://127.0.0.1:PORT"]
tcp = ["127.0.0.1:PORT", "localhost:PORT"]
private_networks = ["127.0.0.1"]

[permissions.scratch]
size = "2MiB"
entries = 20

[permissions.state]
size = "1MiB"
keys = 50

[[permissions.mounts]]
host = "../data"
guest = "/data"
"#;

/// Maximum size in bytes and number of entries of the mounted folder of a guest with write access.
const QUOTA: (u64, usize) = (4 << 20, 40);

/// Maximum size of the stored state, in bytes: `permissions.state.size`.
const KEPT: u64 = 1 << 20;

/// A server, and its initial resources.
pub(crate) struct Stage {
    client: StdioClient,
    folder: TestFolder,
    /// The port of the server that guests may call.
    port: u16,
    /// Its initial memory, in KiB.
    resident: u64,
    descriptors: u64,
    /// Latencies of pings while guests ran.
    pings: LatencyHistogram,
}

impl Stage {
    /// Starts a server.
    pub(crate) fn set(server: &Path, port: u16) -> Result<Self> {
        let folder = TestFolder::create(&ServerProgram::new(server), "toolbay-hostcalls-")?;
        fs::write(
            folder.plugin_path("bystander.wasm"),
            TinyComponent::new(&["bystander"]).with_text("here").build(),
        )?;
        fs::write(folder.sibling_path("secret"), "hush")?;
        fs::write(folder.sibling_path("toolbay.toml"), CONFIG)?;
        // The directory must exist when the server confines itself, and must stay the same for
        // every guest.
        fs::create_dir(folder.sibling_path("scratch"))?;
        fs::create_dir(folder.sibling_path("data"))?;
        // By default, the allocator retains freed memory. This limits how much.
        let command = ToolbayCommand::new(&folder)
            .args(["serve"])
            .env("MALLOC_TRIM_THRESHOLD_", "65536");
        let mut client = StdioClient::run(command)?;
        client.initialize(revision::NEWEST_SESSION_REVISION)?;
        let mut stage = Self {
            client,
            folder,
            port,
            resident: 0,
            descriptors: 0,
            pings: LatencyHistogram::new()?,
        };
        stage.until("the bystander is listed", |stage| {
            Ok(stage.client.tool_names()? == ["bystander"])
        })?;
        for _ in 0..WARM_UP {
            stage.bystander_answers()?;
        }
        stage.resident = stage.resident()?;
        stage.descriptors = vitals(stage.pid())?.descriptors;
        Ok(stage)
    }

    /// Runs a guest, and checks the server during and after the call. Returns how the call ended.
    ///
    /// # Errors
    ///
    /// The server violated a property.
    pub(crate) fn run(&mut self, guest: &Guest, writes: bool) -> Result<String> {
        self.lay_out()?;
        let grant = GRANT.replace("PORT", &self.port.to_string());
        let access = match (writes, QUOTA) {
            (true, (quota, entries)) => {
                format!("access = \"read-write\"\nquota = \"{quota}B\"\nentries = {entries}\n")
            }
            (false, _) => "access = \"read\"\n".to_owned(),
        };
        fs::write(
            self.folder.plugin_path("guest.toml"),
            format!("{grant}{access}"),
        )?;
        // The file is renamed into place, as installers do, so that the server never reads a part
        // of it.
        let staged = self.folder.sibling_path("staged");
        fs::write(&staged, &guest.component)?;
        fs::rename(&staged, self.folder.plugin_path("guest.wasm"))?;
        self.until("the guest is listed", |stage| {
            Ok(stage.client.tool_names()?.contains(&"a".to_owned()))
        })?;
        let before = self.resident()?;
        reset_peak_memory(self.pid())?;
        let call = self.client.start_call("a", &json!({}))?;
        let asked = Instant::now();
        self.bystander_answers()?;
        let took = asked.elapsed();
        ensure!(
            took < PATIENCE,
            "another plugin took {took:?} to answer while the guest ran"
        );
        let pings = &mut self.pings;
        let answer = self
            .client
            .finish_call_with_pings(call, |took| pings.add(took))?
            .message;
        let grown = self.peak()?.saturating_sub(before);
        let most = MEMORY + PEAK;
        ensure!(
            grown <= most,
            "the server grew by {grown} KiB during the call, expected at most {most}"
        );
        let result = answer.context("the call was rejected")?;
        let kind = message::error_kind(&result).unwrap_or("none").to_owned();
        ensure!(
            kind != "internal",
            "the call ended with an error in the server: {result}"
        );
        let text = message::result_text(&result);
        ensure!(!text.contains("hush"), "a file outside the mount was read");
        ensure!(
            fs::read(self.folder.sibling_path("secret"))? == b"hush",
            "a file outside the mount was written"
        );
        let (bytes, entries) = held(&self.folder.sibling_path("data"))?;
        ensure!(
            bytes <= QUOTA.0 && entries <= QUOTA.1,
            "the mounted folder has {bytes} bytes in {entries} entries, expected at most {QUOTA:?}"
        );
        self.until("nothing is left in temporary folders", |stage| {
            Ok(files(&stage.folder.sibling_path("scratch"))? == 0)
        })?;
        fs::remove_file(self.folder.plugin_path("guest.wasm"))?;
        fs::remove_file(self.folder.plugin_path("guest.toml"))?;
        self.until("the guest is gone", |stage| {
            Ok(stage.client.tool_names()? == ["bystander"])
        })?;
        self.is_as_before()?;
        Ok(if message::is_error(&result) {
            kind
        } else {
            "ok".to_owned()
        })
    }

    /// Resets the contents of the mounted folder for the next guest.
    fn lay_out(&self) -> Result<()> {
        let data = self.folder.sibling_path("data");
        empty(&data)?;
        fs::create_dir(data.join("d"))?;
        fs::write(data.join("f"), vec![b'f'; 1 << 20])?;
        fs::write(data.join("d/f"), "content")?;
        symlink("d/f", data.join("l"))?;
        symlink("..", data.join("out"))?;
        let made = Command::new("mkfifo")
            .arg(data.join("fifo"))
            .status()
            .context("failed to start mkfifo")?;
        ensure!(made.success(), "mkfifo failed");
        Ok(())
    }

    /// Waits until the server uses no more resources than before the first guest. Calls let the
    /// allocator and the pool release memory.
    fn is_as_before(&mut self) -> Result<()> {
        let resident = self.resident + GROWTH;
        let descriptors = self.descriptors;
        self.until("the server is as it was before", |stage| {
            stage.bystander_answers()?;
            Ok(stage.resident()? <= resident
                && vitals(stage.pid())?.descriptors <= descriptors + DESCRIPTORS)
        })
        .with_context(|| match vitals(self.pid()) {
            Ok(vitals) => format!(
                "{vitals:?}; before: {} KiB, {descriptors} descriptors",
                self.resident
            ),
            Err(error) => error.to_string(),
        })?;
        let log = self.client.log().text();
        ensure!(!log.contains("panicked"), "the server panicked:\n{log}");
        Ok(())
    }

    fn bystander_answers(&mut self) -> Result<()> {
        let result = self
            .client
            .call("bystander", &json!({}))?
            .message
            .context("another plugin does not answer")?;
        ensure!(
            message::result_text(&result) == "here",
            "another plugin answered {result}"
        );
        Ok(())
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        while !done(self)? {
            if began.elapsed() > DEADLINE {
                bail!(
                    "it did not come to this: {what}; the log ends:\n{}",
                    self.client.log().tail(20)
                );
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn pid(&self) -> u32 {
        self.client.process().pid()
    }

    /// Returns the server's memory in KiB, without file pages.
    fn resident(&self) -> Result<u64> {
        let vitals = vitals(self.pid())?;
        Ok(vitals.resident.saturating_sub(vitals.files))
    }

    /// Returns the peak memory since the last reset, in KiB.
    fn peak(&self) -> Result<u64> {
        let vitals = vitals(self.pid())?;
        Ok(vitals.peak.saturating_sub(vitals.files))
    }

    /// Stops the server. It must exit successfully and must have responded to pings in time.
    pub(crate) fn end(mut self) -> Result<LatencyHistogram> {
        self.client.stop_within(DEADLINE)?;
        let kept = ToolbayCommand::new(&self.folder)
            .args(["state", "list", "--json"])
            .try_run_with("")?;
        ensure!(kept.code == 0, "the state cannot be read: {kept}");
        let kept: Value =
            serde_json::from_str(&kept.raw_stdout).context("the list of the state is no JSON")?;
        for owner in kept
            .get("state")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            ensure!(
                owner
                    .get("bytes")
                    .and_then(Value::as_u64)
                    .is_some_and(|size| size <= KEPT),
                "more is kept than the grant allows: {owner}"
            );
        }
        let most = self.pings.percentile(99.0);
        // With fewer samples, the 99th percentile is meaningless.
        if self.pings.len() >= 1000 {
            ensure!(
                most <= PING,
                "one ping in a hundred took {most:?} or longer, expected at most {PING:?}"
            );
        }
        Ok(self.pings)
    }
}

/// Removes all entries of a directory, but not the directory.
fn empty(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        }?;
    }
    Ok(())
}

/// Returns the number of bytes and of entries below a directory, without following links.
fn held(folder: &Path) -> Result<(u64, usize)> {
    let mut all = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        all.1 += 1;
        if found.is_dir() {
            let (bytes, entries) = held(&entry.path())?;
            all = (all.0 + bytes, all.1 + entries);
        } else if found.is_file() {
            all.0 += found.len();
        }
    }
    Ok(all)
}

/// Returns the number of files below a directory.
fn files(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() {
            files(&entry.path())?
        } else {
            1
        };
    }
    Ok(count)
}
