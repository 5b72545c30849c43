//! Checks the examples in the documentation with the code that reads the users' files.

use std::fs;
use std::path::{Path, PathBuf};

use toolbay::{Config, Flags};
use toolbay_bundle::{PluginManifest, PluginsFile};
use toolbay_catalog::Grant;
use toolbay_model::{LimitValue, Limits};
use toolbay_settings::project::ProjectFile;
use toolbay_testkit::markdown::{CodeBlock, code_blocks};

/// The kind of TOML on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toml {
    /// `toolbay.toml`.
    Config,
    /// `<plugin>.toml`.
    Grant,
    /// Optional keys of `plugin.toml`.
    Project,
    /// `toolbay.plugins.toml`.
    Plugins,
    /// A file of another program.
    Foreign,
}

/// The pages that contain TOML. On any page, a block with the label `grant` is a grant, and one with
/// the label `configuration` a configuration.
const TOML: [(&str, Toml); 31] = [
    ("README.md", Toml::Grant),
    ("docs/src/approve.md", Toml::Grant),
    ("docs/src/async.md", Toml::Config),
    ("docs/src/audit.md", Toml::Config),
    ("docs/src/clients.md", Toml::Foreign),
    ("docs/src/configuration.md", Toml::Config),
    ("docs/src/console.md", Toml::Config),
    ("docs/src/containers.md", Toml::Config),
    ("docs/src/getting-started.md", Toml::Grant),
    ("docs/src/grants.md", Toml::Grant),
    ("docs/src/http.md", Toml::Config),
    ("docs/src/identity.md", Toml::Config),
    ("docs/src/large-results.md", Toml::Config),
    ("docs/src/lock.md", Toml::Config),
    ("docs/src/loki.md", Toml::Config),
    ("docs/src/metrics.md", Toml::Config),
    ("docs/src/opentelemetry.md", Toml::Config),
    ("docs/src/plain-functions.md", Toml::Grant),
    ("docs/src/plugin-python.md", Toml::Project),
    ("docs/src/proxies.md", Toml::Config),
    ("docs/src/recipes.md", Toml::Grant),
    ("docs/src/references.md", Toml::Plugins),
    ("docs/src/replay.md", Toml::Config),
    ("docs/src/review-plugin.md", Toml::Grant),
    ("docs/src/service.md", Toml::Config),
    ("docs/src/service-secrets.md", Toml::Config),
    ("docs/src/share-plugins.md", Toml::Project),
    ("docs/src/tasks.md", Toml::Grant),
    ("docs/src/views.md", Toml::Grant),
    ("docs/src/without-code.md", Toml::Grant),
    ("plugin-sdk/README.md", Toml::Foreign),
];

/// The pages whose Rust is compiled as documentation of the `toolbay-plugin` crate
/// (`plugin-sdk/src/test.rs`).
const COMPILED: [&str; 6] = [
    "README.md",
    "plugin-sdk/README.md",
    "docs/src/approve.md",
    "docs/src/plugin-rust.md",
    "docs/src/tasks.md",
    "docs/src/views.md",
];

fn root() -> PathBuf {
    // The nearest parent folder that contains the book.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .find(|folder| folder.join("docs/book.toml").is_file())
        .unwrap()
        .to_owned()
}

/// The pages of the book and the README files, relative to the root.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "plugin-sdk/README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "md")
        {
            pages.push(format!("docs/src/{name}"));
        }
    }
    pages
}

