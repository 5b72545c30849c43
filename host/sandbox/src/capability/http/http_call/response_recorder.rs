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
use toolbay_recording::{BinaryText, HttpAnswer, HttpError, MissingInput};
use wasmtime_wasi_http::{Error, WasiBody};

use super::error_codes::{recordable_error, recorded_error_code};
use crate::capability::effects::{EffectNumber, SideEffects};
use crate::capability::http::pending_requests::{ResponseDriver, SendFuture};
use crate::capability::memory_budget::MemoryReservation;

/// The recorder of a response.
pub(super) struct ResponseRecorder {
    effects: SideEffects,
    number: EffectNumber,
    status: u16,
    fields: Vec<(String, BinaryText)>,
    body: Vec<u8>,
    pieces: Vec<u32>,
}

/// A body that is recorded while it is read.
pub(super) struct RecordedBody<B> {
    body: B,
    /// The recorder, or `None` once the response was recorded or exceeded the space.
    recording: Option<ResponseRecorder>,
}

/// Starts to record a response. Returns `None` if it is not recorded.
pub(super) fn start_recording(
    effects: &SideEffects,
    number: EffectNumber,
    head: &Parts,
) -> Option<ResponseRecorder> {
    if !number.is_recorded() {
        return None;
    }
    let fields = head.headers.iter().map(|(name, value)| {
        (
            name.as_str().to_owned(),
            BinaryText(value.as_bytes().to_vec()),
        )
    });
    let (effects, fields, status) = (effects.clone(), fields.collect(), head.status.as_u16());
    Some(ResponseRecorder {
        effects,
        number,
        status,
        fields,
        body: Vec::new(),
        pieces: Vec::new(),
    })
}

/// Records that there was no response.
pub(super) fn record_failure(effects: &SideEffects, number: EffectNumber, why: HttpError) {
    if number.is_recorded() {
        finish_recording(effects, number, &HttpAnswer::Nothing(why));
    }
}

fn finish_recording(effects: &SideEffects, number: EffectNumber, answer: &HttpAnswer) {
    // If encoding fails, the response counts as too large, and the call can no longer ask a
    // question.
    effects.end(
        number,
        postcard::to_allocvec(answer).unwrap_or_else(|_| vec![0; effects.remaining_bytes() + 1]),
    );
}

