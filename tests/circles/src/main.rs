//! `circles FILE…`: reports the cycles of the crates with these root files, such as `src/lib.rs`.

#![allow(clippy::print_stdout, reason = "it talks to the person who runs it")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use circles::{Unit, circles, dependencies};

fn main() -> Result<ExitCode> {
    let mut unit = Unit::File;
    let mut is_list = false;
    let mut found = 0;
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("--folders") => unit = Unit::Folder,
            Some("--list") => is_list = true,
            _ => {
                let root = PathBuf::from(argument);
                if is_list {
                    dependencies(&root)?
                        .iter()
                        .for_each(|line| println!("{line}"));
                }
                for circle in circles(&root, unit)? {
                    println!("{}: {circle}\n", root.display());
                    found += 1;
                }
            }
        }
    }
    println!("{found} circles");
    Ok(if found == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
