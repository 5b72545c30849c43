//! The initial content of the folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::{ServerProgram, TestFolder};

use crate::editions::Editions;
use crate::files::Files;
use crate::slot::Slot;
use crate::source::{Source, grant};

/// Sample plugins that do not change.
const STEADY: [&str; 4] = ["calculator", "chart", "qr", "time"];

/// The sample plugin that is removed and restored.
const SAMPLE: &str = "text";

/// The result of its tool, regardless of which of its files is present.
const SLUG: &str = "hello-toolbay";

/// The guest whose editions replace one another.
const RESTLESS: &str = "restless";

/// Plugins of that guest that are replaced.
const CHANGING: [&str; 3] = ["a", "b", "c"];

/// Small limits, so that thousands of calls reach them; a small cache, so that eviction is needed;
/// and a short disabled period.
const CONFIG: &str = r#"
[compile]
cache_size = "48MiB"

[circuit_breaker]
crashes = 5
disable_duration = "300ms"
"#;

/// Guests that misbehave: the plugin, the guest, and the plugin's grant.
const MISBEHAVING: [(&str, &str, &str); 4] = [
    (
        "bad",
        "hostile",
        "[limits]\nmemory = \"16MiB\"\n\n[tools.sleep_hour.limits]\ntimeout = \"20ms\"\n",
    ),
    ("crash", "hostile", ""),
    ("flood", RESTLESS, "[limits]\nfuel = 20_000_000\n"),
    (
        "long",
        RESTLESS,
        "[limits]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"\n",
    ),
];

/// A folder for a server, with its plugins.
pub(crate) struct Stage {
    pub(crate) folder: TestFolder,
    editions: Editions,
    sample: Vec<u8>,
    pub(crate) files: Files,
    pub(crate) slots: Vec<Slot>,
}

impl Stage {
    /// Creates the folder.
    pub(crate) fn set(built: &BuildOutput) -> Result<Self> {
        let root = TestFolder::create(&ServerProgram::new(&built.server), "toolbay-soak-")?;
        let folder = root.plugin_folder();
        let beside = root.sibling_path("beside");
        fs::create_dir(&beside)
            .with_context(|| format!("failed to create {}", beside.display()))?;
        write(&root.sibling_path("toolbay.toml"), CONFIG)?;
        for id in STEADY {
            write(&wasm(&folder, id), read(&wasm(&built.plugins, id))?)?;
        }
        for (id, guest, limits) in MISBEHAVING {
            write(&wasm(&folder, id), read(&wasm(&built.guests, guest))?)?;
            write(
                &folder.join(format!("{id}.toml")),
                format!("prefix = \"{id}\"\n\n{limits}"),
            )?;
        }
        let editions = Editions::read(&wasm(&built.guests, RESTLESS))?;
        let sample = read(&wasm(&built.plugins, SAMPLE))?;
        let mut slots = vec![Slot::new(
            SAMPLE,
            "slugify",
            json!({"text": "Hello, Toolbay!"}),
            SLUG,
        )];
        write(&wasm(&folder, SAMPLE), &sample)?;
        for id in CHANGING {
            write(&wasm(&folder, id), editions.file(0))?;
            slots.push(Slot::new(
                id,
                "edition",
                json!({}),
                &Source::Editions(&editions).says(0, 0),
            ));
        }
        for slot in &slots {
            write(&folder.join(format!("{}.toml", slot.id)), grant(slot.id, 0))?;
        }
        Ok(Self {
            files: Files::new(&folder, &beside),
            folder: root,
            editions,
            sample,
            slots,
        })
    }

    /// Returns the content of a slot's file.
    pub(crate) fn source(&self, slot: &Slot) -> Source<'_> {
        match slot.id {
            SAMPLE => Source::Always {
                file: &self.sample,
                says: SLUG,
            },
            _ => Source::Editions(&self.editions),
        }
    }

    /// Returns tools whose presence shows that all plugins are loaded.
    pub(crate) fn tools(&self) -> Vec<String> {
        let steady = ["evaluate", "line_chart", "qr_svg", "time_difference"].map(str::to_owned);
        let misbehaving =
            ["bad.echo", "crash.panic", "flood.spin", "long.sleep"].map(str::to_owned);
        let slots = self.slots.iter().map(|slot| slot.tool.clone());
        steady.into_iter().chain(misbehaving).chain(slots).collect()
    }

    /// Returns the number of editions generated so far.
    pub(crate) fn editions(&self) -> u64 {
        self.editions.count()
    }
}

fn wasm(folder: &Path, id: &str) -> PathBuf {
    folder.join(id).with_extension("wasm")
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}

fn write(file: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    fs::write(file, bytes).with_context(|| format!("failed to write {}", file.display()))
}
