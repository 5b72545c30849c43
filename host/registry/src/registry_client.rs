//! The client of registries: it asks for credentials if a registry wants them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use toolbay_bundle::{OciReference, parse_digest};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use toolbay_outgoing::{ConnectorOptions, ResponseBody};
use url::Url;

use crate::authorization::answer_challenge;
use crate::challenge::Challenge;
use crate::docker_config::{DOCKER_HUB, DockerConfig};
use crate::error_details::{MAX_ERROR_BYTES, error_details, status_error};
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, PluginBlob};
use crate::media_type;
use crate::protected_repository::{ProtectedRepository, RepositoryAccess};
use crate::registry_error::{MAX_SHOWN_BYTES, RegistryError};
use crate::transport::{OutgoingRequest, RegistryTimeouts, RegistryTransport, host_of, read_body};

/// The host that serves Docker's own registry.
const DOCKER_HUB_ORIGIN: &str = "https://registry-1.docker.io/";

/// The header with the digest of a manifest.
pub(crate) const CONTENT_DIGEST: &str = "docker-content-digest";

/// A client of registries. It sends one request at a time, and keeps the tokens of registries until
/// it is dropped.
pub struct RegistryClient {
    pub(crate) transport: RegistryTransport,
    credentials: DockerConfig,
    pub(crate) timeouts: RegistryTimeouts,
    /// The value of `Authorization`, by registry and repository.
    tokens: Mutex<HashMap<TokenKey, String>>,
}

type TokenKey = (String, String, RepositoryAccess);

/// A plugin that a registry has.
#[derive(Clone, Debug)]
pub struct RegistryPlugin {
    /// The reference, with the digest of the manifest.
    pub reference: OciReference,
    /// The digest of the manifest.
    pub digest: Digest,
    /// The blob with the plugin.
    pub(crate) blob: PluginBlob,
}

impl RegistryPlugin {
    /// Returns the size of the download, in bytes.
    pub fn size(&self) -> u64 {
        self.blob.size
    }

    /// Returns the digest of the download.
    pub fn content_digest(&self) -> Digest {
        self.blob.digest
    }

    /// Returns the digest that the component has by the manifest. An archive contains the component,
    /// and the caller checks that it is this one.
    pub fn component(&self) -> Option<Digest> {
        self.blob.component
    }

    /// Returns the name that the manifest gives to the file. It can be any text.
    pub fn file_name(&self) -> Option<&str> {
        self.blob.file_name.as_deref()
    }
}

/// The target of a request to a registry.
pub(crate) struct RepositoryTarget<'a> {
    pub(crate) reference: &'a OciReference,
    pub(crate) access: RepositoryAccess,
    /// The address of the registry's interface.
    pub(crate) origin: Url,
}

impl<'a> RepositoryTarget<'a> {
    pub(crate) fn new(
        reference: &'a OciReference,
        access: RepositoryAccess,
    ) -> Result<Self, RegistryError> {
        let origin = if reference.registry() == DOCKER_HUB {
            Url::parse(DOCKER_HUB_ORIGIN).map_err(|why| RegistryError::Settings(why.to_string()))?
        } else {
            reference.origin().clone()
        };
        Ok(Self {
            reference,
            access,
            origin,
        })
    }

    /// Returns the URL of something in the repository, such as `manifests/latest`.
    pub(crate) fn url(&self, rest: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{rest}", self.reference.repository());
        self.origin
            .join(&path)
            .map_err(|why| RegistryError::Settings(why.to_string()))
    }
}

impl RegistryClient {
    /// Creates a client with these certificates, proxy and credentials. Reads the certificates,
    /// which blocks.
    ///
    /// # Errors
    ///
    /// A file of certificates cannot be used.
    pub fn new(
        options: &ConnectorOptions,
        credentials: DockerConfig,
        timeouts: RegistryTimeouts,
    ) -> Result<Self, RegistryError> {
        Ok(Self {
            transport: RegistryTransport::new(options, timeouts.idle)?,
            credentials,
            timeouts,
            tokens: Mutex::default(),
        })
    }

