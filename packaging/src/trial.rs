//! Installs a package in a clean directory and uses it as a user would: without Rust, without this
//! project's variables, and without user settings.

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

/// Installs the files of a format in a clean environment.
pub(crate) type Install = fn(&Kit, &[PathBuf], &Room) -> Result<Installed>;

/// Maximum time from the end of the installation until the response to the first call.
const PATIENCE: Duration = Duration::from_secs(10);

/// The measurements of a package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Duration of the installation.
    pub(crate) installed: Duration,
    /// Time from the end of the installation until the response to the first call.
    pub(crate) call: Duration,
    /// Duration of starting a server, the handshake and a call.
    pub(crate) session: Duration,
    /// Number of checks that passed.
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
    let seen = Seen {
        installed: took,
        call: used.call,
        session: used.session,
        checks: used.checks + 1,
    };
    // Programs that are not release builds are tested alongside other work, so their timing means
    // nothing.
    let patience = if kit.program.is_static {
        PATIENCE
    } else {
        DEADLINE
    };
    ensure!(
        seen.call < patience,
        "the first call took {:.1} s",
        seen.call.as_secs_f64()
    );
    Ok(seen)
}
