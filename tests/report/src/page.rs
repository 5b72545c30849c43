//! The benchmark page of the book, and its chart files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::markdown::replace_part;
use toolbay_testkit::process_usage;

/// Path of the page, relative to the repository.
const PAGE: &str = "docs/src/benchmarks.md";

/// Path of the chart directory, relative to the repository.
const CHARTS: &str = "docs/src/bench";

/// The page of the book.
pub struct Page {
    root: PathBuf,
}

impl Page {
    /// Returns the page of the repository at `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Replaces the text between the markers of `part`.
    pub fn write(&self, part: &str, text: &str) -> Result<()> {
        let path = self.root.join(PAGE);
        let page = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        let page = replace_part(&page, part, text)
            .with_context(|| format!("failed to change {}", path.display()))?;
        fs::write(&path, page).with_context(|| format!("failed to write {}", path.display()))
    }

    /// Writes a chart. Returns the Markdown that displays it.
    pub fn chart(&self, name: &str, about: &str, svg: &str) -> Result<String> {
        let path = self.root.join(CHARTS).join(name).with_extension("svg");
        fs::create_dir_all(self.root.join(CHARTS))
            .context("failed to create the folder of the charts")?;
        fs::write(&path, svg).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(format!("![{about}](bench/{name}.svg)\n"))
    }
}

/// The machine on which the measurement runs.
pub struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    memory: String,
    load: f64,
    commit: String,
}

impl Machine {
    /// Reads the properties of the machine and its current load.
    pub fn now(root: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let processor = field(&read("/proc/cpuinfo"), "model name")
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let kib = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let memory = kib.map_or_else(String::new, |kib| {
            format!(", {} GiB", kib.div_ceil(1 << 20))
        });
        let commit = Command::new("git")
            .args(["describe", "--always", "--dirty"])
            .current_dir(root)
            .output();
        let commit = commit
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
            .unwrap_or_default();
        Ok(Self {
            processor,
            cores: std::thread::available_parallelism()
                .context("how many cores are there?")?
                .get(),
            // The rest of the version names the distributor.
            kernel: read("/proc/sys/kernel/osrelease")
                .trim()
                .split('-')
                .next()
                .unwrap_or_default()
                .to_owned(),
            memory,
            load: process_usage::load_average()?,
            commit,
        })
    }

    /// Describes the machine in a sentence.
    pub fn words(&self) -> String {
        let Self {
            processor,
            cores,
            kernel,
            memory,
            load,
            commit,
        } = self;
        let commit = if commit.is_empty() {
            String::new()
        } else {
            format!(" Toolbay is commit `{commit}`.")
        };
        format!("{processor}, {cores} cores{memory}, Linux {kernel}, load {load} before.{commit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_its_markers() {
        let page = fs::read_to_string(toolbay_testkit::workspace::root().join(PAGE)).unwrap();
        for part in [
            "peers",
            "tools",
            "flight",
            "payload",
            "clients",
            "plugins",
            "files",
            "metering",
            "five-tools",
            "loop",
        ] {
            replace_part(&page, part, "new").unwrap();
        }
    }

    #[test]
    fn this_machine_can_be_described() {
        let words = Machine::now(toolbay_testkit::workspace::root())
            .unwrap()
            .words();
        assert!(
            words.contains("cores") && words.contains("Linux"),
            "{words}"
        );
    }
}
