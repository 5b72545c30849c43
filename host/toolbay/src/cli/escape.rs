//! `toolbay escape`: tests which operations the confinement of a server with this configuration
//! would leave to code that escaped its sandbox.
//!
//! Sets up the same confinement as `serve`, without a server. Each line of standard input is an
//! operation to attempt.

use std::fs::{self, File};
use std::io::{self, stdin};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode};

use toolbay_mcp::http::ListenAddress;

use super::common::{Common, Listen, start_logging};
use super::output::print;
use crate::serve::confinement::{ConfinementNeeds, ServerConfinement};

pub(super) fn run(common: &Common, listen: &Listen) -> anyhow::Result<ExitCode> {
    let config = common.read_config(listen)?;
    let socket = config
        .http
        .listen
        .as_ref()
        .and_then(ListenAddress::socket_path);
    let confinement =
        ServerConfinement::build(&config, ConfinementNeeds::from_config(&config, socket)?)?;
    start_logging(&config, &config.log, None)?;
    confinement.log();
    for line in stdin().lines() {
        let line = line?;
        let outcome = match attempt(&line) {
            Ok(()) => "done".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        print(&format!("{line}: {outcome}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Attempts the operation of a line, which consists of a verb and its argument.
fn attempt(line: &str) -> io::Result<()> {
    let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "read" => fs::read(argument).map(drop),
        "list" => fs::read_dir(argument).map(drop),
        "write" => File::options()
            .append(true)
            .create(true)
            .open(argument)
            .map(drop),
        "remove" => fs::remove_file(argument),
        "run" => Command::new(argument).output().map(drop),
        "listen" => TcpListener::bind(argument).map(drop),
        "join" => UnixStream::connect(argument).map(drop),
        "tell" => UnixDatagram::unbound()
            .and_then(|socket| socket.send_to(b"x", argument))
            .map(drop),
        "pair" => UnixStream::pair().map(drop),
        "resolve" => (argument, 80).to_socket_addrs().map(drop),
        "connect" => TcpStream::connect(argument).map(drop),
        "link" => std::os::unix::fs::symlink("/etc/passwd", Path::new(argument)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}
