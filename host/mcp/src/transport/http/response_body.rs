//! Response bodies that hold a reservation until they are sent, and that detect whether the peer is
//! still connected.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolbay_background::QuotaPortion;

/// A comment in an event stream.
const SSE_COMMENT: &[u8] = b":\n\n";

/// A body with a reservation.
struct BodyWithGuard {
    body: Body,
    /// Released when the response is sent or dropped.
    _place: QuotaPortion,
    /// `Some` until the peer has closed its side.
    closing: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl HttpBody for BodyWithGuard {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // A frame of an event stream is a whole event, so a comment can precede it.
        if self
            .closing
            .as_mut()
            .is_some_and(|closing| closing.as_mut().poll(context).is_ready())
        {
            self.closing = None;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(SSE_COMMENT)))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the response with a body that holds `place` until it is sent. In an event stream, a
/// comment is sent when the peer has closed its side: a peer that has closed both sides responds
/// with a reset.
pub(super) fn hold_until_sent(
    response: Response,
    place: QuotaPortion,
    half_closed: &CancellationToken,
) -> Response {
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == mime::TEXT_EVENT_STREAM.as_ref());
    let closing = is_stream.then(|| Box::pin(half_closed.clone().cancelled_owned()));
    response.map(|body| {
        Body::new(BodyWithGuard {
            body,
            _place: place,
            closing,
        })
    })
}
