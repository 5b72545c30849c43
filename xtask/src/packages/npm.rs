//! The sources of a plugin in JavaScript with packages of npm, and of the program for Node that
//! makes the same calls.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::row::PackageRow;

/// The program that makes the calls in Node.
pub(super) const REFERENCE: &str = "reference.mjs";

const REFERENCE_SOURCE: &str = r"
const bases = JSON.parse(process.argv[2]);
const calls = [];
const late = () => new Promise((_, failed) => setTimeout(() => failed(new Error('it did not end within a minute')), 60_000));
for (const [id, base] of Object.entries(bases)) {
  let outcome;
  try {
    const { call } = await import(`./src/packages/${id}.js`);
    const value = JSON.stringify(await Promise.race([call(base), late()]));
    outcome = value === undefined ? { error: 'the call returns nothing' } : { value: JSON.parse(value) };
  } catch (error) {
    outcome = { error: String(error?.stack ?? error) };
  }
  calls.push(`toolbay-result ${JSON.stringify({ id, ...outcome })}`);
}
console.log(`\n${calls.join('\n')}`);
process.exit(0);
";

/// Adds the packages to the project's `package.json`.
pub(super) fn require_packages(folder: &Path, rows: &[&PackageRow]) -> Result<String> {
    let path = folder.join("package.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let mut manifest: Value = serde_json::from_str(&text)?;
    let packages = manifest
        .get_mut("devDependencies")
        .and_then(Value::as_object_mut)
        .context("package.json has no devDependencies")?;
    for row in rows {
        packages.insert(row.name.clone(), json!(row.version));
    }
    let text = format!("{manifest:#}\n");
    fs::write(&path, &text).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(text)
}

/// Writes the plugin with one tool for each row, and the program for Node.
pub(super) fn write_sources(folder: &Path, rows: &[&PackageRow]) -> Result<()> {
    let packages = folder.join("src/packages");
    fs::create_dir_all(&packages)?;
    let mut app = "import { t, tool } from 'toolbay';\n".to_owned();
    for row in rows {
        fs::write(packages.join(format!("{}.js", row.id)), module_source(row))?;
        app += &tool_source(&row.id);
    }
    fs::write(folder.join("src/app.js"), app)?;
    fs::write(folder.join(REFERENCE), REFERENCE_SOURCE)?;
    Ok(())
}

fn module_source(row: &PackageRow) -> String {
    if row.is_client() {
        return row.code.clone();
    }
    let (imports, body) = row.split_imports();
    format!("{imports}\nexport async function call() {{\n{body}}}\n")
}

fn tool_source(id: &str) -> String {
    format!(
        "
import {{ call as call_{id} }} from './packages/{id}.js';
export const {id} = tool({{
  name: '{id}',
  description: 'Calls a package.',
  input: {{ base: t.string('The URL of the API.') }},
  async handler({{ base }}) {{
    const value = JSON.stringify(await call_{id}(base));
    if (value === undefined) throw new Error('the call returns nothing');
    return value;
  }},
}});
"
    )
}
