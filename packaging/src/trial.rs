//! Installs a package in a clean folder as a person would, and uses it: without Rust, without this project's variables and
//! without anybody's settings.

pub(crate) mod archive;
pub(crate) mod bundle;
pub(crate) mod deb;
pub(crate) mod image;
mod installed;
mod local_site;
pub(crate) mod npm;
mod room;
pub(crate) mod rpm;
mod usage;
pub(crate) mod wheel;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Result, ensure};
use toolbay_testkit::DEADLINE;

pub(crate) use self::installed::Installed;
use self::local_site::LocalSite;
pub(crate) use self::room::Room;
use crate::kit::Kit;

/// Installs the files of a format in a room.
pub(crate) type Install = fn(&Kit, &[PathBuf], &Room) -> Result<Installed>;

/// How long a person may wait for the first call, from when the package is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Installing took so long.
    pub(crate) installed: Duration,
    /// The first call was answered so long after that.
    pub(crate) call: Duration,
    /// Starting a server, the handshake and a call took so long.
    pub(crate) session: Duration,
    /// What was checked.
    pub(crate) checks: usize,
}

/// Installs and uses a package.
pub(crate) fn run(kit: &Kit, install: Install, files: &[PathBuf]) -> Result<Seen> {
    let room = Room::new()?;
    let began = Instant::now();
    let installed = install(kit, files, &room)?;
    let took = began.elapsed();
    println!("ok      it is installed");
    let used = usage::run(&installed, &room, &kit.release.version)?;
    let seen = Seen { installed: took, call: used.call, session: used.session, checks: used.checks + 1 };
    // Tests of another program share the machine with other work, and say nothing about the time.
    let patience = if kit.program.is_static { PATIENCE } else { DEADLINE };
    ensure!(seen.call < patience, "the first call took {:.1} s", seen.call.as_secs_f64());
    Ok(seen)
}
