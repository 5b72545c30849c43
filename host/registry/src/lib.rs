//! Plugins in OCI registries: finds, downloads and publishes them, with bounds on everything that a
//! registry sends.
//!
//! A [`RegistryClient`] resolves a reference to a [`RegistryPlugin`], whose digest pins everything
//! else, and downloads it. It uses the HTTP client of plugins ([`toolbay_outgoing`]), so resolution,
//! address filters, TLS, certificates and the proxy are the same. Credentials come from Docker's
//! `config.json` and its helpers, are read only when a registry asks for them, and are sent to the
//! registry itself and to its token service, never to the target of a redirect.
//!
//! Nothing in this crate writes files, and nothing that a registry sends is a grant.

mod authorization;
mod challenge;
mod credential;
mod credential_helper;
mod docker_config;
mod download;
mod error_details;
mod manifest;
mod media_type;
mod package_registries;
mod private_networks;
mod protected_repository;
mod publication;
mod registry_client;
mod registry_error;
mod settings_file;
mod transport;
mod upload;

pub use self::docker_config::DockerConfig;
pub use self::package_registries::PackageRegistries;
pub use self::private_networks::private_networks;
pub use self::publication::{PreparedPublication, Publication, PublishedComponent};
pub use self::registry_client::{RegistryClient, RegistryPlugin};
pub use self::registry_error::RegistryError;
pub use self::transport::RegistryTimeouts;
