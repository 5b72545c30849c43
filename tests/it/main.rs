//! Black-box tests: they run the real binary on a real folder and use it as clients do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers as well"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes values to give away"
)]

mod act;
mod approval;
mod arguments;
mod arrival;
mod audit;
mod author;
mod bad_input;
mod book_commands;
mod budgets;
mod call;
mod checks;
mod cli;
mod compile;
mod concurrency;
mod confine;
mod console;
mod contract;
mod denials;
mod determinism;
mod dev_loop;
mod doctor;
mod examples;
mod files;
mod flood;
mod functions;
mod getting_started;
mod grant_changes;
mod grants;
mod handshake;
mod hostile;
mod http;
mod init;
mod install;
mod isolation;
mod keys;
mod kit;
mod learn;
mod limits;
mod load;
mod loading;
mod location;
mod lock;
mod memory;
mod meta;
mod metrics;
mod mounts;
mod names;
mod objects;
mod optimize;
mod otel;
mod output;
mod pages;
mod paging;
mod places;
mod plugin_file;
mod proposals;
mod questions;
mod rates;
mod real_registry;
mod references;
mod reload;
mod replay;
mod requests;
mod reread;
mod results;
mod retry;
mod revisions;
mod running_calls;
mod schemas;
mod seams;
mod secrets;
mod server_limits;
mod servers;
mod several;
mod share;
mod skills;
mod sockets;
mod sources;
mod state;
mod stateless;
mod stderr;
mod store;
mod strangers;
mod supervisor;
mod support;
mod systemd;
mod task_attacks;
mod tasks;
mod token;
mod unreadable;
mod uri_templates;
mod uris;
mod views;
mod wasi3;
mod wire;
