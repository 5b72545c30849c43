//! The sources of a plugin in Python with packages of `PyPI`, and of the program for `CPython` that
//! makes the same calls.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::row::PackageRow;

/// The program that makes the calls in `CPython`.
pub(super) const REFERENCE: &str = "reference.py";

const REFERENCE_SOURCE: &str = r#"
import importlib
import json
import sys
import traceback

calls = []
for id, base in json.loads(sys.argv[1]).items():
    try:
        module = importlib.import_module(f"package_{id}")
        outcome = {"value": json.loads(json.dumps(module.call(base), ensure_ascii=False))}
    except Exception:
        outcome = {"error": traceback.format_exc()}
    calls.append("toolbay-result " + json.dumps({"id": id, **outcome}))
print("", *calls, sep="\n")
"#;

/// Adds the packages to the project's `requirements.txt`, and the modules to include to its
/// `plugin.toml`.
pub(super) fn require_packages(folder: &Path, rows: &[&PackageRow]) -> Result<String> {
    let append = |name: &str, added: &str| -> Result<String> {
        let path = folder.join(name);
        let mut text = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        text += added;
        fs::write(&path, &text).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(text)
    };
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{}=={}
",
                row.name, row.version
            )
        })
        .collect();
    let requirements = append("requirements.txt", &lines.concat())?;
    let mut include: Vec<&str> = rows
        .iter()
        .flat_map(|row| row.include.iter().map(String::as_str))
        .collect();
    include.sort_unstable();
    include.dedup();
    append(
        "plugin.toml",
        &format!("\n[python]\ninclude = {include:?}\n"),
    )?;
    Ok(requirements)
}

/// Writes the plugin with one tool for each row, and the program for `CPython`.
pub(super) fn write_sources(folder: &Path, rows: &[&PackageRow]) -> Result<()> {
    let sources = folder.join("src");
    fs::remove_dir_all(&sources)?;
    fs::create_dir_all(&sources)?;
    let mut app = "import json\n\nfrom toolbay import tool\n".to_owned();
    for row in rows {
        fs::write(
            sources.join(format!("package_{}.py", row.id)),
            module_source(row),
        )?;
        app += &tool_source(&row.id);
    }
    fs::write(sources.join("app.py"), app)?;
    fs::write(folder.join(REFERENCE), REFERENCE_SOURCE)?;
    Ok(())
}

fn module_source(row: &PackageRow) -> String {
    if row.is_client() {
        return row.code.clone();
    }
    let (imports, body) = row.split_imports();
    let body: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
    let body = body.concat();
    format!("{imports}\n\ndef call(base):\n{body}")
}

fn tool_source(id: &str) -> String {
    format!(
        "
import package_{id}


@tool
def {id}(base: str) -> str:
    \"\"\"Calls a package.\"\"\"
    return json.dumps(package_{id}.call(base), ensure_ascii=False)
"
    )
}