    /// Finds the plugin of a reference: the one with its digest, or the one that its tag names now.
    ///
    /// # Errors
    ///
    /// The registry does not deliver a manifest of one plugin.
    pub async fn resolve(&self, reference: &OciReference) -> Result<RegistryPlugin, RegistryError> {
        let target = RepositoryTarget::new(reference, RepositoryAccess::Read)?;
        let name = match (reference.digest(), reference.tag()) {
            (Some(digest), _) => format!("sha256:{digest}"),
            (None, tag) => tag.unwrap_or_default().to_owned(),
        };
        let what = reference.to_string();
        let request = OutgoingRequest::new(
            Method::GET,
            target.url(&format!("manifests/{name}"))?,
            MAX_MANIFEST_BYTES,
            Instant::now() + self.timeouts.transfer,
        )
        .with(
            ACCEPT,
            [
                media_type::MANIFEST,
                media_type::INDEX,
                media_type::DOCKER_INDEX,
            ]
            .join(", "),
        );
        let (response, host) = self
            .send(&target, request, &what, &[StatusCode::OK])
            .await?;
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().ok()?.trim().to_owned())
        };
        let content_type = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let announced = header(CONTENT_DIGEST);
        let manifest_of = format!("the manifest of {what}");
        let body = read_body(response, &host, &manifest_of, MAX_MANIFEST_BYTES).await?;
        let received = Digest::new(Sha256::digest(&body).into());
        let announced = announced
            .map(|text| parse_digest(&text))
            .transpose()
            .map_err(|why| RegistryError::InvalidAnswer { host, why })?;
        for expected in [reference.digest(), announced].into_iter().flatten() {
            if expected != received {
                return Err(RegistryError::WrongDigest {
                    what: manifest_of,
                    expected,
                    received,
                });
            }
        }
        let manifest: Manifest =
            serde_json::from_slice(&body).map_err(|why| RegistryError::NotAPlugin {
                what: what.clone(),
                why: format!(
                    "has a manifest that is not valid: {}",
                    clean_line(&why.to_string(), MAX_SHOWN_BYTES)
                ),
            })?;
        let blob = manifest
            .plugin_blob(&content_type)
            .map_err(|why| RegistryError::NotAPlugin { what, why })?;
        Ok(RegistryPlugin {
            reference: reference.with_digest(received),
            digest: received,
            blob,
        })
    }

    /// Sends a request, and once more with credentials if the registry wants them. `what` is for
    /// messages. Returns the response, if it has one of these statuses, and the host that sent it.
    pub(crate) async fn send(
        &self,
        target: &RepositoryTarget<'_>,
        mut request: OutgoingRequest,
        what: &str,
        accepted: &[StatusCode],
    ) -> Result<(Response<ResponseBody>, String), RegistryError> {
        let registry = target.reference.registry();
        let protected = ProtectedRepository {
            origin: &target.origin,
            registry: &registry,
            repository: target.reference.repository(),
            access: target.access,
        };
        let key = (
            target.origin.to_string(),
            protected.repository.to_owned(),
            target.access,
        );
        request.limit = request.limit.max(MAX_ERROR_BYTES);
        let may_authorize = request.url.origin() == target.origin.origin();
        if may_authorize {
            request.authorization = self.tokens().get(&key).cloned();
        }
        let (mut response, mut host) = self.transport.send(&request, &target.origin).await?;
        let is_own = host == host_of(&target.origin);
        if response.status() == StatusCode::UNAUTHORIZED && may_authorize && is_own {
            let challenge = Challenge::read(response.headers());
            drop(response);
            let credential = self.credentials.find(&registry).await?;
            let has_credentials = credential.is_some();
            let deadline = request.deadline;
            let authorization =
                answer_challenge(&self.transport, &protected, challenge, credential, deadline)
                    .await?;
            request.authorization = Some(authorization.clone());
            (response, host) = self.transport.send(&request, &target.origin).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                self.tokens().remove(&key);
                let details = error_details(response, &host).await;
                return Err(protected.refusal(has_credentials, details));
            }
            self.tokens().insert(key, authorization);
        }
        if accepted.contains(&response.status()) {
            return Ok((response, host));
        }
        Err(status_error(response, &host, &protected, what).await)
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, HashMap<TokenKey, String>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pause before the next attempt.
    pub(crate) fn retry_pause(&self, attempt: u32) -> Duration {
        self.timeouts.retry_pause.saturating_mul(attempt)
    }
}
