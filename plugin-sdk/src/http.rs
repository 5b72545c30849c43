//! HTTP requests that the operator's grant allows. Requires the feature `http`.
//!
//! ```no_run
//! # use toolbay_plugin::prelude::*;
//! use toolbay_plugin::http;
//!
//! # fn weather() -> Result<String> {
//! let response = http::get("https://api.example.com/weather?city=Paris")
//!     .header("accept", "text/plain")
//!     .send()?
//!     .error_for_status()?;
//! let text = response.text()?;
//! # Ok(text) }
//! ```
//!
//! The grant must list the origin: `http = ["https://api.example.com"]` under `[permissions]`.
//! Redirects are not followed: the response with the redirect is returned.

mod error;
mod request;
mod response;

pub use error::Error;
pub use request::Request;
pub use response::Response;

/// Creates a GET request.
pub fn get(url: &str) -> Request {
    Request::new("GET", url)
}

/// Creates a POST request.
pub fn post(url: &str) -> Request {
    Request::new("POST", url)
}
