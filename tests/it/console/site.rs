//! A server and a browser that has opened its console. It sends what a browser sends, unless a test
//! overrides that.

use std::time::Instant;

use super::DEADLINE;
use crate::support::{HttpResponse, HttpServer};

/// An open console.
pub(crate) struct Site {
    pub(crate) server: HttpServer,
    /// The cookie, as a browser sends it.
    pub(crate) cookie: String,
    /// The token of the console's forms.
    pub(crate) csrf: String,
}

impl Site {
    /// Opens the console with the address in the log.
    pub(crate) fn open(server: HttpServer) -> Self {
        let token = logged_token(&server, 1);
        Self::enter(server, &token)
    }

    /// Opens the console with a token.
    pub(crate) fn enter(server: HttpServer, token: &str) -> Self {
        let cookie = cookie(&enter(&server, token)).unwrap();
        let page = server.get("/console", &[("Cookie", &cookie)]).text();
        let csrf = hidden_field(&page, "csrf");
        Self {
            server,
            cookie,
            csrf,
        }
    }

    /// Returns a page.
    pub(crate) fn page(&self, path: &str) -> String {
        let got = self
            .server
            .get(&format!("/console{path}"), &[("Cookie", &self.cookie)]);
        assert_eq!(got.status, 200, "{path}");
        got.text()
    }

    /// Reads a page until it is `wanted`.
    pub(crate) fn until(&self, path: &str, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let page = self.page(path);
            if wanted(&page) {
                return page;
            }
            assert!(begun.elapsed() < DEADLINE, "{page}");
        }
    }

    /// Sends a form of the console.
    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> HttpResponse {
        let form = [&[("csrf", self.csrf.as_str())][..], form].concat();
        post(
            &self.server,
            &format!("/console{path}"),
            &[("Cookie", &self.cookie)],
            &encode_form(&form),
        )
    }

    /// Returns the origin of the console's pages.
    pub(crate) fn origin(&self) -> String {
        origin(&self.server)
    }
}

pub(crate) fn origin(server: &HttpServer) -> String {
    format!("http://{}", server.address)
}

/// Sends a form as a page of the console does.
pub(crate) fn post(
    server: &HttpServer,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpResponse {
    let origin = origin(server);
    let usual = [
        ("Origin", origin.as_str()),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let own = |name: &str| {
        headers
            .iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
    };
    let usual = usual.into_iter().filter(|(name, _)| !own(name));
    let all: Vec<(&str, &str)> = usual.chain(headers.iter().copied()).collect();
    server.request("POST", path, &all, body.as_bytes())
}

/// Sends the login form with a token.
pub(crate) fn enter(server: &HttpServer, token: &str) -> HttpResponse {
    post(
        server,
        "/console/login",
        &[],
        &encode_form(&[("token", token)]),
    )
}

/// Returns the cookie that a response sets, as a browser sends it.
pub(crate) fn cookie(response: &HttpResponse) -> Option<String> {
    Some(response.header("set-cookie")?.split(';').next()?.to_owned())
}

/// Returns the token in the `count`-th address that was logged.
pub(crate) fn logged_token(server: &HttpServer, count: usize) -> String {
    let line = server.log.wait_for_count("/console/login#", count);
    line.rsplit('#').next().unwrap().trim().to_owned()
}

/// Returns the value of a hidden field.
pub(crate) fn hidden_field(page: &str, name: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Encodes a form.
pub(crate) fn encode_form(form: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    form.iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect::<Vec<_>>()
        .join("&")
}
