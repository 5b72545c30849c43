//! A plugin file on the command line: `FILE.wasm` in place of a plugin folder.
//!
//! The plugin is loaded exactly as in its folder, with the files that belong to it there, such as
//! its grant `FILE.toml`. The other plugins of the folder are not loaded.

use std::path::{Path, PathBuf};

use toolbay_model::text::clean_line;

use crate::config::ConfigError;

/// Extension of a plugin file, in lower case, as in a plugin folder.
const EXTENSION: &str = ".wasm";

/// Maximum size of a printed path, in bytes.
const MAX_PATH_BYTES: usize = 1_000;

/// The only plugin that a command loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectedPlugin {
    /// The folder of the file.
    pub(super) folder: PathBuf,
    /// The id: the name of the file without `.wasm`.
    pub(super) id: String,
}

/// Returns whether an argument that can be a tool or a plugin file is a plugin file.
pub(super) fn is_plugin_file(argument: &str) -> bool {
    argument.to_ascii_lowercase().ends_with(EXTENSION)
}

/// Returns the plugin of a file.
///
/// # Errors
///
/// The path does not lead to a file that a plugin folder would load.
pub(super) fn select_plugin(file: &Path) -> Result<SelectedPlugin, ConfigError> {
    let shown = clean_line(&file.display().to_string(), MAX_PATH_BYTES);
    let wrong = |why: String| Err(ConfigError::new(why));
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return wrong(format!("the plugin file {shown} does not exist"));
        }
        Err(error) => {
            return wrong(format!(
                "cannot read the plugin file {shown}: {}",
                error.kind()
            ));
        }
    };
    if metadata.is_dir() {
        return wrong(format!(
            "{shown} is a folder; to use all plugins in it, write --plugins {shown}"
        ));
    }
    let name = file.file_name().and_then(|name| name.to_str());
    let Some(id) = name.and_then(|name| name.strip_suffix(EXTENSION)) else {
        return wrong(format!(
            "{shown} is not a plugin file: its name must end in .wasm in lower case"
        ));
    };
    if id.is_empty() || id.starts_with('.') {
        return wrong(format!(
            "{shown} is not a plugin file: its name must not start with a dot"
        ));
    }
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok(SelectedPlugin {
        folder: folder.to_owned(),
        id: id.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_selects_its_plugin_and_everything_else_is_a_mistake() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.b.wasm", "upper.WASM", "text.txt", ".wasm", ".x.wasm"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("folder.wasm")).unwrap();
        let select = |name: &str| {
            select_plugin(&dir.path().join(name)).map_err(|error| {
                error
                    .to_string()
                    .replace(&format!("{}/", dir.path().display()), "")
            })
        };
        assert_eq!(
            select("a.b.wasm"),
            Ok(SelectedPlugin {
                folder: dir.path().to_owned(),
                id: "a.b".to_owned(),
            })
        );
        let mistakes: Vec<String> = [
            "missing.wasm",
            "upper.WASM",
            "text.txt",
            ".wasm",
            ".x.wasm",
            "folder.wasm",
            "text.txt/x.wasm",
        ]
        .iter()
        .map(|name| select(name).unwrap_err())
        .collect();
        insta::assert_snapshot!(mistakes.join("\n"), @r"
        the plugin file missing.wasm does not exist
        upper.WASM is not a plugin file: its name must end in .wasm in lower case
        text.txt is not a plugin file: its name must end in .wasm in lower case
        .wasm is not a plugin file: its name must not start with a dot
        .x.wasm is not a plugin file: its name must not start with a dot
        folder.wasm is a folder; to use all plugins in it, write --plugins folder.wasm
        cannot read the plugin file text.txt/x.wasm: not a directory
        ");
    }
}
