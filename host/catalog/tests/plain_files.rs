//! Prompts and resources that are plain files, from the folder to the published snapshot.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolbay_catalog::{
    ApprovalSetting, Approver, Catalog, DescribeLimits, FolderReloader, FolderWatcher, LoadPolicy,
    MatchBudget, PluginFileStatus, PluginLoader, PublishListener, Snapshot, channel,
};
use toolbay_model::{Limits, ResourceContent};
use toolbay_sandbox::{CompileLimits, NetworkOptions, Sandbox, SandboxSettings};

/// How long something may take that happens. Nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_mins(2);

/// A component with one function, `seven`.
const SEVEN: &str = r#"(component
    (core module $m (func (export "f") (result i32) i32.const 7))
    (core instance $i (instantiate $m))
    (func (export "seven") (result u32) (canon lift (core func $i "f"))))"#;

#[derive(Debug)]
struct Told(UnboundedSender<Vec<String>>);

impl PublishListener for Told {
    fn resources_updated(&self, uris: &[String]) {
        // The test may have ended.
        drop(self.0.send(uris.to_vec()));
    }
}

/// A plugin folder with everything that follows it.
struct Folder {
    dir: TempDir,
    catalog: Catalog,
    updates: UnboundedReceiver<Vec<String>>,
    _stop: DropGuard,
}

impl Folder {
    /// Begins with these files.
    fn new(files: &[(&str, &str)], watched: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("plugins");
        fs::create_dir(&root).unwrap();
        for (path, text) in files {
            write(&root, path, text.as_bytes());
        }
        let compile = CompileLimits {
            memory: ByteSize::gib(2),
            cpu: PATIENCE,
            timeout: PATIENCE,
        };
        let settings = SandboxSettings {
            max_calls: 0,
            max_waiting_calls: 0,
            stack_size: ByteSize::kib(512),
            max_limits: Limits::CEILING,
            allow_async: true,
            compiler: None,
            compile_limits: compile,
            cache: None,
            http_client: NetworkOptions::default(),
            state: None,
            scratch: dir.path().join("scratch"),
        };
        let rules = LoadPolicy {
            limits: Limits::DEFAULT,
            ceiling: Limits::CEILING,
            describe_limits: Limits::DEFAULT,
            rate_limit: None,
            require_approval: ApprovalSetting::Never,
            approve_by: Approver::Client,
            max_component_size: ByteSize::mib(1),
            guarded_paths: Vec::new(),
            description_limits: DescribeLimits {
                tools: 10,
                prompts: 10,
                resources: 10,
                schemas: ByteSize::kib(10),
                size: ByteSize::kib(10),
                skills: ByteSize::kib(100),
            },
            reachable_files: None,
            writable_paths: None,
        };
        let (publisher, catalog) = channel();
        let (sender, updates) = unbounded_channel();
        let changes = watched.then(|| FolderWatcher::new(&root).unwrap());
        let loader = PluginLoader::new(Sandbox::new(settings).unwrap(), rules, root);
        let stop = CancellationToken::new();
        let reloader = FolderReloader::new(loader, publisher.with_listener(Arc::new(Told(sender))));
        tokio::spawn(reloader.run(changes, stop.clone()));
        Self {
            dir,
            catalog,
            updates,
            _stop: stop.drop_guard(),
        }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.dir.path().join("plugins"), path, text.as_ref());
    }

    fn remove(&self, path: &str) {
        let path = self.dir.path().join("plugins").join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// The first complete snapshot for which this holds.
    async fn when(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let found = timeout(
            PATIENCE,
            self.catalog
                .wait_for(|snapshot| snapshot.complete && holds(snapshot)),
        )
        .await;
        found.unwrap_or_else(|_| panic!("{what}: {:#?}", self.catalog.snapshot()))
    }

    /// Waits until the resource `uri` was reported as changed.
    async fn updated(&mut self, uri: &str) {
        let told = async {
            while !self
                .updates
                .recv()
                .await
                .unwrap()
                .iter()
                .any(|told| told == uri)
            {}
        };
        timeout(PATIENCE, told)
            .await
            .unwrap_or_else(|_| panic!("{uri} changed, and nobody was told"));
    }
}

