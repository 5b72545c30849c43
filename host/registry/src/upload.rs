//! Publishes plugins.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode};
use tokio::time::Instant;
use toolbay_bundle::OciReference;
use toolbay_model::Digest;
use url::Url;

use crate::error_details::MAX_ERROR_BYTES;
use crate::media_type;
use crate::protected_repository::RepositoryAccess;
use crate::publication::{Artifact, Blob, PreparedPublication};
use crate::registry_client::{CONTENT_DIGEST, RegistryClient, RepositoryTarget};
use crate::registry_error::RegistryError;
use crate::transport::OutgoingRequest;

impl RegistryClient {
    /// Publishes a plugin under the tag of a reference, which then names it. Returns the digest of
    /// its manifest. The same plugin always has the same digest.
    ///
    /// An archive with a component is an artifact of its own, whose tag contains the digest of the
    /// component's manifest, because other tools for components accept only one layer. The
    /// component's manifest names the digest of the archive.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub async fn push_plugin(
        &self,
        reference: &OciReference,
        publication: &PreparedPublication,
    ) -> Result<Digest, RegistryError> {
        let target = RepositoryTarget::new(reference, RepositoryAccess::Write)?;
        let PreparedPublication { artifact, archive } = publication;
        let tag = reference.tag().unwrap_or_default();
        self.push_blobs(&target, artifact).await?;
        if let Some(archive) = archive {
            self.push_blobs(&target, archive).await?;
            let archive_tag = format!("sha256-{}.bay", artifact.digest);
            self.push_manifest(&target, archive, &archive_tag).await?;
        }
        // Last, so that the tag never names something incomplete.
        self.push_manifest(&target, artifact, tag).await?;
        Ok(artifact.digest)
    }

    /// Returns the digest of the manifest that the tag of a reference names, whatever it is. Returns
    /// `None` if there is none.
    ///
    /// # Errors
    ///
    /// The registry does not say.
    pub async fn tagged_digest(
        &self,
        reference: &OciReference,
    ) -> Result<Option<String>, RegistryError> {
        let target = RepositoryTarget::new(reference, RepositoryAccess::Write)?;
        let tag = reference.tag().unwrap_or_default();
        let what = reference.to_string();
        let request = self
            .request(&target, Method::HEAD, &format!("manifests/{tag}"))?
            .with(
                http::header::ACCEPT,
                format!("{}, {}", media_type::MANIFEST, media_type::INDEX),
            );
        let accepted = [StatusCode::OK, StatusCode::NOT_FOUND];
        let (response, _) = self.send(&target, request, &what, &accepted).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let digest = response.headers().get(CONTENT_DIGEST);
        let digest =
            digest.and_then(|value| Digest::from_prefixed_hex(value.to_str().ok()?.trim()));
        let text = digest.map(|digest| format!("{}{digest}", Digest::PREFIX));
        Ok(Some(text.unwrap_or_else(|| "another digest".to_owned())))
    }

    async fn push_blobs(
        &self,
        target: &RepositoryTarget<'_>,
        artifact: &Artifact,
    ) -> Result<(), RegistryError> {
        for Blob { digest, bytes } in &artifact.blobs {
            self.push_blob(target, *digest, bytes).await?;
        }
        Ok(())
    }

    async fn push_blob(
        &self,
        target: &RepositoryTarget<'_>,
        digest: Digest,
        bytes: &Bytes,
    ) -> Result<(), RegistryError> {
        let what = target.reference.to_string();
        let existing = self.request(target, Method::HEAD, &format!("blobs/sha256:{digest}"))?;
        let accepted = [StatusCode::OK, StatusCode::NOT_FOUND];
        let (response, _) = self.send(target, existing, &what, &accepted).await?;
        if response.status() == StatusCode::OK {
            return Ok(());
        }
        let begin = self.request(target, Method::POST, "blobs/uploads/")?;
        let (response, host) = self
            .send(target, begin, &what, &[StatusCode::ACCEPTED])
            .await?;
        let invalid = |why: &str| RegistryError::InvalidAnswer {
            host: host.clone(),
            why: why.to_owned(),
        };
        let location = response.headers().get(LOCATION);
        let mut url: Url = location
            .and_then(|value| value.to_str().ok())
            .and_then(|location| target.url("blobs/uploads/").ok()?.join(location).ok())
            .ok_or_else(|| invalid("it names no URL to upload to"))?;
        // Whoever gets the upload could also read the credentials.
        if url.origin() != target.origin.origin() {
            return Err(invalid(&format!(
                "it names {} for the upload, which is another host or another scheme",
                url.origin().ascii_serialization()
            )));
        }
        drop(response);
        url.query_pairs_mut()
            .append_pair("digest", &format!("sha256:{digest}"));
        let deadline = Instant::now() + self.timeouts.transfer;
        let upload = OutgoingRequest::new(Method::PUT, url, MAX_ERROR_BYTES, deadline)
            .with(CONTENT_TYPE, "application/octet-stream")
            .with_body(bytes.clone());
        self.send(target, upload, &what, &[StatusCode::CREATED])
            .await?;
        Ok(())
    }

    async fn push_manifest(
        &self,
        target: &RepositoryTarget<'_>,
        artifact: &Artifact,
        tag: &str,
    ) -> Result<(), RegistryError> {
        let what = target.reference.to_string();
        let request = self
            .request(target, Method::PUT, &format!("manifests/{tag}"))?
            .with(CONTENT_TYPE, media_type::MANIFEST)
            .with_body(artifact.manifest.clone());
        self.send(target, request, &what, &[StatusCode::CREATED])
            .await?;
        Ok(())
    }

    fn request(
        &self,
        target: &RepositoryTarget<'_>,
        method: Method,
        rest: &str,
    ) -> Result<OutgoingRequest, RegistryError> {
        let deadline = Instant::now() + self.timeouts.transfer;
        let url = target.url(rest)?;
        Ok(OutgoingRequest::new(method, url, MAX_ERROR_BYTES, deadline))
    }
}
