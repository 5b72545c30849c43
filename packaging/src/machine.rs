//! What a program runs on, read from its file.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Architecture, Endianness, Object as _, ObjectSection as _};

/// A machine, in the words of each package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// In Rust, in a wheel's tag and in RPM.
    pub(crate) rust: &'static str,
    /// In Debian and in images.
    pub(crate) debian: &'static str,
    /// In npm.
    pub(crate) npm: &'static str,
}

/// All machines that there are packages for.
pub(crate) const MACHINES: [Machine; 2] = [
    Machine { rust: "x86_64", debian: "amd64", npm: "x64" },
    Machine { rust: "aarch64", debian: "arm64", npm: "arm64" },
];

/// A program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What it runs on.
    pub(crate) machine: Machine,
    /// Whether it brings everything along: any Linux of this machine runs it.
    pub(crate) is_static: bool,
    /// Whether it says which crates it was made of (`cargo auditable`).
    pub(crate) is_auditable: bool,
    /// Bytes.
    pub(crate) size: u64,
}

impl Program {
    /// Reads what the file says.
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
        let machine = MACHINES.into_iter().find(|machine| machine.rust == name).context("an unknown machine")?;
        let (header, endian) = (file.elf_header(), file.endian());
        // Who is linked dynamically names the program that does it.
        let is_dynamic =
            header.program_headers(endian, bytes)?.iter().any(|part| part.p_type(endian) == object::elf::PT_INTERP);
        let is_auditable = file.sections().any(|section| section.name().is_ok_and(|name| name == ".dep-v0"));
        Ok(Self { machine, is_static: !is_dynamic, is_auditable, size: bytes.len() as u64 })
    }

    /// The name of its target in Rust.
    pub(crate) fn triple(&self) -> String {
        format!("{}-unknown-linux-{}", self.machine.rust, if self.is_static { "musl" } else { "gnu" })
    }

    /// Whether this machine runs it.
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
        assert!(program.runs_here() && !program.is_static && !program.is_auditable && program.size > 100_000);
        assert_eq!(program.triple(), format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01\x01"] {
            assert!(Program::parse(bytes).is_err());
        }
    }
}
