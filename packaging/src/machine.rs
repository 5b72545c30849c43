//! The machine that a program runs on, read from the program's file.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Architecture, Endianness, Object as _, ObjectSection as _};

/// A machine, with its name in each package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its name in Rust, in a wheel's tag and in RPM.
    pub(crate) rust: &'static str,
    /// Its name in Debian and in images.
    pub(crate) debian: &'static str,
    /// Its name in npm.
    pub(crate) npm: &'static str,
}

/// All machines that packages exist for.
pub(crate) const MACHINES: [Machine; 2] = [
    Machine {
        rust: "x86_64",
        debian: "amd64",
        npm: "x64",
    },
    Machine {
        rust: "aarch64",
        debian: "arm64",
        npm: "arm64",
    },
];

/// A program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The machine that it runs on.
    pub(crate) machine: Machine,
    /// True if it is statically linked, so that any Linux on this machine runs it.
    pub(crate) is_static: bool,
    /// True if it contains the list of the crates it was built from (`cargo auditable`).
    pub(crate) is_auditable: bool,
    /// Its size in bytes.
    pub(crate) size: u64,
}

impl Program {
    /// Reads the properties from the ELF file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        Self::parse(&bytes).with_context(|| format!("{} is no program for Linux", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes)?;
        let name = match file.architecture() {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
            other => bail!("there are no packages for {other:?}"),
        };
        let machine = MACHINES
            .into_iter()
            .find(|machine| machine.rust == name)
            .context("an unknown machine")?;
        let header = file.elf_header();
        let endian = file.endian();
        // A dynamically linked program names its interpreter.
        let is_dynamic = header
            .program_headers(endian, bytes)?
            .iter()
            .any(|part| part.p_type(endian) == object::elf::PT_INTERP);
        let is_auditable = file
            .sections()
            .any(|section| section.name().is_ok_and(|name| name == ".dep-v0"));
        Ok(Self {
            machine,
            is_static: !is_dynamic,
            is_auditable,
            size: bytes.len() as u64,
        })
    }

    /// Returns the name of its target in Rust.
    pub(crate) fn triple(&self) -> String {
        format!(
            "{}-unknown-linux-{}",
            self.machine.rust,
            if self.is_static { "musl" } else { "gnu" }
        )
    }

    /// Returns whether this machine can run it.
    pub(crate) fn runs_here(&self) -> bool {
        self.machine.rust == std::env::consts::ARCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_program_that_needs_libraries() {
        let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(
            program.runs_here()
                && !program.is_static
                && !program.is_auditable
                && program.size > 100_000
        );
        assert_eq!(
            program.triple(),
            format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
        );
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01\x01"] {
            assert!(Program::parse(bytes).is_err());
        }
    }
}
