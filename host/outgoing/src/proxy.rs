//! The operator's HTTP proxy.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use toolbay_policy::{NormalizedHost, UrlOrigin};
use url::Url;

use crate::error::SendError;
use crate::header_fields::MAX_HTTP_HEAD_BYTES;

/// The proxy for all requests.
#[derive(Clone, Debug)]
pub(crate) struct ProxySettings {
    pub(crate) host: NormalizedHost,
    pub(crate) port: u16,
    /// The credentials of the operator's URL, as a header value.
    pub(crate) authorization: Option<HeaderValue>,
}

impl ProxySettings {
    /// Parses the URL of a proxy. Error messages omit the URL, because it can contain a password.
    pub(crate) fn parse(url: &Url) -> Result<Self, String> {
        let expected = |what: &str| {
            format!("the proxy {what}; expected a URL such as http://proxy.example.com:3128")
        };
        if url.scheme() != "http" {
            return Err(expected("must have the scheme http"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(expected("must have no path, query or fragment"));
        }
        let host = url.host_str().ok_or_else(|| expected("has no host"))?;
        let host = NormalizedHost::parse(host)
            .map_err(|malformed| expected(&format!("has a host that {malformed}")))?;
        let port = url
            .port_or_known_default()
            .filter(|port| *port > 0)
            .ok_or_else(|| expected("has no port"))?;
        let authorization = if url.username().is_empty() && url.password().is_none() {
            None
        } else {
            let user = percent_decode_str(url.username());
            let password = percent_decode_str(url.password().unwrap_or_default());
            let pair: Vec<u8> = user.chain(*b":").chain(password).collect();
            let mut value =
                HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair)))
                    .map_err(|_| expected("has unusable credentials"))?;
            value.set_sensitive(true);
            Some(value)
        };
        Ok(Self {
            host,
            port,
            authorization,
        })
    }

    /// Creates a tunnel to the origin over a connection to the proxy.
    pub(crate) async fn tunnel(
        &self,
        stream: TcpStream,
        origin: &UrlOrigin,
    ) -> Result<TcpStream, SendError> {
        let none = || SendError::Proxy(0);
        let authority = format!("{}:{}", origin.host, origin.port);
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = Uri::try_from(authority.as_str()).map_err(|_| none())?;
        request.headers_mut().insert(
            header::HOST,
            HeaderValue::from_str(&authority).map_err(|_| none())?,
        );
        if let Some(authorization) = &self.authorization {
            request
                .headers_mut()
                .insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HTTP_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| none())?;
        let upgraded = async {
            let response = sender.send_request(request).await.map_err(|_| none())?;
            match response.status() {
                StatusCode::OK => hyper::upgrade::on(response).await.map_err(|_| none()),
                status => Err(SendError::Proxy(status.as_u16())),
            }
        };
        let connection = async {
            // The request reports errors of the connection.
            let _error = connection.with_upgrades().await;
            std::future::pending::<()>().await;
        };
        let upgraded = tokio::select! {
            upgraded = upgraded => upgraded?,
            () = connection => return Err(none()),
        };
        let parts = upgraded
            .downcast::<TokioIo<TcpStream>>()
            .map_err(|_| none())?;
        // A TLS server sends nothing before the client does, so any bytes here would come from the
        // proxy.
        if parts.read_buf.is_empty() {
            Ok(parts.io.into_inner())
        } else {
            Err(none())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProxySettings;

    fn parse(url: &str) -> Result<ProxySettings, String> {
        ProxySettings::parse(&url.parse().unwrap())
    }

    #[test]
    fn credentials_are_decoded_and_hidden() {
        let proxy = parse("http://user%40corp:p%3Ass@proxy.example:3128").unwrap();
        assert_eq!(
            (proxy.host.to_string(), proxy.port),
            ("proxy.example".to_owned(), 3128)
        );
        // `user@corp:p:ss` in Base64.
        assert_eq!(
            proxy.authorization.clone().unwrap(),
            "Basic dXNlckBjb3JwOnA6c3M="
        );
        assert!(!format!("{proxy:?}").contains("dXNl"));
        assert_eq!(parse("http://[fd00::1]").unwrap().port, 80);
        assert!(
            parse("http://proxy.example")
                .unwrap()
                .authorization
                .is_none()
        );
    }

    #[test]
    fn a_mistake_is_named_without_the_password() {
        let expected = "; expected a URL such as http://proxy.example.com:3128";
        for (url, message) in [
            (
                "https://user:secret@proxy.example",
                "the proxy must have the scheme http",
            ),
            (
                "socks5://user:secret@proxy.example",
                "the proxy must have the scheme http",
            ),
            (
                "http://user:secret@proxy.example/path",
                "the proxy must have no path, query or fragment",
            ),
            (
                "http://user:secret@proxy.example?query",
                "the proxy must have no path, query or fragment",
            ),
            (
                "http://user:secret@a..b",
                "the proxy has a host that has an empty label: a dot at the beginning, or two \
              dots in a row",
            ),
        ] {
            assert_eq!(
                parse(url).unwrap_err(),
                format!("{message}{expected}"),
                "{url}"
            );
        }
    }
}
