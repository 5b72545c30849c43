//! Responses to requests that must not be sent again after the call asked: recorded while the guest reads them, and given
//! to it again.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};
use toolbay_outgoing::SendError;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::effects::{Effects, Number};
use crate::exchanges::{Rest, Sending};

/// What came of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
enum Came {
    /// A response: its status, its fields, and its body as far as the guest read it.
    Response { status: u16, fields: Vec<(String, Vec<u8>)>, body: Vec<u8>, whole: bool },
    /// No response, for this reason.
    Nothing(String),
}

/// A response that is being recorded.
pub(super) struct Recording {
    effects: Effects,
    number: Number,
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// A body that is recorded while it is read.
pub(super) struct Recorded<B> {
    body: B,
    /// `None` once it was recorded, or did not fit.
    recording: Option<Recording>,
}

/// Begins to record a response; `None` if nobody wants that.
pub(super) fn head(effects: &Effects, number: Number, head: &Parts) -> Option<Recording> {
    if !number.is_wanted() {
        return None;
    }
    let fields = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    let (effects, fields) = (effects.clone(), fields.collect());
    Some(Recording { effects, number, status: head.status.as_u16(), fields, body: Vec::new() })
}

/// Records that there was no response.
pub(super) fn failure(effects: &Effects, number: Number, error: &SendError) {
    if number.is_wanted() {
        end(effects, number, &Came::Nothing(error.to_string()));
    }
}

fn end(effects: &Effects, number: Number, came: &Came) {
    // What cannot be written is as large as one that does not fit: the call cannot ask.
    effects.end(number, postcard::to_allocvec(came).unwrap_or_else(|_| vec![0; effects.room() + 1]));
}

/// The response of the first time. What the guest sends this time is taken in, as the server took it in then.
pub(super) fn repeated(response: &[u8], request: WasiBody) -> Sending {
    let came = postcard::from_bytes(response);
    Box::new(async move {
        let (status, fields, again) = match came {
            Ok(Came::Response { status, fields, body, whole }) => {
                (status, fields, Again { body: Some(Bytes::from(body)).filter(|body| !body.is_empty()), whole })
            }
            Ok(Came::Nothing(why)) => return Err(Error::InternalError(Some(why))),
            Err(_) => return Err(Error::InternalError(Some("the response was not recorded".to_owned()))),
        };
        let mut response = http::Response::new(again.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        *response.headers_mut() = fields
            .into_iter()
            .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(&value).ok()?)))
            .collect::<HeaderMap>();
        let taken_in: Rest = Box::new(async move {
            let mut request = request;
            while let Some(frame) = request.frame().await {
                frame?;
            }
            Ok(())
        });
        Ok((response, taken_in))
    })
}

/// A body that was recorded.
struct Again {
    body: Option<Bytes>,
    /// Whether the guest had read it to its end.
    whole: bool,
}

impl Body for Again {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match self.body.take() {
            Some(body) => Some(Ok(Frame::data(body))),
            None if self.whole => None,
            None => Some(Err(Error::HttpResponseIncomplete)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.whole && self.body.is_none()
    }
}

impl<B: Body<Data = Bytes>> Recorded<B> {
    pub(super) fn new(body: B, recording: Recording) -> Self {
        let mut recorded = Self { body, recording: Some(recording) };
        if recorded.body.is_end_stream() {
            recorded.finish(true);
        }
        recorded
    }
}

impl<B> Recorded<B> {
    fn finish(&mut self, whole: bool) {
        if let Some(Recording { effects, number, status, fields, body }) = self.recording.take() {
            end(&effects, number, &Came::Response { status, fields, body, whole });
        }
    }
}

/// The guest wants no more of it.
impl<B> Drop for Recorded<B> {
    fn drop(&mut self) {
        self.finish(false);
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Recorded<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(recording), Some(data)) = (&mut self.recording, frame.data_ref()) {
                    recording.body.extend_from_slice(data);
                    if recording.body.len() > recording.effects.room() {
                        // It does not fit, which is noted; no more of it is kept.
                        self.finish(false);
                    }
                }
                if self.body.is_end_stream() {
                    self.finish(true);
                }
            }
            // The next time, the guest sees an error here as well.
            Some(Err(_)) => self.finish(false),
            None => self.finish(true),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use toolbay_model::{Journal, Limits};

    use super::*;
    use crate::account::Account;
    use crate::effects::Begun;

    fn effects(past: &[toolbay_model::Effect]) -> Effects {
        let past = Journal { effects: past.to_vec(), ..Journal::default() };
        Effects::new(true, &past.into(), &Limits::DEFAULT, Account::new(Limits::DEFAULT.memory))
    }

    /// Records a response whose body is read up to so many frames. Returns what is remembered.
    async fn recorded(frames: usize) -> Vec<toolbay_model::Effect> {
        let effects = effects(&[]);
        let Ok(Begun::Now(number)) = effects.begin(|| "POST /".to_owned()) else { panic!() };
        let response = http::Response::builder().status(201).header("a", "b").body(()).unwrap();
        let recording = head(&effects, number, &response.into_parts().0).unwrap();
        let mut body = Recorded::new(Full::new(Bytes::from_static(b"made")), recording);
        assert!(effects.all().is_err(), "nothing of it was read yet");
        for _ in 0..frames {
            body.frame().await;
        }
        drop(body);
        effects.all().unwrap()
    }

    async fn again(past: &[toolbay_model::Effect]) -> (http::Response<()>, Result<Vec<u8>, Error>) {
        let Ok(Begun::Before(response)) = effects(past).begin(|| "POST /".to_owned()) else { panic!() };
        let request = Full::new(Bytes::from_static(b"x")).map_err(|never| match never {}).boxed_unsync();
        let (response, taken_in) = Box::into_pin(repeated(&response, request)).await.unwrap();
        Box::into_pin(taken_in).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().to_vec());
        (http::Response::from_parts(parts, ()), body)
    }

    #[tokio::test]
    async fn a_response_is_given_again_as_it_was() {
        let (head, body) = again(&recorded(1).await).await;
        assert_eq!((head.status().as_u16(), head.headers()["a"].as_bytes()), (201, &b"b"[..]));
        assert_eq!(body.unwrap(), b"made");
    }

    #[tokio::test]
    async fn what_the_guest_did_not_read_is_not_there_the_next_time() {
        let (head, body) = again(&recorded(0).await).await;
        assert_eq!(head.status().as_u16(), 201);
        assert!(matches!(body, Err(Error::HttpResponseIncomplete)));
    }
}
