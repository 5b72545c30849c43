//! A server that guests may call and connect to. It responds to HTTP and echoes everything else.

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::guest::PATHS;

/// Size of a large response, in bytes: more than a call may receive.
const LARGE: usize = 16 << 20;

/// Time after which an idle connection is closed. No call takes as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a server on the loopback address and returns its port. It runs until the program exits.
pub(crate) fn start() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::Builder::new()
        .name("site".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // Errors are ignored, because a guest may end a connection at any time. If no
                // thread is available, the connection is closed.
                let _ = thread::Builder::new()
                    .name("connection".to_owned())
                    .spawn(move || drop(serve(stream)));
            }
        })?;
    Ok(port)
}

fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let [small, large, stuck] = PATHS.map(|path| format!(" {path} HTTP/1.1\r\n"));
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut piece)?;
        let Some(came) = piece.get(..count).filter(|came| !came.is_empty()) else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(came);
        if text.contains(&small) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Own: 1\r\nContent-Length: 5\r\n\r\nhello")?;
        } else if text.contains(&large) {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")?;
            stream.write_all(&vec![b'x'; LARGE])?;
        } else if !text.contains(&stuck) {
            stream.write_all(came)?;
        }
    }
}
