//! `toolbay console`: opens the console of a server that a client started, through a local port.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use futures_util::future::join_all;
use humantime::format_duration;
use tokio::net::TcpListener;
use toolbay_console::{PATH, describe_server, forward, request_login};
use toolbay_model::text::clean_line;

use super::common::block_on;
use super::output::{note, print};
use super::signals::Signals;
use crate::config::ConfigError;
use crate::serve::console_socket::{ServerSocket, find_servers};

/// Maximum length of a printed folder, in bytes.
const MAX_PATH_BYTES: usize = 1_000;

/// Advice if no server is found.
const NO_SERVER_ADVICE: &str = "a server has a console while a client that started it with `toolbay serve` is running, unless \
                      console.stdio = false; the console of `toolbay serve --http` is at the address in its log";

/// A server that responds.
pub(super) struct FoundServer {
    pub(super) socket: ServerSocket,
    /// The server's plugin folder.
    folder: String,
}

pub(super) fn run(pid: Option<u32>) -> anyhow::Result<ExitCode> {
    block_on(async {
        let signals = Signals::listen().context("failed to listen for signals")?;
        let server = choose_server(responding_servers().await, pid, "console")?;
        let FoundServer {
            socket: ServerSocket { pid, path, .. },
            folder,
        } = server;
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("failed to listen on 127.0.0.1")?;
        let address = listener
            .local_addr()
            .context("failed to read the listener's address")?;
        let mut login = request_login(&path)
            .await
            .with_context(|| format!("the server {pid} did not issue a token"))?;
        print(&format!(
            "the console of the server {pid} ({folder}) opens once at http://{address}{PATH}/login#{}\n",
            login.token
        ));
        note("Ctrl-C ends this command; the server keeps running");
        tokio::select! {
            () = signals.shutdown.cancelled() => {}
            // The terminal was closed.
            () = signals.reload.notified() => {}
            () = login.wait_for_server_end() => note(&format!("the server {pid} has ended")),
            () = forward(listener, &path) => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the servers that respond, oldest first.
pub(super) async fn responding_servers() -> Vec<FoundServer> {
    let requests = find_servers().into_iter().map(async |found| {
        let folder = clean_line(&describe_server(&found.path).await.ok()?, MAX_PATH_BYTES);
        Some(FoundServer {
            socket: found,
            folder,
        })
    });
    join_all(requests).await.into_iter().flatten().collect()
}

/// Returns the server with this process ID, or the only server. `command` is the subcommand of the
/// user, for messages.
pub(super) fn choose_server(
    mut servers: Vec<FoundServer>,
    pid: Option<u32>,
    command: &str,
) -> anyhow::Result<FoundServer> {
    if let Some(pid) = pid {
        let Some(index) = servers.iter().position(|server| server.socket.pid == pid) else {
            bail!(
                "no server with the process number {pid} has a console that answers: {NO_SERVER_ADVICE}"
            );
        };
        return Ok(servers.swap_remove(index));
    }
    if servers.len() > 1 {
        return Err(ConfigError::new(several_servers_message(
            &servers,
            command,
            SystemTime::now(),
        ))
        .into());
    }
    servers
        .pop()
        .with_context(|| format!("no server has a console that answers: {NO_SERVER_ADVICE}"))
}

/// Returns the commands to choose from, one per line.
fn several_servers_message(servers: &[FoundServer], command: &str, now: SystemTime) -> String {
    let mut message = "several servers have a console; choose one:".to_owned();
    for FoundServer {
        socket: found,
        folder,
    } in servers
    {
        let age = Duration::from_secs(
            now.duration_since(found.started_at)
                .unwrap_or_default()
                .as_secs(),
        );
        let _ = write!(
            message,
            "\n  toolbay {command} --pid {:<8} {folder}, for {}",
            found.pid,
            format_duration(age)
        );
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(pid: u32, folder: &str, seconds: u64) -> FoundServer {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000 - seconds);
        FoundServer {
            socket: ServerSocket {
                pid,
                path: "/run/a".into(),
                started_at: since,
            },
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn one_of_several_servers_is_chosen_by_its_process_number() {
        let all = || vec![server(7, "/srv/a", 90), server(4_194_303, "/srv/b", 0)];
        assert_eq!(
            choose_server(all(), Some(4_194_303), "console")
                .ok()
                .unwrap()
                .folder,
            "/srv/b"
        );
        assert_eq!(
            choose_server(vec![server(7, "/srv/a", 90)], None, "console")
                .ok()
                .unwrap()
                .socket
                .pid,
            7
        );
        let error = choose_server(all(), None, "console").err().unwrap();
        assert!(error.is::<ConfigError>());
        for result in [
            choose_server(all(), Some(8), "console"),
            choose_server(Vec::new(), None, "console"),
        ] {
            assert!(result.err().unwrap().to_string().contains("toolbay serve"));
        }
        insta::assert_snapshot!(several_servers_message(&all(), "console", SystemTime::UNIX_EPOCH + Duration::from_secs(10_000)), @r"
        several servers have a console; choose one:
          toolbay console --pid 7        /srv/a, for 1m 30s
          toolbay console --pid 4194303  /srv/b, for 0s
        ");
    }
}
