//! The registries of packages, as the configuration of other tools for components names them
//! (`wasm-pkg/config.toml`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use toolbay_bundle::{OciReference, PackageName, check_url};
use toolbay_model::text::clean_line;
use url::Url;

use crate::registry_client::RegistryClient;
use crate::registry_error::{MAX_SHOWN_BYTES, RegistryError};
use crate::settings_file::read_settings_file;
use crate::transport::{OutgoingRequest, host_of, read_body};

/// Maximum size of a registry's description, in bytes.
const MAX_DESCRIPTION_BYTES: u64 = 64 << 10;

/// Path of a registry's description.
const DESCRIPTION_PATH: &str = "/.well-known/wasm-pkg/registry.json";

/// The protocol of registries that can be used.
const OCI_PROTOCOL: &str = "oci";

/// The registries that a user has configured for packages. Other settings of the file, such as
/// credentials, are not used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PackageRegistries {
    default_registry: Option<String>,
    namespace_registries: BTreeMap<String, RegistryMapping>,
    package_registry_overrides: BTreeMap<String, RegistryMapping>,
    registry: BTreeMap<String, RegistrySettings>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum RegistryMapping {
    Name(String),
    Described {
        registry: String,
        metadata: RegistryDescription,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RegistrySettings {
    oci: OciSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OciSettings {
    protocol: Option<String>,
}

/// How a registry describes where its packages are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RegistryDescription {
    preferred_protocol: Option<String>,
    oci: Option<OciLocation>,
    /// The older form of `oci`.
    oci_registry: Option<String>,
    oci_namespace_prefix: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OciLocation {
    registry: Option<String>,
    namespace_prefix: Option<String>,
}

impl PackageRegistries {
    /// Returns the place of the configuration for this user: `wasm-pkg/config.toml` in
    /// `XDG_CONFIG_HOME`, or in `.config` in the home folder.
    pub fn default_file() -> Option<PathBuf> {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = of("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&of("HOME")?).join(".config")))?;
        Some(folder.join("wasm-pkg/config.toml"))
    }

    /// Reads the configuration; an empty one if there is no file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is invalid.
    pub fn read(file: Option<&Path>) -> Result<Self, RegistryError> {
        let Some(path) = file else {
            return Ok(Self::default());
        };
        let failed = |why: &str| RegistryError::Settings(format!("{}: {why}", path.display()));
        let Some(text) = read_settings_file(path).map_err(|why| failed(&why))? else {
            return Ok(Self::default());
        };
        // Only the message: the text around a mistake can contain a password.
        toml::from_str(&text).map_err(|why| failed(why.message()))
    }

    /// Returns the registry of a package.
    fn registry_of(&self, package: &PackageName) -> Option<RegistryMapping> {
        let name = format!("{}:{}", package.namespace(), package.name());
        self.package_registry_overrides
            .get(&name)
            .or_else(|| self.namespace_registries.get(package.namespace()))
            .cloned()
            .or_else(|| self.default_registry.clone().map(RegistryMapping::Name))
    }

    /// Returns whether a registry is reached over http, which is possible on a loopback address.
    fn is_plain(&self, registry: &str) -> bool {
        let settings = self.registry.get(registry);
        settings.is_some_and(|one| one.oci.protocol.as_deref() == Some("http"))
    }
}

impl RegistryClient {
    /// Returns the artifact of a package: in the registry that `registries` names for it, at the
    /// place that the registry describes.
    ///
    /// # Errors
    ///
    /// No registry is configured, or it does not describe an OCI registry.
    pub async fn locate(
        &self,
        package: &PackageName,
        registries: &PackageRegistries,
    ) -> Result<OciReference, RegistryError> {
        let mapping = registries.registry_of(package).ok_or_else(|| {
            RegistryError::Settings(format!(
                "no registry is configured for {package}: set namespace_registries.{} or default_registry in wasm-pkg/config.toml, or use a reference that begins with oci://",
                package.namespace()
            ))
        })?;
        let (registry, description) = match mapping {
            RegistryMapping::Described { registry, metadata } => (registry, metadata),
            RegistryMapping::Name(registry) => {
                let description = self
                    .describe(&registry, registries.is_plain(&registry))
                    .await?;
                (registry, description)
            }
        };
        let protocol = description.preferred_protocol.as_deref();
        if let Some(protocol) = protocol.filter(|protocol| *protocol != OCI_PROTOCOL) {
            return Err(RegistryError::InvalidAnswer {
                host: registry,
                why: format!("it has packages with the protocol {protocol:.100?}, and not \"oci\""),
            });
        }
        let location = description.oci.unwrap_or_default();
        let host = location
            .registry
            .or(description.oci_registry)
            .unwrap_or_else(|| registry.clone());
        let prefix = location
            .namespace_prefix
            .or(description.oci_namespace_prefix)
            .unwrap_or_default();
        let scheme = if registries.is_plain(&host) {
            "oci+http"
        } else {
            "oci"
        };
        let reference = format!(
            "{scheme}://{host}/{prefix}{}/{}:{}",
            package.namespace(),
            package.name(),
            package.version()
        );
        reference
            .parse()
            .map_err(|why| RegistryError::InvalidAnswer {
                host: registry,
                why,
            })
    }

    /// Gets the description of a registry; an empty one if it has none.
    async fn describe(
        &self,
        registry: &str,
        is_plain: bool,
    ) -> Result<RegistryDescription, RegistryError> {
        let scheme = if is_plain { "http" } else { "https" };
        let wrong = |why: String| RegistryError::Settings(format!("registry {registry:?}: {why}"));
        let url = Url::parse(&format!("{scheme}://{registry}{DESCRIPTION_PATH}"))
            .map_err(|why| wrong(why.to_string()))?;
        check_url(&url).map_err(wrong)?;
        if url.path() != DESCRIPTION_PATH || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it must be a host, or a host and a port".to_owned()));
        }
        let deadline = Instant::now() + self.timeouts.transfer;
        let request =
            OutgoingRequest::new(Method::GET, url.clone(), MAX_DESCRIPTION_BYTES, deadline);
        let (response, host) = self.transport.send(&request, &url).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(RegistryDescription::default()),
            status => {
                return Err(RegistryError::Status {
                    host: host_of(&url),
                    status: status.as_u16(),
                    details: String::new(),
                });
            }
        }
        let body = read_body(response, &host, "the description", MAX_DESCRIPTION_BYTES).await?;
        serde_json::from_slice(&body).map_err(|why| RegistryError::InvalidAnswer {
            host,
            why: format!(
                "{DESCRIPTION_PATH}: {}",
                clean_line(&why.to_string(), MAX_SHOWN_BYTES)
            ),
        })
    }
}
