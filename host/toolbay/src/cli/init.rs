//! `toolbay init`: creates a folder to serve, with a configuration file and sample plugins. Never
//! overwrites a file.

mod samples;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, ErrorKind, Read as _, Write as _, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use tempfile::Builder;

use self::samples::{SampleChoice, SampleSet};
use super::confirm;
use super::output::{note, print};

/// Template of the configuration file, with every key that people change.
const CONFIG_TEMPLATE: &str = include_str!("init/toolbay.toml");

/// Name of the configuration file.
const CONFIG_FILE_NAME: &str = "toolbay.toml";

/// Name of the plugin folder in the template.
const PLUGIN_FOLDER: &str = "plugins";

/// Maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 1_000;

/// The files that were written and those that existed before, relative to the new folder.
#[derive(Debug, Default)]
struct InitReport {
    written: Vec<PathBuf>,
    existing: Vec<PathBuf>,
    /// The names of the proposed grants in the plugin folder.
    proposals: Vec<PathBuf>,
}

/// Creates a folder to serve at `path`. `selection` names the samples to copy. Without it, the
/// command asks if there is a terminal, and copies all samples if not. `from` is the folder of the
/// samples; the default is that of the package.
pub(super) fn run(
    path: &Path,
    selection: Option<&str>,
    from: Option<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let samples = SampleSet::find(from)?;
    let choice = match selection {
        Some(text) => SampleChoice::parse(text, &samples)?,
        None if !samples.is_empty() && confirm::is_possible() => ask_for_samples(&samples)?,
        None => SampleChoice::all(&samples),
    };
    let mut report = InitReport::default();
    let plugins = path.join(PLUGIN_FOLDER);
    fs::create_dir_all(&plugins)
        .with_context(|| format!("failed to create {}", plugins.display()))?;
    report.write_new(
        path,
        Path::new(CONFIG_FILE_NAME),
        CONFIG_TEMPLATE.as_bytes(),
    )?;
    for sample in choice.files() {
        let content =
            fs::read(sample).with_context(|| format!("failed to read {}", sample.display()))?;
        let name = sample.file_name().unwrap_or_default();
        report.write_new(path, &Path::new(PLUGIN_FOLDER).join(name), &content)?;
        // Copying a plugin grants nothing, so its grant gets a name that has no effect.
        if let Some(grant) = samples::proposed_grant(sample) {
            let content =
                fs::read(&grant).with_context(|| format!("failed to read {}", grant.display()))?;
            let name = Path::new(name).with_extension(samples::PROPOSAL_EXTENSION);
            report.write_new(path, &Path::new(PLUGIN_FOLDER).join(&name), &content)?;
            report.proposals.push(name);
        }
    }
    let explains_missing_samples = selection.is_none() && samples.is_empty();
    print(&report.to_text(path, explains_missing_samples));
    Ok(ExitCode::SUCCESS)
}

/// Asks at the terminal which samples to copy, until the answer is valid.
fn ask_for_samples(samples: &SampleSet) -> anyhow::Result<SampleChoice> {
    let names = samples.names().join(", ");
    loop {
        note(&format!(
            "These sample plugins can be copied: {names}\n\nWhich? Names with commas between them, all, or none [all]:"
        ));
        let mut answer = String::new();
        let read = stdin()
            .lock()
            .take(MAX_ANSWER_BYTES)
            .read_line(&mut answer)
            .context("failed to read the answer")?;
        if read == 0 {
            bail!("there was no answer, so nothing was written");
        }
        let answer = answer.trim();
        match SampleChoice::parse(
            if answer.is_empty() {
                samples::ALL_SAMPLES
            } else {
                answer
            },
            samples,
        ) {
            Ok(choice) => return Ok(choice),
            Err(error) => note(&format!("{error:#}\n")),
        }
    }
}

impl InitReport {
    /// Writes a file atomically, unless its name is already in use.
    fn write_new(&mut self, root: &Path, name: &Path, content: &[u8]) -> anyhow::Result<()> {
        let path = root.join(name);
        let parent = path.parent().unwrap_or(root);
        let failed = || format!("failed to write {}", path.display());
        // Servers do not load files with this prefix as plugins. The permissions are those of an
        // ordinary new file.
        let mut file = Builder::new()
            .prefix(".toolbay-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(parent)
            .with_context(failed)?;
        file.write_all(content).with_context(failed)?;
        match file.persist_noclobber(&path) {
            Ok(_) => self.written.push(name.to_owned()),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                self.existing.push(name.to_owned());
            }
            Err(error) => return Err(error.error).with_context(failed),
        }
        Ok(())
    }