/// Passes each block in a language to `check`, and panics with all of its messages. Returns the
/// number of blocks.
fn check_blocks(
    language: &str,
    mut check: impl FnMut(&str, &CodeBlock) -> Result<(), String>,
) -> usize {
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for block in code_blocks(&text)
            .into_iter()
            .filter(|block| block.language() == language)
        {
            count += 1;
            if let Err(why) = check(&page, &block) {
                wrong.push(format!("{page}:{}: {why}", block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    count
}

fn config(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolbay.toml");
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::write(&file, text).unwrap();
    let flags = Flags {
        config: Some(file),
        ..Flags::default()
    };
    Config::load(&flags, [])
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Checks optional keys of `plugin.toml`.
fn project(text: &str) -> Result<(), String> {
    let required =
        "name = \"a\"\nlanguage = \"rust\"\nbuild = []\noutput = \"a.wasm\"\nwatch = []\n";
    let project =
        ProjectFile::parse(&format!("{required}{text}")).map_err(|why| why.to_string())?;
    PluginManifest::from_project(&project).map(drop)
}

#[test]
fn toml_is_a_configuration_or_a_grant() {
    let count = check_blocks("toml", |page, block| {
        let kind = TOML
            .iter()
            .find(|(name, _)| *name == page)
            .map(|(_, kind)| kind);
        let has_label = |name: &str| block.labels.iter().any(|label| label == name);
        let is_grant = has_label("grant");
        match kind {
            Some(_) if has_label("configuration") => config(&block.text),
            Some(_) if is_grant => {
                Grant::parse("plugin.toml", &block.text, Path::new("plugins")).map(drop)
            }
            Some(Toml::Config) => config(&block.text),
            Some(Toml::Grant) => {
                Grant::parse("plugin.toml", &block.text, Path::new("plugins")).map(drop)
            }
            Some(Toml::Project) => project(&block.text),
            Some(Toml::Plugins) => PluginsFile::parse(&block.text).map(drop),
            Some(Toml::Foreign) => block
                .text
                .parse::<toml::Table>()
                .map(drop)
                .map_err(|error| error.to_string()),
            None => {
                Err("no rule for TOML on this page: add the page to `TOML` in the test".to_owned())
            }
        }
    });
    assert!(count >= TOML.len(), "{count} blocks");
}

#[test]
fn a_mistake_on_a_page_is_detected() {
    assert!(
        config("[limits]\ntimeuot = \"1s\"\n")
            .unwrap_err()
            .contains("timeuot")
    );
    assert!(Grant::parse("plugin.toml", "prefxi = \"a\"\n", Path::new("")).is_err());
}

#[test]
fn json_is_json() {
    let count = check_blocks("json", |_, block| {
        // A block of several messages has one on each line.
        let whole = serde_json::from_str::<serde_json::Value>(&block.text).map(drop);
        let lines = || {
            block
                .text
                .lines()
                .try_for_each(|line| serde_json::from_str::<serde_json::Value>(line).map(drop))
        };
        whole
            .or_else(|error| lines().map_err(|_| error))
            .map_err(|error| error.to_string())
    });
    assert!(count > 0);
}

#[test]
fn rust_blocks_are_compiled_or_marked_as_not_compiled() {
    let count = check_blocks("rust", |page, block| {
        let is_marked = block.labels.iter().any(|label| label == "ignore");
        if COMPILED.contains(&page) || is_marked {
            Ok(())
        } else {
            Err("nothing compiles this: label it `rust,ignore`".to_owned())
        }
    });
    assert!(count > 0);
}

#[test]
fn every_block_names_its_language() {
    check_blocks("", |_, _| {
        Err("a block without a language: `text` is one".to_owned())
    });
}

/// Parses an amount in the table of limits: `10,000`, `128 MiB`, `30 s`.
fn parse_amount(text: &str) -> LimitValue {
    let plain = text.replace(',', "");
    if let Ok(count) = plain.parse::<u64>() {
        return LimitValue::Count(count);
    }
    if plain.ends_with('B') {
        return LimitValue::Bytes(plain.parse().unwrap());
    }
    LimitValue::Time(humantime::parse_duration(&plain).unwrap())
}

#[test]
fn every_limit_is_in_the_book_and_in_the_words_of_the_fuzzer() {
    let page = fs::read_to_string(root().join("docs/src/limits.md")).unwrap();
    let table = page
        .lines()
        .skip_while(|line| *line != "| key | default | ceiling | what it limits |")
        .skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let keys: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(keys, Limits::KEYS);
    let told = |column: usize| {
        rows.iter()
            .map(move |row| parse_amount(row[column]))
            .collect::<Vec<_>>()
    };
    let amounts = |limits: &Limits| {
        limits
            .amounts()
            .map(|(_, amount)| amount)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(1), amounts(&Limits::DEFAULT), "defaults");
    assert_eq!(told(2), amounts(&Limits::CEILING), "ceilings");
    let dictionary = fs::read_to_string(root().join("fuzz/dictionaries/grant.dict")).unwrap();
    for key in Limits::KEYS {
        assert!(
            dictionary.contains(&format!("\"{key} = \"")),
            "{key} is not in the fuzzer's dictionary"
        );
        let text = format!("[limits]\n{key} = true");
        assert!(
            config(&text)
                .unwrap_err()
                .contains(&format!("limits.{key}: expected")),
            "{key}"
        );
    }
}

/// Pages that name a test of this directory for each promise.
const WITH_TESTS: [&str; 2] = ["SECURITY.md", "docs/src/hostile-clients.md"];

/// Returns whether a module below `tests/it` has this test: a function, or a row of the hostile
/// corpus.
pub(crate) fn has_test(path: &str) -> bool {
    let Some((module, test)) = path.rsplit_once("::") else {
        return false;
    };
    let file = root()
        .join("tests/it")
        .join(module.replace("::", "/"))
        .with_extension("rs");
    let source = fs::read_to_string(file).unwrap_or_default();
    source.contains(&format!("fn {test}()")) || source.contains(&format!("    {test}: "))
}

#[test]
fn every_promise_names_a_test_that_exists() {
    for page in WITH_TESTS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let paths: Vec<&str> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|code| code.contains("::"))
            .collect();
        assert!(paths.len() > 10, "{page} names few tests: {paths:?}");
        for path in paths {
            assert!(
                has_test(path),
                "{page} names the test {path}, which does not exist"
            );
        }
    }
    assert!(!has_test("limits::nothing_of_this_name"));
}
