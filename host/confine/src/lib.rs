//! Confines the server process with Landlock and seccomp, as a second layer of defense.
//!
//! Plugins are isolated by the sandbox. If the sandbox had a hole, a guest would run with all
//! rights of the server's user. A [`ConfinementPlan`] lists the access that a server needs, and
//! [`confine`] permanently drops the rest, for this process and its children. [`ConfinementReport`]
//! states which restrictions are active. Its [`ReachableFiles`] states whether a directory that is
//! requested later is still accessible.
//!
//! - [Landlock](https://landlock.io) restricts files: only the files listed for reading, writing
//!   and executing can be opened. Where the kernel supports it, Landlock also denies listening on
//!   TCP ports, connecting to abstract Unix sockets, and sending signals to other processes.
//! - seccomp rejects system calls that no server needs (`seccomp_filters`), with the error `EPERM`,
//!   so that a library that only probes for one can continue. Creating a Unix socket is one of
//!   them: the process must open its sockets first.
//! - Root's capabilities are dropped, except those that concern files.
//!
//! This crate does not depend on plugins or the configuration. Call it before the process has other
//! threads: a kernel without Landlock version 8 confines only the calling thread and the threads
//! that it starts.

mod confinement;
mod landlock_rules;
mod landlock_versions;
mod plan;
mod privileges;
mod reachable_files;
mod seccomp_filters;

pub use self::confinement::{ConfinementReport, confine};
pub use self::plan::{ConfinementPlan, own_program_files};
pub use self::reachable_files::ReachableFiles;
