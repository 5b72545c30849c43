//! A component for WASI 0.3: async functions that use it, and misuse it, as a test asks for.

#![allow(clippy::unwrap_used, reason = "what it does is what a test expects")]

#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "guest", generate_all });
    export!(Wasi3 with_types_in self);
    pub(crate) struct Wasi3;
}

use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::task::{Context, Waker};

use bindings::wasi::cli::{environment, exit, stderr, stdin, stdout, terminal_stdout};
use bindings::wasi::clocks::{monotonic_clock, system_clock};
use bindings::wasi::filesystem::preopens;
use bindings::wasi::http::client;
use bindings::wasi::http::types::{Fields, Method, Request, Response, Scheme};
use bindings::wasi::random::random;
use bindings::wasi::sockets::ip_name_lookup;
use bindings::wasi::sockets::types::{
    IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, TcpSocket, UdpSocket,
};
use bindings::{Guest, Wasi3, wit_future, wit_stream};
use futures_util::future::{join, join_all};
use wit_bindgen::{FutureReader, StreamReader, StreamResult, StreamWriter};

const HOUR: u64 = 3_600_000_000_000;

impl Guest for Wasi3 {
    fn look() -> String {
        let variables = environment::get_environment();
        let (mark, instant) = (monotonic_clock::now(), system_clock::now());
        let terminal = terminal_stdout::get_terminal_stdout().is_some();
        let folders = preopens::get_directories().len();
        format!(
            "{variables:?} {mark} {} {} {terminal} {folders}",
            instant.seconds,
            random::get_random_u64()
        )
    }

    async fn wait(nanoseconds: u64) -> u64 {
        let before = monotonic_clock::now();
        monotonic_clock::wait_for(nanoseconds).await;
        monotonic_clock::wait_until(before).await;
        monotonic_clock::now() - before
    }

    async fn waits(count: u32) -> u32 {
        join_all((0..count).map(|_| monotonic_clock::wait_for(HOUR))).await;
        count
    }

    async fn forget(count: u32) -> u32 {
        for _ in 0..count {
            let mut waiting = pin!(monotonic_clock::wait_for(HOUR));
            let _pending = waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
        }
        count
    }

    async fn print(text: String, times: u32, error: bool) -> u32 {
        let (mut writer, reader) = wit_stream::new();
        let ended = if error {
            stderr::write_via_stream(reader)
        } else {
            stdout::write_via_stream(reader)
        };
        let mut printed = 0;
        while printed < times && writer.write_all(text.clone().into_bytes()).await.is_empty() {
            printed += 1;
        }
        drop(writer);
        ended.await.unwrap();
        printed
    }

    async fn hear() -> String {
        let (stream, ended) = stdin::read_via_stream();
        let heard = stream.collect().await;
        ended.await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    }

    async fn inputs(count: u32) -> u32 {
        let streams: Vec<_> = (0..count).map(|_| stdin::read_via_stream()).collect();
        monotonic_clock::wait_for(1).await;
        u32::try_from(streams.len()).unwrap()
    }

    async fn outputs(count: u32) -> u32 {
        let mut kept = Vec::new();
        for _ in 0..count {
            let (mut writer, reader) = wit_stream::new();
            let ended = stdout::write_via_stream(reader);
            writer.write_all(vec![b'.']).await;
            kept.push((writer, ended));
        }
        u32::try_from(kept.len()).unwrap()
    }

    fn random(count: u64) -> u64 {
        random::get_random_bytes(count).len() as u64
    }

    fn leave(code: u8) {
        exit::exit_with_code(code);
    }

