//! Accepts connections, limits their number and idle time, and shuts them down gracefully.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::options::Options;
use crate::session::Life;

/// Pause after a failed accept, such as too many open files: another connection must close first.
const PAUSE: Duration = Duration::from_millis(100);

/// How long writing the responses to stopped requests may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The address of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub IpAddr);

/// Serves until `life.closing`; running requests may then continue for `grace`.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    options: &Options,
    life: &Life,
    grace: Duration,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(options.connections));
    let (connections, ended, stop) = (TaskTracker::new(), CancellationToken::new(), &life.closing);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let serving = connection(stream, peer, router.clone(), options.idle, stop.clone());
                let ended = ended.clone();
                connections.spawn(async move {
                    // Dropped at the end of the grace time, whatever its state.
                    ended.run_until_cancelled(serving).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!("stopped requests that were still running when the grace time ended (server.grace)");
        life.stopped.cancel();
        // Only long enough to write the responses.
        if tokio::time::timeout(LAST_WORDS, connections.wait()).await.is_err() {
            ended.cancel();
            connections.wait().await;
        }
    }
    Ok(())
}

/// Accepts the next connection as soon as there is a place for it; until then it waits in the system's backlog.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    // Responses are small, and clients wait for them.
    stream.set_nodelay(true)?;
    Ok((stream, peer.ip(), place))
}

async fn connection(stream: TcpStream, peer: IpAddr, router: Router, idle: Duration, stop: CancellationToken) {
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        let mut router = router.clone();
        async move { Ok::<Response<Body>, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .serve_connection(TokioIo::new(stream), answer);
    let mut serving = pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stop.cancelled() => {
            // Finishes the current response, then closes the connection.
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
