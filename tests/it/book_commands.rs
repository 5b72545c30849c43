//! Runs the commands of the book and the README files, as `tests/data/book/commands.toml` describes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use toolbay_testkit::markdown::{CodeBlock, code_blocks};
use toolbay_testkit::workspace;

use crate::getting_started::has_line;
use crate::pages::{has_test, pages};
use crate::support::{Folder, ToolbayCommand, example, sample};

/// The descriptions of all blocks, relative to the root.
const DESCRIPTIONS: &str = "tests/data/book/commands.toml";

/// The languages of blocks with commands.
const COMMAND_LANGUAGES: [&str; 2] = ["sh", "console"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptionFile {
    block: Vec<BlockDescription>,
}

/// How a block is tested. The file explains the members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockDescription {
    page: String,
    begins: String,
    setup: Option<String>,
    shown_by: Option<String>,
    #[serde(default)]
    replace: BTreeMap<String, String>,
    #[serde(default)]
    prints: Vec<String>,
    #[serde(default)]
    exit: i32,
    by: Option<String>,
    not_run: Option<String>,
}

impl BlockDescription {
    /// Returns whether this test does not run the block. Panics if no test has the name in `by`.
    fn is_run_elsewhere(&self) -> bool {
        if let Some(test) = &self.by {
            assert!(
                test.starts_with("cargo xtask ") || has_test(test),
                "{DESCRIPTIONS}: {}: there is no test {test}",
                self.page
            );
        }
        self.by.is_some() || self.not_run.is_some()
    }
}

/// The folder in which the commands of a page run.
struct PageFolder {
    path: PathBuf,
    programs: PathBuf,
    samples: PathBuf,
    cache: PathBuf,
}

impl PageFolder {
    /// Runs a script that ends with its first failure. Returns its exit code and its output.
    fn run(&self, script: &str) -> (i32, String) {
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(&self.path)
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("HOME", self.path.join("home"))
            .env("XDG_CACHE_HOME", &self.cache)
            .env("SAMPLES", &self.samples)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        (output.status.code().unwrap_or(-1), printed)
    }

    /// Runs a block and compares what it prints.
    fn check(&self, block: &CodeBlock, description: &BlockDescription) -> Result<(), String> {
        if let Some(setup) = &description.setup {
            let (code, printed) = self.run(setup);
            if code != 0 {
                return Err(format!("the setup ended with {code}:\n{printed}"));
            }
        }
        let mut prints = description.prints.clone();
        let mut script = block.text.clone();
        if let Some(commands) = &description.shown_by {
            script.clone_from(commands);
            prints.extend(block.text.lines().map(str::to_owned));
        } else if block.language() == "console" {
            let commands = block
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("$ "));
            script = commands.collect::<Vec<_>>().join("\n");
            let shown = block.text.lines().filter(|line| !line.starts_with("$ "));
            prints.extend(shown.filter(|line| !line.is_empty()).map(str::to_owned));
        }
        for (from, to) in &description.replace {
            if !script.contains(from) && !prints.iter().any(|line| line.contains(from)) {
                return Err(format!("there is no {from:?} to replace"));
            }
            script = script.replace(from, to);
            let to = to.replace("$PWD", self.path.to_str().unwrap());
            for line in &mut prints {
                *line = line.replace(from, &to);
            }
        }
        let (code, printed) = self.run(&script);
        if code != description.exit {
            return Err(format!("{script}\nended with {code}:\n{printed}"));
        }
        match prints.iter().find(|line| !has_line(&printed, line)) {
            Some(line) => Err(format!("{script}\ndid not print {line:?}:\n{printed}")),
            None => Ok(()),
        }
    }
}

/// Returns the compile cache of the tests, which contains the sample plugins.
fn shared_cache(program: &Command) -> PathBuf {
    let home = program.get_envs().find(|(name, _)| *name == "HOME");
    Path::new(home.unwrap().1.unwrap()).join(".cache")
}

/// Creates the folder for a page below `root`.
fn page_folder(root: &Path, page: &str, cache: &Path) -> PageFolder {
    let path = root.join(page.replace('/', "-"));
    fs::create_dir(&path).unwrap();
    PageFolder {
        path,
        programs: root.join("programs"),
        samples: root.join("samples"),
        cache: cache.to_owned(),
    }
}

/// Creates the folders of the program and of the sample plugins.
fn prepare(root: &Path, toolbay: &Path) {
    fs::create_dir(root.join("programs")).unwrap();
    symlink(toolbay, root.join("programs/toolbay")).unwrap();
    let samples = root.join("samples");
    fs::create_dir(&samples).unwrap();
    for name in ["calculator", "text"] {
        fs::write(samples.join(format!("{name}.wasm")), sample(name)).unwrap();
    }
    fs::write(samples.join("fetch.wasm"), example("fetch")).unwrap();
}

#[test]
fn every_command_of_the_book_is_run_or_has_a_reason() {
    let text = fs::read_to_string(workspace::root().join(DESCRIPTIONS)).unwrap();
    let file: DescriptionFile = toml::from_str(&text).unwrap();
    let mut unused: Vec<&BlockDescription> = file.block.iter().collect();
    let folder = Folder::new();
    let root = folder.sibling_path("book");
    fs::create_dir(&root).unwrap();
    let (program, _folder) = ToolbayCommand::new(&folder).into_parts();
    prepare(&root, Path::new(program.get_program()));
    let cache = shared_cache(&program);
    let mut wrong = Vec::new();
    let mut runs = 0;
    for page in pages() {
        let text = fs::read_to_string(workspace::root().join(&page)).unwrap();
        let place = page_folder(&root, &page, &cache);
        for block in code_blocks(&text) {
            let found = unused
                .iter()
                .position(|entry| entry.page == page && block.text.starts_with(&entry.begins));
            let result = match found.map(|index| unused.remove(index)) {
                None if COMMAND_LANGUAGES.contains(&block.language()) => {
                    Err(format!("{DESCRIPTIONS} has no entry for this block"))
                }
                None => continue,
                Some(description) if description.is_run_elsewhere() => Ok(()),
                Some(description) => {
                    runs += 1;
                    place.check(&block, description)
                }
            };
            if let Err(why) = result {
                wrong.push(format!("{page}:{}: {why}", block.line));
            }
        }
    }
    wrong.extend(unused.iter().map(|entry| {
        format!(
            "{DESCRIPTIONS}: {} has no block that begins with {:?}",
            entry.page, entry.begins
        )
    }));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(runs > 20, "only {runs} blocks were run");
}