    async fn request(
        method: String,
        address: String,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Result<String, String> {
        let request = made(&address, &headers, Some(body.into_bytes()))?;
        let method = if method == "GET" {
            Method::Get
        } else {
            Method::Other(method)
        };
        request
            .message
            .set_method(&method)
            .map_err(|()| "the method was refused")?;
        let response = request.send().await?;
        let status = response.get_status_code();
        Ok(format!("{status} {}", text(response).await?))
    }

    async fn upload(address: String, kibibytes: u32) -> Result<String, String> {
        let (mut writer, reader) = wit_stream::new();
        let (message, sent) = message(&address, &[], Some(reader))?;
        message
            .set_method(&Method::Post)
            .map_err(|()| "the method was refused")?;
        let writing = async move {
            for n in 0..kibibytes {
                if !writer.write_all(vec![b'x'; 1024]).await.is_empty() {
                    return n;
                }
            }
            kibibytes
        };
        let (response, written) = join(client::send(message), writing).await;
        let response = response.map_err(|error| format!("{error:?} after {written}"))?;
        let status = response.get_status_code();
        sent.await.map_err(|error| format!("{error:?}"))?;
        Ok(format!("{status} {written} {}", text(response).await?))
    }

    async fn requests(address: String, count: u32) -> String {
        let sending = (0..count).map(|_| async { made(&address, &[], None)?.send().await });
        let became = join_all(sending).await;
        let status = |response: &Response| response.get_status_code().to_string();
        became.last().map_or_else(String::new, |last| match last {
            Ok(response) => status(response),
            Err(error) => error.clone(),
        })
    }

    async fn nibble(address: String, count: u32) -> Result<u32, String> {
        for _ in 0..count {
            let response = made(&address, &[], None)?.send().await?;
            let (mut stream, _ended) = body(response);
            let (_, _first) = stream.read(Vec::with_capacity(1)).await;
        }
        Ok(count)
    }

    async fn forward(source: String, target: String) -> Result<String, String> {
        let response = made(&source, &[], None)?.send().await?;
        let (stream, _ended) = body(response);
        let (message, _sent) = message(&target, &[], Some(stream))?;
        message
            .set_method(&Method::Post)
            .map_err(|()| "the method was refused")?;
        let response = client::send(message)
            .await
            .map_err(|error| format!("{error:?}"))?;
        text(response).await
    }

    async fn hoard(count: u32) -> u32 {
        let made: Result<Vec<_>, _> = (0..count)
            .map(|_| message("http://a.example/", &[], None))
            .collect();
        u32::try_from(made.unwrap().len()).unwrap()
    }

    fn fields(count: u32, bytes: u32) -> Result<u32, String> {
        let mut kept = Vec::new();
        for _ in 0..count {
            let fields = Fields::new();
            let value = vec![b'x'; bytes as usize];
            fields
                .append("a", &value)
                .map_err(|error| format!("{error:?}"))?;
            kept.push(fields);
        }
        Ok(u32::try_from(kept.len()).unwrap())
    }

    async fn orphan() -> u32 {
        let (mut writer, reader) = wit_stream::new();
        let _request = message("http://a.example/", &[], Some(reader));
        writer.write_all(vec![0; 1024]).await;
        0
    }

    async fn resolve(name: String) -> Result<Vec<String>, String> {
        let addresses = ip_name_lookup::resolve_addresses(name)
            .await
            .map_err(|error| format!("{error:?}"))?;
        Ok(addresses
            .iter()
            .map(|address| format!("{address:?}"))
            .collect())
    }

    async fn talk(address: String, port: u16, text: String) -> Result<String, String> {
        let socket = connected(&address, port).await?;
        let (mut writer, reader) = wit_stream::new();
        let sent = socket.send(reader);
        let (stream, received) = socket.receive();
        drop(socket);
        writer.write_all(text.into_bytes()).await;
        drop(writer);
        sent.await.map_err(|error| format!("{error:?}"))?;
        let heard = stream.collect().await;
        received.await.map_err(|error| format!("{error:?}"))?;
        Ok(String::from_utf8_lossy(&heard).into_owned())
    }

    async fn dial(address: String, port: u16, count: u32) -> Result<u32, String> {
        for _ in 0..count {
            let socket = connected(&address, port).await?;
            let _streams = socket.receive();
        }
        Ok(count)
    }

    async fn keep(address: String, port: u16, count: u32) -> Result<u32, String> {
        let mut kept = Vec::new();
        for n in 0..count {
            match connected(&address, port).await {
                Ok(socket) => kept.push(socket.receive()),
                Err(error) => return Err(format!("{n}: {error}")),
            }
        }
        Ok(count)
    }

    async fn pour(address: String, port: u16) -> Result<u64, String> {
        let socket = connected(&address, port).await?;
        let (mut writer, reader) = wit_stream::new();
        let _sent = socket.send(reader);
        let mut poured = 0;
        while writer.write_all(vec![0; 16 << 10]).await.is_empty() {
            poured += 16 << 10;
        }
        Ok(poured)
    }

    async fn relay(address: String, port: u16, target: u16) -> Result<u32, String> {
        let (source, target) = (
            connected(&address, port).await?,
            connected(&address, target).await?,
        );
        let (stream, _received) = source.receive();
        target
            .send(stream)
            .await
            .map_err(|error| format!("{error:?}"))?;
        Ok(0)
    }

    fn closed() -> String {
        let udp = UdpSocket::create(IpAddressFamily::Ipv4).map(drop);
        let socket = TcpSocket::create(IpAddressFamily::Ipv4).unwrap();
        let listening = socket.listen().map(drop);
        let here = IpSocketAddress::Ipv4(Ipv4SocketAddress {
            port: 8080,
            address: (127, 0, 0, 1),
        });
        format!("{udp:?} {listening:?} {:?}", socket.bind(here))
    }

    fn options() -> Result<String, String> {
        options().map_err(|error| format!("{error:?}"))
    }
}

fn options() -> Result<String, bindings::wasi::sockets::types::ErrorCode> {
    let socket = TcpSocket::create(IpAddressFamily::Ipv6)?;
    socket.set_keep_alive_enabled(true)?;
    socket.set_keep_alive_idle_time(7_000_000_000)?;
    socket.set_keep_alive_interval(1)?;
    socket.set_keep_alive_count(3)?;
    socket.set_hop_limit(9)?;
    socket.set_receive_buffer_size(1 << 40)?;
    socket.set_send_buffer_size(8192)?;
    socket.set_listen_backlog_size(5)?;
    let zero = socket.set_hop_limit(0);
    Ok(format!(
        "{} {} {} {} {} {} {} {:?} {} {zero:?} {:?} {:?}",
        socket.get_keep_alive_enabled()?,
        socket.get_keep_alive_idle_time()?,
        socket.get_keep_alive_interval()?,
        socket.get_keep_alive_count()?,
        socket.get_hop_limit()?,
        socket.get_receive_buffer_size()?,
        socket.get_send_buffer_size()?,
        socket.get_address_family(),
        socket.get_is_listening(),
        socket.get_local_address(),
        socket.get_remote_address(),
    ))
}

/// A request that can be sent, and its body.
struct Made {
    message: Request,
    body: Option<(StreamWriter<u8>, Vec<u8>)>,
}

fn made(
    address: &str,
    headers: &[(String, String)],
    body: Option<Vec<u8>>,
) -> Result<Made, String> {
    let body = body
        .filter(|body| !body.is_empty())
        .map(|body| (wit_stream::new(), body));
    let (body, reader) = match body {
        Some(((writer, reader), body)) => (Some((writer, body)), Some(reader)),
        None => (None, None),
    };
    let (message, _sent) = message(address, headers, reader)?;
    Ok(Made { message, body })
}

type Sent = FutureReader<Result<(), bindings::wasi::http::types::ErrorCode>>;

fn message(
    address: &str,
    headers: &[(String, String)],
    body: Option<StreamReader<u8>>,
) -> Result<(Request, Sent), String> {
    let fields = Fields::new();
    for (name, value) in headers {
        fields
            .append(name, value.as_bytes())
            .map_err(|error| format!("{error:?}"))?;
    }
    let (_, end) = wit_future::new(|| Ok(None));
    let (message, sent) = Request::new(fields, body, end, None);
    let (scheme, rest) = address.split_once("://").ok_or("no address")?;
    let scheme = if scheme == "http" {
        Scheme::Http
    } else {
        Scheme::Https
    };
    let (authority, path) = rest.split_once('/').ok_or("no path")?;
    message
        .set_scheme(Some(&scheme))
        .map_err(|()| "the scheme was refused")?;
    message
        .set_authority(Some(authority))
        .map_err(|()| "the authority was refused")?;
    message
        .set_path_with_query(Some(&format!("/{path}")))
        .map_err(|()| "the path was refused")?;
    Ok((message, sent))
}

impl Made {
    async fn send(self) -> Result<Response, String> {
        let writing = async {
            if let Some((mut writer, body)) = self.body {
                writer.write_all(body).await;
            }
        };
        let (response, ()) = join(client::send(self.message), writing).await;
        response.map_err(|error| format!("{error:?}"))
    }
}

type Ended = FutureReader<
    Result<Option<bindings::wasi::http::types::Trailers>, bindings::wasi::http::types::ErrorCode>,
>;

fn body(response: Response) -> (StreamReader<u8>, Ended) {
    let (_, verdict) = wit_future::new(|| Ok(()));
    Response::consume_body(response, verdict)
}

/// The body of a response.
async fn text(response: Response) -> Result<String, String> {
    let (mut stream, ended) = body(response);
    let mut all = Vec::new();
    loop {
        let (result, piece) = stream.read(Vec::with_capacity(8192)).await;
        all.extend(piece);
        if !matches!(result, StreamResult::Complete(_)) {
            break;
        }
    }
    ended.await.map_err(|error| format!("{error:?}"))?;
    Ok(String::from_utf8_lossy(&all).into_owned())
}

async fn connected(address: &str, port: u16) -> Result<TcpSocket, String> {
    let [a, b, c, d] = address
        .parse::<Ipv4Addr>()
        .map_err(|error| error.to_string())?
        .octets();
    let socket = TcpSocket::create(IpAddressFamily::Ipv4).map_err(|error| format!("{error:?}"))?;
    let remote = IpSocketAddress::Ipv4(Ipv4SocketAddress {
        port,
        address: (a, b, c, d),
    });
    socket
        .connect(remote)
        .await
        .map_err(|error| format!("{error:?}"))?;
    Ok(socket)
}