fn write(root: &Path, path: &str, text: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn prompts(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.prompts.keys().map(String::as_str).collect()
}

fn resources(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.resources.keys().map(String::as_str).collect()
}

fn read(snapshot: &Snapshot, uri: &str) -> String {
    let file = snapshot
        .find_resource(uri, &mut MatchBudget::new(MatchBudget::PER_URI))
        .unwrap()
        .unwrap()
        .file
        .as_ref()
        .unwrap();
    match file
        .read(ByteSize::kib(1))
        .unwrap()
        .unwrap()
        .resource
        .content
    {
        ResourceContent::Text(text) => text,
        ResourceContent::Blob(bytes) => panic!("{bytes:?} are bytes"),
    }
}

#[tokio::test]
async fn plain_files_are_a_plugin_that_follows_its_folder() {
    let files = [
        ("docs.prompts/review.md", "Review."),
        ("docs.resources/guide/setup.md", "one"),
    ];
    let mut folder = Folder::new(&files, true);
    let first = folder
        .when("both are offered", |snapshot| !snapshot.prompts.is_empty())
        .await;
    let uri = "toolbay://docs/guide/setup.md";
    assert_eq!(
        (prompts(&first), resources(&first)),
        (vec!["review"], vec![uri])
    );
    assert_eq!(read(&first, uri), "one");
    let report = &first.plugins["docs"];
    assert_eq!(
        (
            report.status,
            report.digest.as_deref(),
            report.problems.len()
        ),
        (PluginFileStatus::Ready, None, 0)
    );
    assert_eq!(
        (&report.prompts[..], &report.resources[..]),
        (&["review".to_owned()][..], &[uri.to_owned()][..])
    );
    folder.updated(uri).await;

    folder.write("docs.resources/guide/setup.md", "two");
    folder.updated(uri).await;
    let second = folder.catalog.snapshot();
    assert_eq!(read(&second, uri), "two");
    assert_eq!(
        second.list_generation, first.list_generation,
        "the list is the same"
    );
    assert_ne!(second.generation, first.generation);

    // A folder that is new is watched as well.
    folder.write("docs.resources/new/deep/a.txt", "a");
    let third = folder
        .when("a new folder is found", |snapshot| {
            snapshot.resources.len() == 2
        })
        .await;
    assert!(third.list_generation > second.list_generation);
    assert_ne!(
        third.digest_of_resources(|_| true),
        second.digest_of_resources(|_| true)
    );
    assert_eq!(
        third.digest_of_prompts(|_| true),
        second.digest_of_prompts(|_| true)
    );
    folder.write("docs.resources/new/deep/a.txt", "b");
    folder.updated("toolbay://docs/new/deep/a.txt").await;

    folder.remove("docs.resources");
    folder
        .when("a folder is deleted", |snapshot| {
            snapshot.resources.is_empty()
        })
        .await;
    folder.updated(uri).await;
    folder.remove("docs.prompts");
    folder
        .when("all is deleted", |snapshot| snapshot.plugins.is_empty())
        .await;
}

#[tokio::test]
async fn changes_are_found_without_a_watcher() {
    let mut folder = Folder::new(&[("docs.resources/a/b.md", "one")], false);
    folder
        .when("it is offered", |snapshot| !snapshot.resources.is_empty())
        .await;
    folder.write("docs.resources/a/b.md", "other");
    folder.updated("toolbay://docs/a/b.md").await;
}

#[tokio::test]
async fn a_bad_file_is_reported_and_leaves_what_worked() {
    let bad = "---\ntitle: [\n---\nText";
    let folder = Folder::new(
        &[("docs.prompts/a.md", "A"), ("docs.prompts/b.md", bad)],
        true,
    );
    let first = folder
        .when("one is offered", |snapshot| !snapshot.prompts.is_empty())
        .await;
    assert_eq!(prompts(&first), ["a"]);
    let problem = &first.plugins["docs"].problems[0];
    assert!(
        problem.starts_with("docs.prompts/b.md:2: ") && problem.ends_with("; it is not offered"),
        "{problem}"
    );
    folder.write("docs.prompts/b.md", "B");
    folder
        .when("it was corrected", |snapshot| {
            snapshot.plugins["docs"].problems.is_empty()
        })
        .await;
    folder.write("docs.prompts/a.md", bad);
    let stays = "; its previous version stays in service";
    let reported = |snapshot: &Snapshot| {
        snapshot.plugins["docs"]
            .problems
            .iter()
            .any(|problem| problem.ends_with(stays))
    };
    let last = folder.when("it is reported", reported).await;
    assert_eq!(
        (prompts(&last), last.plugins["docs"].status),
        (vec!["a", "b"], PluginFileStatus::Ready)
    );
    assert_eq!(last.prompts["a"].text, first.prompts["a"].text);
}

#[tokio::test]
async fn code_and_plain_files_are_one_plugin() {
    let folder = Folder::new(
        &[
            ("a.prompts/p.md", "one"),
            ("a.toml", "prefix = \"acme\"\n[config]\nx = 1"),
        ],
        true,
    );
    let alone = folder
        .when("the prompt is offered", |snapshot| {
            !snapshot.prompts.is_empty()
        })
        .await;
    assert_eq!((prompts(&alone), alone.tools.len()), (vec!["acme_p"], 0));
    assert_eq!(
        alone.plugins["a"].problems,
        [
            "a.toml: there is no a.wasm, so only prefix, separator, limits, rate_limit and permissions.ui of the grant have an effect"
        ]
    );

    folder.write("a.wasm", wat::parse_str(SEVEN).unwrap());
    let both = folder
        .when("the tool is offered", |snapshot| !snapshot.tools.is_empty())
        .await;
    assert_eq!(
        (
            prompts(&both),
            both.tools.keys().map(String::as_str).collect::<Vec<_>>()
        ),
        (vec!["acme_p"], vec!["acme_seven"])
    );
    assert!(Arc::ptr_eq(
        &both.prompts["acme_p"].plugin,
        &both.tools["acme_seven"].plugin
    ));
    assert!(both.plugins["a"].digest.is_some() && both.plugins["a"].problems.is_empty());

    folder.write("a.wasm", "not a component");
    let stale = folder
        .when("the code is refused", |snapshot| {
            snapshot.plugins["a"].status == PluginFileStatus::Stale
        })
        .await;
    assert_eq!((stale.tools.len(), stale.prompts.len()), (1, 1));
    folder.write("a.prompts/q.md", "three");
    let more = folder
        .when("a prompt came", |snapshot| snapshot.prompts.len() == 2)
        .await;
    assert_eq!(
        more.plugins["a"].status,
        PluginFileStatus::Stale,
        "the code is refused as before"
    );
    assert_eq!(more.tools.len(), 1);

    folder.remove("a.wasm");
    let alone = folder
        .when("the code is gone", |snapshot| snapshot.tools.is_empty())
        .await;
    assert_eq!(
        (prompts(&alone), alone.plugins["a"].status),
        (vec!["acme_p", "acme_q"], PluginFileStatus::Ready)
    );
}

// Without a watcher, each change leads to one load.
#[tokio::test]
async fn no_secret_is_fetched_because_a_text_changed() {
    let outside = tempfile::tempdir().unwrap();
    let runs = outside.path().join("runs");
    let script = format!(
        "echo run >> {}; echo a-secret-of-some-length",
        runs.display()
    );
    let grant = format!("[secrets.token]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]");
    let files = [("a.prompts/p.md", "one"), ("a.toml", &grant)];
    let folder = Folder::new(&files, false);
    let first = folder
        .when("the first prompt is offered", |snapshot| {
            !snapshot.prompts.is_empty()
        })
        .await;
    assert!(!runs.exists(), "there is no code that could use it");
    folder.write("a.wasm", wat::parse_str(SEVEN).unwrap());
    folder
        .when("the tool is offered", |snapshot| !snapshot.tools.is_empty())
        .await;
    let often = || fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(often(), 1);
    folder.write("a.prompts/p.md", "two");
    let text = |snapshot: &Snapshot| snapshot.prompts["p"].text.clone();
    folder
        .when("the text changed", |snapshot| {
            text(snapshot) != text(&first)
        })
        .await;
    assert_eq!(often(), 1);
}

#[tokio::test]
async fn a_resource_is_as_large_as_the_grant_allows() {
    let large = "x".repeat(2000);
    let files = [
        ("a.resources/large", large.as_str()),
        ("a.resources/small", "x"),
        ("a.toml", "[limits]\noutput = \"1KiB\""),
    ];
    let folder = Folder::new(&files, true);
    let first = folder
        .when("the small one is offered", |snapshot| {
            !snapshot.resources.is_empty()
        })
        .await;
    assert_eq!(resources(&first), ["toolbay://a/small"]);
    assert_eq!(
        first.plugins["a"].problems,
        [
            "a.resources/large is not offered: it is larger than 1.0 KiB (to allow more, raise limits.output in a.toml)"
        ]
    );
    folder.write("a.toml", "[limits]\noutput = \"1MiB\"");
    let second = folder
        .when("both are offered", |snapshot| snapshot.resources.len() == 2)
        .await;
    assert!(second.plugins["a"].problems.is_empty());
}
