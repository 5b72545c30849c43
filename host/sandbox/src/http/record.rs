//! Recording and replay of HTTP responses. A request must not be sent again when a call resumes
//! after a question or is replayed from a recording. Its response is recorded while the guest reads
//! it, and replayed later.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use toolbay_outgoing::SendError;
use toolbay_recording::{Blob, HttpAnswer, HttpError, Missing};
use wasmtime_wasi_http::{Error, WasiBody};

use super::code::{error, named};
use crate::account::Held;
use crate::effects::{Effects, Number};
use crate::exchanges::{Rest, Sending};

/// The recorder of a response.
pub(super) struct Recording {
    effects: Effects,
    number: Number,
    status: u16,
    fields: Vec<(String, Blob)>,
    body: Vec<u8>,
    pieces: Vec<u32>,
}

/// A body that is recorded while it is read.
pub(super) struct Recorded<B> {
    body: B,
    /// The recorder, or `None` once the response was recorded or exceeded the space.
    recording: Option<Recording>,
}

/// Starts to record a response. Returns `None` if it is not recorded.
pub(super) fn head(effects: &Effects, number: Number, head: &Parts) -> Option<Recording> {
    if !number.is_wanted() {
        return None;
    }
    let fields = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), Blob(value.as_bytes().to_vec())));
    let (effects, fields, status) = (effects.clone(), fields.collect(), head.status.as_u16());
    Some(Recording { effects, number, status, fields, body: Vec::new(), pieces: Vec::new() })
}

/// Records that there was no response.
pub(super) fn failure(effects: &Effects, number: Number, why: HttpError) {
    if number.is_wanted() {
        end(effects, number, &HttpAnswer::Nothing(why));
    }
}

fn end(effects: &Effects, number: Number, answer: &HttpAnswer) {
    // If encoding fails, the response counts as too large, and the call can no longer ask a
    // question.
    effects.end(number, postcard::to_allocvec(answer).unwrap_or_else(|_| vec![0; effects.room() + 1]));
}

