//! Tools that reach for files.

use std::fs;
use std::io::Read as _;

use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Path {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PathText {
    path: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PathNumber {
    path: String,
    n: u64,
}

/// Reads a file.
#[tool]
pub(crate) fn read_file(args: Path) -> Result<String> {
    Ok(fs::read_to_string(args.path)?)
}

/// Writes a file.
#[tool]
pub(crate) fn write_file(args: PathText) -> Result<String> {
    fs::write(&args.path, args.text)?;
    Ok("written".to_owned())
}

/// Lists a folder.
#[tool]
pub(crate) fn list_folder(args: Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(args.path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

/// Opens a file `n` times and never closes it.
#[tool]
pub(crate) fn hold_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        std::mem::forget(fs::File::open(&args.path)?);
    }
    Ok(format!("{} handles", args.n))
}

/// Opens a file `n` times, reads a byte each time, and never closes it.
#[tool]
pub(crate) fn read_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        let mut file = fs::File::open(&args.path)?;
        file.read_exact(&mut [0])?;
        std::mem::forget(file);
    }
    Ok(format!("{} files", args.n))
}

/// Begins to list a folder `n` times, and never ends.
#[tool]
pub(crate) fn list_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        let mut entries = fs::read_dir(&args.path)?;
        entries.next().transpose()?;
        std::mem::forget(entries);
    }
    Ok(format!("{} folders", args.n))
}
