//! Downloads blobs: counted and hashed as they arrive, and continued if the connection ends.

use http::header::{CONTENT_RANGE, RANGE};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};
use toolbay_model::Digest;
use toolbay_outgoing::ResponseBody;

use crate::protected_repository::RepositoryAccess;
use crate::registry_client::{RegistryClient, RegistryPlugin, RepositoryTarget};
use crate::registry_error::RegistryError;
use crate::transport::OutgoingRequest;

/// Maximum number of times that a download is attempted.
const MAX_ATTEMPTS: u32 = 5;

/// The part of a blob that has arrived, and the digest of it.
#[derive(Default)]
struct ReceivedBytes {
    bytes: Vec<u8>,
    hasher: Sha256,
}

impl RegistryClient {
    /// Downloads a plugin of at most `limit` bytes: an archive, or a component. `progress` is called
    /// with the bytes that have arrived and those that the manifest states.
    ///
    /// # Errors
    ///
    /// The plugin is too large or has another digest or size than the manifest states, or the
    /// registry does not deliver it.
    pub async fn download(
        &self,
        plugin: &RegistryPlugin,
        limit: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u8>, RegistryError> {
        let what = plugin.reference.to_string();
        let (declared, expected) = (plugin.blob.size, plugin.blob.digest);
        if declared > limit {
            return Err(RegistryError::TooLarge {
                what,
                size: format!("{declared} bytes"),
                limit,
            });
        }
        let target = RepositoryTarget::new(&plugin.reference, RepositoryAccess::Read)?;
        let url = target.url(&format!("blobs/sha256:{expected}"))?;
        let deadline = Instant::now() + self.timeouts.transfer;
        let mut received = ReceivedBytes::default();
        for attempt in 1.. {
            let begin = received.len();
            let mut request = OutgoingRequest::new(Method::GET, url.clone(), declared, deadline);
            if begin > 0 {
                request = request.with(RANGE, format!("bytes={begin}-"));
            }
            let accepted = [StatusCode::OK, StatusCode::PARTIAL_CONTENT];
            let sent = self.send(&target, request, &what, &accepted).await;
            let error = match sent {
                Ok((response, host)) => {
                    match received.receive(response, declared, progress).await {
                        Ok(()) => break,
                        Err(ReceiveError::TooLong) => {
                            return Err(RegistryError::WrongSize { what, declared });
                        }
                        Err(ReceiveError::Range) => {
                            return Err(RegistryError::InvalidAnswer {
                                host,
                                why: "it continues the download at another place".to_owned(),
                            });
                        }
                        Err(ReceiveError::Interrupted(why)) => why,
                    }
                }
                // Only a download that has begun is continued.
                Err(RegistryError::Connection { reason, .. }) if begin > 0 => reason.to_string(),
                Err(error) => return Err(error),
            };
            if attempt >= MAX_ATTEMPTS || Instant::now() >= deadline {
                return Err(RegistryError::Interrupted {
                    what,
                    attempts: attempt,
                    received: received.len(),
                    reason: error,
                });
            }
            sleep(self.retry_pause(attempt)).await;
        }
        let digest = Digest::new(received.hasher.finalize().into());
        if digest != expected {
            return Err(RegistryError::WrongDigest {
                what,
                expected,
                received: digest,
            });
        }
        Ok(received.bytes)
    }
}

/// The reason why a response did not complete a blob.
enum ReceiveError {
    /// It has more bytes than declared.
    TooLong,
    /// It is another part than the one that was asked for.
    Range,
    /// The connection ended, or the body was complete too early.
    Interrupted(String),
}

impl ReceivedBytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Adds the body of a response. Begins anew if the server sends the whole blob again.
    async fn receive(
        &mut self,
        response: Response<ResponseBody>,
        declared: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ReceiveError> {
        if response.status() == StatusCode::OK {
            *self = Self::default();
        } else if range_begin(response.headers()) != Some(self.len()) {
            return Err(ReceiveError::Range);
        }
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| ReceiveError::Interrupted(why.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if self.len() + data.len() as u64 > declared {
                return Err(ReceiveError::TooLong);
            }
            self.hasher.update(&data);
            self.bytes.extend_from_slice(&data);
            progress(self.len(), declared);
        }
        if self.len() < declared {
            let why = "the response ended early".to_owned();
            return Err(ReceiveError::Interrupted(why));
        }
        Ok(())
    }
}

/// Returns the first byte of a part of a blob: `Content-Range: bytes 100-199/200`.
fn range_begin(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let range = text.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}
