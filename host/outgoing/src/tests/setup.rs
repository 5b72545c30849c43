//! Servers, certificates, names and clients for tests.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use toolbay_policy::{HttpRule, OriginPattern};

use crate::pool_partition::PoolPartition;
use crate::{
    ConnectorOptions, HttpConnector, NameResolver, PluginClient, RequestMeter, RequestTimeouts,
    ResponseBody, SendError,
};

/// Timeout for expected events, which take much less time on any machine.
pub(crate) const LONG: Duration = Duration::from_mins(1);
/// Timeout that is expected to expire.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) const PATIENT: RequestTimeouts = RequestTimeouts {
    connect: LONG,
    first_byte: LONG,
    between_bytes: LONG,
};

pub(crate) type BoxedBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

pub(crate) fn text(text: impl Into<Bytes>) -> BoxedBody {
    Full::new(text.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A certificate in a file.
fn pem(certificate: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n")
}

/// The validity of a certificate.
#[derive(Clone, Copy)]
pub(crate) enum Valid {
    Now,
    Before,
    Later,
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pem(params.self_signed(&key).unwrap().der())).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// The TLS configuration of a server with this name.
    pub(crate) fn server(&self, name: &str, valid: Valid, alpn: &[&str]) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match valid {
            Valid::Now => {}
            Valid::Before => params.not_after = date_time_ymd(2001, 1, 1),
            Valid::Later => params.not_before = date_time_ymd(4000, 1, 1),
        }
        if matches!(valid, Valid::Before) {
            params.not_before = date_time_ymd(2000, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Names, each with a sequence of answers. The last answer repeats.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) lookups: AtomicUsize,
}

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| {
            answer
                .iter()
                .map(|address| address.parse().unwrap())
                .collect()
        };
        self.answers
            .lock()
            .insert(name.to_owned(), answers.iter().map(parse).collect());
    }
}

impl NameResolver for Names {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock();
        let answer = match answers.get_mut(&name) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.first().cloned().unwrap_or_default()),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// A server, and the number of connections that it has accepted.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) accepted: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server that runs this function for each connection. Connection numbers start at 1.
    pub(crate) async fn raw<F, R>(serve: F) -> Self
    where
        F: Fn(TcpStream, usize) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                connections.spawn(serve(stream, number));
            }
        });
        Self {
            port,
            accepted,
            task,
        }
    }

    /// A server that responds to requests, over TLS if there is a configuration, with the HTTP
    /// version that ALPN negotiated.
    pub(crate) async fn http<F, R>(tls: Option<Arc<ServerConfig>>, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<BoxedBody>> + Send + 'static,
    {
        Self::raw(move |stream, _| {
            let tls = tls.clone();
            let answer = answer.clone();
            async move {
                let service = service_fn(move |request| {
                    let answer = answer(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let Some(tls) = tls else {
                    let _end = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                    return;
                };
                let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else {
                    return;
                };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let _end = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                } else {
                    let _end = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                }
            }
        })
        .await
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://server.example:{}{path}", self.port)
    }
}

/// A connector for `server.example` and other names, all of them on the loopback interface unless a
/// test sets another address.
pub(crate) struct TestNetwork {
    pub(crate) names: Arc<Names>,
    pub(crate) connector: Arc<HttpConnector>,
    pub(crate) extra_ca: Vec<std::path::PathBuf>,
}

impl TestNetwork {
    pub(crate) fn new() -> Self {
        Self::with(&ConnectorOptions::default())
    }

    pub(crate) fn trusting(authority: &Authority) -> Self {
        Self::with(&ConnectorOptions {
            extra_ca: vec![authority.file.path().to_owned()],
            proxy: None,
        })
    }

    pub(crate) fn with(options: &ConnectorOptions) -> Self {
        let names = Arc::new(Names::default());
        names.set("server.example", &[&["127.0.0.1"]]);
        let connector = HttpConnector::new(options, names.clone(), 1000).unwrap();
        Self {
            names,
            connector,
            extra_ca: options.extra_ca.clone(),
        }
    }

    /// Creates a world in which all plugins together have this many sockets.
    pub(crate) fn narrow(sockets: usize) -> Self {
        let world = Self::new();
        let connector =
            HttpConnector::new(&ConnectorOptions::default(), world.names.clone(), sockets).unwrap();
        Self { connector, ..world }
    }

    /// A client for `server.example` at this server's port, which can connect to the loopback
    /// interface.
    pub(crate) fn client(&self, server: &Server, connections: usize) -> Arc<PluginClient> {
        self.client_for(
            &[&server.url("http", ""), &server.url("https", "")],
            &["127.0.0.0/8"],
            connections,
        )
    }

    pub(crate) fn client_for(
        &self,
        origins: &[&str],
        opened: &[&str],
        connections: usize,
    ) -> Arc<PluginClient> {
        let rules = origins
            .iter()
            .map(|origin| HttpRule::new(OriginPattern::parse(origin).unwrap()))
            .collect();
        let opened = opened
            .iter()
            .map(|network| toolbay_policy::AddressRange::parse(network).unwrap())
            .collect();
        Arc::new(PluginClient::new(
            self.connector.clone(),
            rules,
            opened,
            connections,
        ))
    }
}

impl PluginClient {
    /// Authorizes a request and sends it in this partition.
    pub(crate) async fn send<B>(
        self: &Arc<Self>,
        request: Request<B>,
        partition: &PoolPartition,
        timeouts: RequestTimeouts,
        deadline: Instant,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = self.authorize(request)?;
        request.partition = partition.clone();
        request.send(timeouts, deadline, meter).await
    }
}

pub(crate) fn unlimited() -> Arc<RequestMeter> {
    Arc::new(RequestMeter::new(u64::MAX, u64::MAX))
}

pub(crate) fn get(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url).body(Empty::new()).unwrap()
}

pub(crate) async fn send<B>(
    outlet: &Arc<PluginClient>,
    request: Request<B>,
) -> Result<Response<ResponseBody>, SendError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    send_within(outlet, request, PATIENT).await
}

pub(crate) async fn send_within<B>(
    outlet: &Arc<PluginClient>,
    request: Request<B>,
    timeouts: RequestTimeouts,
) -> Result<Response<ResponseBody>, SendError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    outlet
        .send(
            request,
            &PoolPartition::NONE,
            timeouts,
            Instant::now() + LONG,
            &unlimited(),
        )
        .await
}

/// The whole body as text.
pub(crate) async fn read(response: Response<ResponseBody>) -> Result<String, SendError> {
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Waits for a condition that other tasks establish. The machine can be slow; the test fails if the
/// condition never holds.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + LONG;
    while !condition() {
        assert!(std::time::Instant::now() < end, "it never came true");
        tokio::task::yield_now().await;
    }
}
