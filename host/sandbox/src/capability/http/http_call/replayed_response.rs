//! Replay of HTTP responses: a request must not be sent again when a call resumes after a question
//! or is replayed from a recording.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use toolbay_model::ByteReservation;
use toolbay_recording::{HttpAnswer, HttpError};
use wasmtime_wasi_http::{Error, WasiBody};

use super::error_codes::recorded_error_code;
use crate::capability::http::pending_requests::{ResponseDriver, SendFuture};

/// Returns the recorded response. The body that the guest sends is read to its end, as the server
/// did in the recorded run. `held` is the memory reservation of the response.
pub(super) fn replay_response(
    response: &[u8],
    request: WasiBody,
    held: Option<ByteReservation>,
) -> SendFuture {
    let answer = postcard::from_bytes(response);
    Box::new(async move {
        let (status, fields, body) = match answer {
            Ok(HttpAnswer::Response {
                status,
                fields,
                body,
                pieces,
                end,
            }) => (
                status,
                fields,
                ReplayedBody {
                    chunks: split_body(body.0.into(), &pieces).into_iter(),
                    end,
                    _held: held,
                },
            ),
            Ok(HttpAnswer::Failed(why)) => return Err(recorded_error_code(why)),
            Err(_) => {
                return Err(Error::InternalError(Some(
                    "the response was not recorded".to_owned(),
                )));
            }
        };
        let mut response = http::Response::new(body.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        *response.headers_mut() = fields
            .into_iter()
            .filter_map(|(name, value)| {
                Some((
                    HeaderName::try_from(name).ok()?,
                    HeaderValue::from_bytes(&value.0).ok()?,
                ))
            })
            .collect::<HeaderMap>();
        let request_drain: ResponseDriver = Box::new(async move {
            let mut request = request;
            while let Some(frame) = request.frame().await {
                frame?;
            }
            Ok(())
        });
        Ok((response, request_drain))
    })
}

/// Splits a body into its recorded chunks, because a guest may observe the chunk boundaries.
fn split_body(mut body: Bytes, pieces: &[u32]) -> Vec<Bytes> {
    let mut cut = Vec::with_capacity(pieces.len().min(body.len()) + 1);
    for piece in pieces {
        let length = usize::try_from(*piece)
            .unwrap_or(usize::MAX)
            .min(body.len());
        if length > 0 {
            cut.push(body.split_to(length));
        }
    }
    if !body.is_empty() {
        cut.push(body);
    }
    cut
}

/// A replayed body.
struct ReplayedBody {
    chunks: std::vec::IntoIter<Bytes>,
    /// The error that ended the body, or `None` if the guest had read it to its end.
    end: Option<HttpError>,
    _held: Option<ByteReservation>,
}

impl Body for ReplayedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match (self.chunks.next(), &self.end) {
            (Some(piece), _) => Some(Ok(Frame::data(piece))),
            (None, None) => None,
            (None, Some(why)) => Some(Err(recorded_error_code(why.clone()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() && self.chunks.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests;
