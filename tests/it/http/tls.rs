//! TLS of the server itself: protocol versions, renewed certificates, and clients that do not
//! finish their handshake.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version,
};
use serde_json::json;

use super::neighbour;
use crate::support::{DEADLINE, Folder, HttpServer, TinyComponent, ToolbayCommand};

const CONFIG: &str = "[http.tls]\ncertificate = \"tls/cert.pem\"\nkey = \"tls/key.pem\"\n";

fn generate_certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

fn certificate(pair: &CertifiedKey<KeyPair>) -> String {
    pem("CERTIFICATE", pair.cert.der())
}

fn key(pair: &CertifiedKey<KeyPair>) -> String {
    pem("PRIVATE KEY", &pair.signing_key.serialize_der())
}

/// Encodes DER data as PEM.
pub(crate) fn pem(what: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {what}-----\n{}\n-----END {what}-----\n",
        BASE64.encode(der)
    )
}

/// Writes a file in the way of programs that renew certificates: by renaming another file to it.
fn write(path: &Path, text: &str) {
    let staged = path.with_extension("new");
    fs::write(&staged, text).unwrap();
    fs::set_permissions(&staged, Permissions::from_mode(0o600)).unwrap();
    fs::rename(staged, path).unwrap();
}

fn folder() -> (Folder, CertifiedKey<KeyPair>) {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    fs::create_dir(folder.sibling_path("tls")).unwrap();
    let pair = generate_certificate();
    write(&folder.sibling_path("tls/cert.pem"), &certificate(&pair));
    write(&folder.sibling_path("tls/key.pem"), &key(&pair));
    (folder, pair)
}

