//! A second wall around the server: what its process may still do, enforced by Landlock and seccomp.
//!
//! Plugins are kept in by the sandbox. If that had a hole, a guest would run as the server, with all that the server's user
//! may do. A [`ConfinementPlan`] says what a server needs, and [`confine`] gives up the rest, for good: for this process and for
//! whatever it starts. [`ConfinementReport`] says what is on, and its [`ReachableFiles`] whether a folder that somebody asks for later can be
//! used at all.
//!
//! - [Landlock](https://landlock.io) closes files: those to read, to write and to execute are named, and no others can be
//!   opened. It also closes listening on TCP ports, abstract Unix sockets and signals to other processes, where the kernel
//!   can.
//! - seccomp closes system calls that no server needs (`calls`): with the error `EPERM`, so that a library that only tries
//!   one goes on without it. Among them is making a Unix socket: those of the process must be open before.
//! - The privileges of root are given up, but for those that concern files.
//!
//! This crate knows neither plugins nor the configuration. It must be called before the process has other threads: a kernel
//! before Landlock's version 8 confines the calling thread and those that it starts.

mod calls;
mod confined;
mod files;
mod plan;
mod privileges;
mod promise;
mod reach;

pub use self::confined::{ConfinementReport, confine};
pub use self::plan::{ConfinementPlan, program};
pub use self::reach::ReachableFiles;