/// Returns the recorded response. The body that the guest sends is read to its end, as the server
/// did in the recorded run. `held` is the memory reservation of the response.
pub(super) fn repeated(response: &[u8], request: WasiBody, held: Option<Held>) -> Sending {
    let answer = postcard::from_bytes(response);
    Box::new(async move {
        let (status, fields, again) = match answer {
            Ok(HttpAnswer::Response { status, fields, body, pieces, end }) => {
                (status, fields, Again { pieces: cut(body.0.into(), &pieces).into_iter(), end, _held: held })
            }
            Ok(HttpAnswer::Nothing(why)) => return Err(error(why)),
            Err(_) => return Err(Error::InternalError(Some("the response was not recorded".to_owned()))),
        };
        let mut response = http::Response::new(again.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        *response.headers_mut() = fields
            .into_iter()
            .filter_map(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(&value.0).ok()?))
            })
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

/// Splits a body into its recorded chunks, because a guest may observe the chunk boundaries.
fn cut(mut body: Bytes, pieces: &[u32]) -> Vec<Bytes> {
    let mut cut = Vec::with_capacity(pieces.len().min(body.len()) + 1);
    for piece in pieces {
        let length = usize::try_from(*piece).unwrap_or(usize::MAX).min(body.len());
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
struct Again {
    pieces: std::vec::IntoIter<Bytes>,
    /// The error that ended the body, or `None` if the guest had read it to its end.
    end: Option<HttpError>,
    _held: Option<Held>,
}

impl Body for Again {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match (self.pieces.next(), &self.end) {
            (Some(piece), _) => Some(Ok(Frame::data(piece))),
            (None, None) => None,
            (None, Some(why)) => Some(Err(error(why.clone()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() && self.pieces.as_slice().is_empty()
    }
}

impl<B: Body<Data = Bytes>> Recorded<B> {
    pub(super) fn new(body: B, recording: Recording) -> Self {
        let mut recorded = Self { body, recording: Some(recording) };
        if recorded.body.is_end_stream() {
            recorded.finish(None);
        }
        recorded
    }
}

impl<B> Recorded<B> {
    /// Records the response. `end` is the error that ended the body, or `None` if it is complete.
    fn finish(&mut self, end: Option<HttpError>) {
        if let Some(Recording { effects, number, status, fields, body, pieces }) = self.recording.take() {
            let answer = HttpAnswer::Response { status, fields, body: Blob(body), pieces, end };
            self::end(&effects, number, &answer);
        }
    }

    /// Adds a chunk to the recording.
    fn add(&mut self, piece: &Bytes) {
        let Some(recording) = &mut self.recording else { return };
        recording.body.extend_from_slice(piece);
        recording.pieces.push(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        let Recording { effects, number, body, .. } = recording;
        if !effects.grows(*number, piece.len() + size_of::<u32>(), body.len()) {
            // The response exceeds the space, which was recorded. Stop recording it.
            self.finish(Some(HttpError::HttpResponseIncomplete));
        }
    }
}

/// The guest drops the body before its end.
impl<B> Drop for Recorded<B> {
    fn drop(&mut self) {
        self.finish(Some(HttpError::HttpResponseIncomplete));
    }
}

impl<B: Body<Data = Bytes, Error = SendError> + Unpin> Body for Recorded<B> {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.add(data);
                } else if let Some(recording) = &self.recording {
                    recording.effects.lacks(Missing::Trailers);
                }
                if self.body.is_end_stream() {
                    self.finish(None);
                }
            }
            // In a replay, the guest receives the same error here.
            Some(Err(error)) => {
                let why = named(error);
                self.finish(Some(why));
            }
            None => self.finish(None),
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
    use crate::tape::{Kind, Tape};

    fn effects(past: &[toolbay_model::Effect]) -> Effects {
        let past = Journal { effects: past.to_vec(), ..Journal::default() };
        Effects::new(true, &past.into(), &Limits::DEFAULT, Account::new(Limits::DEFAULT.memory), Tape::default())
    }

    /// Records a response of whose body the guest reads at most `frames` frames. Returns the
    /// recorded effects.
    async fn recorded(frames: usize) -> Vec<toolbay_model::Effect> {
        let effects = effects(&[]);
        let Ok(Begun::Now(number)) = effects.begin(Kind::Http, || "POST /".to_owned()) else { panic!() };
        let response = http::Response::builder().status(201).header("a", "b").body(()).unwrap();
        let recording = head(&effects, number, &response.into_parts().0).unwrap();
        let body = Full::new(Bytes::from_static(b"made")).map_err(|never| -> SendError { match never {} });
        let mut body = Recorded::new(body, recording);
        assert!(effects.all().is_err(), "nothing of it was read yet");
        for _ in 0..frames {
            body.frame().await;
        }
        drop(body);
        effects.all().unwrap()
    }

    async fn again(past: &[toolbay_model::Effect]) -> (http::Response<()>, Result<Vec<u8>, Error>) {
        let Ok(Begun::Before(response)) = effects(past).begin(Kind::Http, || "POST /".to_owned()) else { panic!() };
        let request = Full::new(Bytes::from_static(b"x")).map_err(|never| match never {}).boxed_unsync();
        let (response, taken_in) = Box::into_pin(repeated(&response, request, None)).await.unwrap();
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

    #[test]
    fn a_body_comes_in_the_same_pieces_whatever_their_list_says() {
        let cut = |pieces: &[u32]| -> Vec<usize> {
            cut(Bytes::from_static(b"abcdef"), pieces).into_iter().map(|piece| piece.len()).collect()
        };
        assert_eq!(cut(&[1, 5]), [1, 5]);
        assert_eq!(cut(&[]), [6]);
        assert_eq!(cut(&[2]), [2, 4]);
        assert_eq!(cut(&[0, u32::MAX, 7]), [6]);
    }
}