fn serve(folder: &Folder, config: &str) -> HttpServer {
    let server = HttpServer::start_with_config(folder, config);
    server.log.wait_for("listening on https://127.0.0.1:");
    server
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects as a client that trusts only this certificate and supports these versions.
fn connect(
    server: &HttpServer,
    pair: &CertifiedKey<KeyPair>,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream> {
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, neighbour::connect(server, true));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// Sends the only request of a connection, and returns the status and body of the response.
fn send_request(stream: &mut TlsStream, request: &[u8]) -> String {
    stream.write_all(request).unwrap();
    let mut reply = String::new();
    let mut piece = [0; 4096];
    while !reply.contains("\r\n\r\n") || !reply.ends_with(['}', '\n']) {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{reply}");
        reply.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    reply
}

fn list_request() -> Vec<u8> {
    neighbour::stateless(
        "tools/call",
        json!({"name": "a", "arguments": {"word": "hello"}}),
    )
}

const TLS_VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

#[test]
fn the_server_accepts_tls_1_2_and_1_3_and_no_plaintext() {
    let (folder, pair) = folder();
    let server = serve(&folder, CONFIG);
    for version in TLS_VERSIONS {
        let mut stream = connect(&server, &pair, &[version]).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        // Sends two requests on one connection.
        for _ in 0..2 {
            let reply = send_request(&mut stream, &list_request());
            assert!(
                reply.starts_with("HTTP/1.1 200") && reply.contains("hello"),
                "{reply}"
            );
        }
    }
    connect(&server, &generate_certificate(), &TLS_VERSIONS).unwrap_err();
    // A client without TLS learns why, and nothing else.
    let mut plain = neighbour::connect(&server, true);
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut reply = Vec::new();
    drop(plain.read_to_end(&mut reply));
    let reply = String::from_utf8(reply).unwrap();
    assert!(
        reply.starts_with("HTTP/1.1 400 ")
            && reply.ends_with(
                "\r\n\r\nthis port accepts only TLS: begin the URL with https instead\n"
            ),
        "{reply}"
    );
    // Other bytes are no HTTP.
    let mut other = neighbour::connect(&server, true);
    other.write_all(b"\x05\x01\x00").unwrap();
    let mut reply = Vec::new();
    drop(other.read_to_end(&mut reply));
    assert!(!reply.starts_with(b"HTTP"), "{reply:?}");
}

#[test]
fn a_renewed_certificate_is_loaded_and_a_truncated_one_is_not() {
    let (folder, old) = folder();
    let server = serve(&folder, CONFIG);
    let mut open = connect(&server, &old, &TLS_VERSIONS).unwrap();
    let new = generate_certificate();
    write(&folder.sibling_path("tls/cert.pem"), &certificate(&new));
    let line = server.log.wait_for("the previous certificate stays in use");
    assert!(
        line.contains("tls/key.pem: is not the key of the certificate in "),
        "{line}"
    );
    connect(&server, &old, &TLS_VERSIONS).unwrap();
    write(&folder.sibling_path("tls/key.pem"), &key(&new));
    server
        .log
        .wait_for("new connections get the new certificate");
    connect(&server, &new, &TLS_VERSIONS).unwrap();
    connect(&server, &old, &TLS_VERSIONS).unwrap_err();
    assert!(
        send_request(&mut open, &list_request()).contains("hello"),
        "what was open goes on"
    );
}

#[test]
fn an_unusable_certificate_or_key_stops_the_program_before_it_listens() {
    let (folder, _) = folder();
    folder.write_config(CONFIG);
    let said = || {
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve", "--http", "127.0.0.1:0"])
            .run();
        assert_eq!(outcome.code, 64, "{outcome}");
        outcome
            .stderr
            .replace(&format!("{}/", folder.root().display()), "")
    };
    fs::set_permissions(
        folder.sibling_path("tls/key.pem"),
        Permissions::from_mode(0o644),
    )
    .unwrap();
    assert_eq!(
        said(),
        "toolbay: http.tls: tls/key.pem: is open to other users (mode 0644); make it 0600\n"
    );
    write(
        &folder.sibling_path("tls/key.pem"),
        &key(&generate_certificate()),
    );
    assert_eq!(
        said(),
        "toolbay: http.tls: tls/key.pem: is not the key of the certificate in tls/cert.pem\n"
    );
    fs::remove_file(folder.sibling_path("tls/key.pem")).unwrap();
    assert_eq!(said(), "toolbay: http.tls: tls/key.pem: does not exist\n");
    folder.write_config("[http.tls]\ncertificate = \"tls/cert.pem\"");
    assert_eq!(
        said(),
        "toolbay: toolbay.toml:1:1: http.tls: the key `key` is missing\n"
    );
}

#[test]
fn clients_that_do_not_finish_their_handshake_are_disconnected_after_the_idle_timeout() {
    let (folder, pair) = folder();
    let config = "[http]\nconnections = 4\nidle_timeout = \"500ms\"\n".to_owned() + CONFIG;
    let server = serve(&folder, &config);
    // No bytes, the first byte of a handshake, and the beginning of a long handshake record.
    let beginnings: [&[u8]; 3] = [b"", b"\x16", b"\x16\x03\x01\x3f\xff"];
    let mut strangers: Vec<TcpStream> =
        (0..60).map(|_| neighbour::connect(&server, true)).collect();
    for (stranger, beginning) in strangers.iter_mut().zip(beginnings.iter().cycle()) {
        // The server may have closed the connection already.
        drop(stranger.write_all(beginning));
    }
    // After `http.idle_timeout`, the server closes these connections and accepts others.
    let begun = Instant::now();
    let reply = loop {
        if let Ok(mut stream) = connect(&server, &pair, &TLS_VERSIONS) {
            break send_request(&mut stream, &list_request());
        }
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    };
    assert!(reply.contains("hello"), "{reply}");
    for mut stranger in strangers {
        // Each connection was closed.
        drop(stranger.read_to_end(&mut Vec::new()));
    }
}

#[test]
fn a_handshake_without_an_end_is_refused_before_it_takes_memory() {
    let (folder, pair) = folder();
    let server = serve(&folder, CONFIG);
    let mut stranger = neighbour::connect(&server, true);
    // Records of a handshake message that declares a length of 16 MB.
    let mut record = vec![0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    record.resize(5 + 0x4000, 0);
    let error = loop {
        if let Err(error) = stranger.write_all(&record) {
            break error;
        }
    };
    assert!(!error.to_string().is_empty());
    let mut stream = connect(&server, &pair, &TLS_VERSIONS).unwrap();
    assert!(send_request(&mut stream, &list_request()).contains("hello"));
}