/// Returns the recorded response. The body that the guest sends is read to its end, as the server
/// did in the recorded run. `held` is the memory reservation of the response.
pub(super) fn replay_response(
    response: &[u8],
    request: WasiBody,
    held: Option<MemoryReservation>,
) -> SendFuture {
    let answer = postcard::from_bytes(response);
    Box::new(async move {
        let (status, fields, again) = match answer {
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
                    pieces: split_body(body.0.into(), &pieces).into_iter(),
                    end,
                    _held: held,
                },
            ),
            Ok(HttpAnswer::Nothing(why)) => return Err(recorded_error_code(why)),
            Err(_) => {
                return Err(Error::InternalError(Some(
                    "the response was not recorded".to_owned(),
                )));
            }
        };
        let mut response = http::Response::new(again.boxed_unsync());
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
        let taken_in: ResponseDriver = Box::new(async move {
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
    pieces: std::vec::IntoIter<Bytes>,
    /// The error that ended the body, or `None` if the guest had read it to its end.
    end: Option<HttpError>,
    _held: Option<MemoryReservation>,
}

impl Body for ReplayedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match (self.pieces.next(), &self.end) {
            (Some(piece), _) => Some(Ok(Frame::data(piece))),
            (None, None) => None,
            (None, Some(why)) => Some(Err(recorded_error_code(why.clone()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() && self.pieces.as_slice().is_empty()
    }
}

impl<B: Body<Data = Bytes>> RecordedBody<B> {
    pub(super) fn new(body: B, recording: ResponseRecorder) -> Self {
        let mut recorded = Self {
            body,
            recording: Some(recording),
        };
        if recorded.body.is_end_stream() {
            recorded.finish(None);
        }
        recorded
    }
}

impl<B> RecordedBody<B> {
    /// Records the response. `finish_recording` is the error that ended the body, or `None` if it
    /// is complete.
    fn finish(&mut self, end: Option<HttpError>) {
        if let Some(ResponseRecorder {
            effects,
            number,
            status,
            fields,
            body,
            pieces,
        }) = self.recording.take()
        {
            let answer = HttpAnswer::Response {
                status,
                fields,
                body: BinaryText(body),
                pieces,
                end,
            };
            self::finish_recording(&effects, number, &answer);
        }
    }

    /// Adds a chunk to the recording.
    fn add(&mut self, piece: &Bytes) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.body.extend_from_slice(piece);
        recording
            .pieces
            .push(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        let ResponseRecorder {
            effects,
            number,
            body,
            ..
        } = recording;
        if !effects.try_grow(*number, piece.len() + size_of::<u32>(), body.len()) {
            // The response exceeds the space, which was recorded. Stop recording it.
            self.finish(Some(HttpError::HttpResponseIncomplete));
        }
    }
}

/// The guest drops the body before its end.
impl<B> Drop for RecordedBody<B> {
    fn drop(&mut self) {
        self.finish(Some(HttpError::HttpResponseIncomplete));
    }
}

impl<B: Body<Data = Bytes, Error = SendError> + Unpin> Body for RecordedBody<B> {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.add(data);
                } else if let Some(recording) = &self.recording {
                    recording.effects.mark_unsupported(MissingInput::Trailers);
                }
                if self.body.is_end_stream() {
                    self.finish(None);
                }
            }
            // In a replay, the guest receives the same error here.
            Some(Err(error)) => {
                let why = recordable_error(error);
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
    use toolbay_model::{CallJournal, Limits};

    use super::*;
    use crate::capability::effects::EffectStart;
    use crate::capability::memory_budget::MemoryBudget;
    use crate::context::replay_log::{OperationKind, ReplayTape};

    fn effects(past: &[toolbay_model::RecordedEffect]) -> SideEffects {
        let past = CallJournal {
            effects: past.to_vec(),
            ..CallJournal::default()
        };
        SideEffects::new(
            true,
            &past.into(),
            &Limits::DEFAULT,
            MemoryBudget::new(Limits::DEFAULT.memory),
            ReplayTape::default(),
        )
    }

    /// Records a response of whose body the guest reads at most `frames` frames. Returns the
    /// recorded effects.
    async fn recorded(frames: usize) -> Vec<toolbay_model::RecordedEffect> {
        let effects = effects(&[]);
        let Ok(EffectStart::Now(number)) =
            effects.begin(OperationKind::Http, || "POST /".to_owned())
        else {
            panic!()
        };
        let response = http::Response::builder()
            .status(201)
            .header("a", "b")
            .body(())
            .unwrap();
        let recording = start_recording(&effects, number, &response.into_parts().0).unwrap();
        let body =
            Full::new(Bytes::from_static(b"made")).map_err(|never| -> SendError { match never {} });
        let mut body = RecordedBody::new(body, recording);
        assert!(effects.to_journal().is_err(), "nothing of it was read yet");
        for _ in 0..frames {
            body.frame().await;
        }
        drop(body);
        effects.to_journal().unwrap()
    }

    async fn again(
        past: &[toolbay_model::RecordedEffect],
    ) -> (http::Response<()>, Result<Vec<u8>, Error>) {
        let Ok(EffectStart::Before(response)) =
            effects(past).begin(OperationKind::Http, || "POST /".to_owned())
        else {
            panic!()
        };
        let request = Full::new(Bytes::from_static(b"x"))
            .map_err(|never| match never {})
            .boxed_unsync();
        let (response, taken_in) = Box::into_pin(replay_response(&response, request, None))
            .await
            .unwrap();
        Box::into_pin(taken_in).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().to_vec());
        (http::Response::from_parts(parts, ()), body)
    }

    #[tokio::test]
    async fn a_response_is_given_again_as_it_was() {
        let (head, body) = again(&recorded(1).await).await;
        assert_eq!(
            (head.status().as_u16(), head.headers()["a"].as_bytes()),
            (201, &b"b"[..])
        );
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
            split_body(Bytes::from_static(b"abcdef"), pieces)
                .into_iter()
                .map(|piece| piece.len())
                .collect()
        };
        assert_eq!(cut(&[1, 5]), [1, 5]);
        assert_eq!(cut(&[]), [6]);
        assert_eq!(cut(&[2]), [2, 4]);
        assert_eq!(cut(&[0, u32::MAX, 7]), [6]);
    }
}