    /// Formats a summary and the next steps.
    fn to_text(&self, root: &Path, explains_missing_samples: bool) -> String {
        let mut out = String::new();
        let mut list = |title: String, files: &[PathBuf]| {
            if !files.is_empty() {
                let _ = writeln!(out, "{title}\n");
                for file in files {
                    let _ = writeln!(out, "    {}", file.display());
                }
                let _ = writeln!(out);
            }
        };
        list(format!("Wrote to {}:", root.display()), &self.written);
        list(
            "Already there, and left as it is:".to_owned(),
            &self.existing,
        );
        for proposal in &self.proposals {
            let grant = proposal.with_extension("");
            let _ = writeln!(
                out,
                "{} needs permissions and has none. To grant them, review {PLUGIN_FOLDER}/{}, and rename it to {}.\n",
                proposal.with_extension("").with_extension("wasm").display(),
                proposal.display(),
                grant.display()
            );
        }
        if explains_missing_samples {
            let _ = writeln!(
                out,
                "There are no sample plugins next to this program. In a checkout of Toolbay, `cargo xtask build` makes \
                 them,\nand `toolbay init --from target/plugins` copies them.\n"
            );
        }
        let _ = writeln!(out, "Next:\n");
        if root != Path::new(".") {
            let _ = writeln!(out, "    cd {}", root.display());
        }
        let next = [
            ("toolbay list", "the plugins and their tools"),
            (
                "toolbay call calculate_sum '{\"a\": 2, \"b\": 3}'",
                "calls one",
            ),
            (
                "toolbay install CLIENT",
                "connects a client; --help lists them",
            ),
        ];
        let has_calculator = self
            .written
            .iter()
            .chain(&self.existing)
            .any(|file| file.ends_with("calculator.wasm"));
        for (command, explanation) in next {
            if has_calculator || !command.contains("calculate_sum") {
                let _ = writeln!(out, "    {command:<50}# {explanation}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use toolbay_model::{Limits, LimitsPatch};

    use super::*;
    use crate::config::{Config, Flags};

    /// Returns the file with the `#` removed from each line that has a key, if `is_selected`
    /// returns true for the line.
    fn uncommented(is_selected: impl Fn(&str) -> bool) -> String {
        let is_key = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
        let lines = CONFIG_TEMPLATE
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if is_key(rest) && is_selected(line) => rest,
                _ => line,
            });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn read(text: &str) -> Config {
        // The folder must exist.
        let flags = Flags {
            plugins: Some(env!("CARGO_MANIFEST_DIR").into()),
            ..Flags::default()
        };
        Config::from_text(text, &[], &flags).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn the_template_has_only_default_values() {
        let default = read("");
        assert_eq!(read(CONFIG_TEMPLATE), default);
        let is_default = |line: &str| !line.contains("# an example");
        let mut spelled_out = read(&uncommented(is_default));
        assert_eq!(
            Limits::DEFAULT.with(&spelled_out.limits, &Limits::CEILING),
            (Limits::DEFAULT, vec![])
        );
        spelled_out.limits = LimitsPatch::default();
        assert_eq!(spelled_out, default);
    }

    #[test]
    fn every_line_can_be_uncommented() {
        let all = uncommented(|_| true);
        assert!(
            !all.lines()
                .any(|line| line.contains("# an example") && line.starts_with('#')),
            "{all}"
        );
        let config = read(&all);
        assert!(
            config.http.listen.is_some()
                && config.caller_rate_limit.is_some()
                && config.rate_limit.is_some()
        );
    }

    #[test]
    fn the_template_has_every_table_of_the_configuration_chapter() {
        let chapter = include_str!("../../../../docs/src/configuration.md");
        let (_, rest) = chapter.split_once("```toml\n").unwrap();
        let chapter: toml::Table = rest.split_once("```").unwrap().0.parse().unwrap();
        let ours: toml::Table = uncommented(|_| true).parse().unwrap();
        assert!(chapter.len() > 15);
        for key in chapter.keys() {
            assert!(
                ours.contains_key(key),
                "{key} is not in the file that `toolbay init` writes"
            );
        }
    }

    #[test]
    fn existing_files_links_and_folders_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::os::unix::fs::symlink("elsewhere", root.join("link")).unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        fs::write(root.join("file"), "mine").unwrap();
        let mut report = InitReport::default();
        for name in ["link", "folder", "file", "new"] {
            report.write_new(root, Path::new(name), b"ours").unwrap();
        }
        assert_eq!(report.written, [Path::new("new")]);
        assert_eq!(
            report.existing,
            ["link", "folder", "file"].map(PathBuf::from)
        );
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "mine");
        assert!(!root.join("elsewhere").exists());
        assert_eq!(fs::read_dir(root).unwrap().count(), 4);
    }
}
