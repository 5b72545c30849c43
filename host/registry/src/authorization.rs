//! Gets the right to read from or write to a repository.

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use toolbay_bundle::check_url;
use url::Url;

use crate::challenge::Challenge;
use crate::credential::RegistryCredential;
use crate::error_details::{error_details, status_error};
use crate::protected_repository::ProtectedRepository;
use crate::registry_error::RegistryError;
use crate::transport::{OutgoingRequest, RegistryTransport, read_body};

/// Maximum size of the answer of a token service, in bytes.
const MAX_TOKEN_BYTES: u64 = 256 << 10;

/// Name of this client at token services.
const CLIENT_ID: &str = "toolbay";

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

/// Returns the value of the header `Authorization` that answers a challenge.
///
/// # Errors
///
/// There are no credentials, or they are refused.
pub(crate) async fn answer_challenge(
    transport: &RegistryTransport,
    target: &ProtectedRepository<'_>,
    challenge: Option<Challenge>,
    credential: Option<RegistryCredential>,
    deadline: Instant,
) -> Result<String, RegistryError> {
    if let Some(RegistryCredential::Access(token)) = credential {
        return Ok(format!("Bearer {token}"));
    }
    match (challenge, credential) {
        (Some(Challenge::Basic), Some(RegistryCredential::Password { username, password })) => {
            Ok(RegistryCredential::basic(&username, &password))
        }
        (Some(Challenge::Bearer { realm, service }), credential) => {
            let realm = check_realm(target, &realm)?;
            get_token(transport, target, realm, service, credential, deadline).await
        }
        (_, credential) => Err(target.refusal(credential.is_some(), String::new())),
    }
}

/// Checks the address of a token service: it receives the credentials, so it must be as protected as
/// the registry.
fn check_realm(target: &ProtectedRepository<'_>, realm: &str) -> Result<Url, RegistryError> {
    let invalid = |why: String| RegistryError::InvalidAnswer {
        host: target.registry.to_owned(),
        why: format!("the address of its token service: {why}"),
    };
    let url = Url::parse(realm).map_err(|why| invalid(why.to_string()))?;
    check_url(&url).map_err(invalid)?;
    if target.origin.scheme() == "https" && url.scheme() != "https" {
        return Err(invalid(format!("{url} is not https")));
    }
    Ok(url)
}

async fn get_token(
    transport: &RegistryTransport,
    target: &ProtectedRepository<'_>,
    realm: Url,
    service: Option<String>,
    credential: Option<RegistryCredential>,
    deadline: Instant,
) -> Result<String, RegistryError> {
    let service = service.unwrap_or_default();
    let scope = target.scope();
    let has_credentials = credential.is_some();
    let request = if let Some(RegistryCredential::Refresh(token)) = credential {
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "refresh_token")
            .append_pair("service", &service)
            .append_pair("scope", &scope)
            .append_pair("client_id", CLIENT_ID)
            .append_pair("refresh_token", &token)
            .finish();
        OutgoingRequest::new(Method::POST, realm, MAX_TOKEN_BYTES, deadline)
            .with(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .with_body(Bytes::from(form))
    } else {
        let mut url = realm;
        url.query_pairs_mut()
            .append_pair("service", &service)
            .append_pair("scope", &scope);
        let mut request = OutgoingRequest::new(Method::GET, url, MAX_TOKEN_BYTES, deadline);
        if let Some(RegistryCredential::Password { username, password }) = credential {
            request.authorization = Some(RegistryCredential::basic(&username, &password));
        }
        request
    };
    let request = request.with(ACCEPT, "application/json");
    let (response, host) = transport.send(&request, target.origin).await?;
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED {
        let details = error_details(response, &host).await;
        return Err(target.refusal(has_credentials, details));
    }
    if status != StatusCode::OK {
        return Err(status_error(response, &host, target, "the token").await);
    }
    let body = read_body(response, &host, "the token", MAX_TOKEN_BYTES).await?;
    // The message of the parser could quote the token.
    let answer: TokenAnswer =
        serde_json::from_slice(&body).map_err(|_| RegistryError::InvalidAnswer {
            host: host.clone(),
            why: "its token is not in JSON".to_owned(),
        })?;
    let token = answer.token.or(answer.access_token);
    let token = token.filter(|token| !token.is_empty());
    token
        .map(|token| format!("Bearer {token}"))
        .ok_or(RegistryError::InvalidAnswer {
            host,
            why: "it has no token".to_owned(),
        })
}
