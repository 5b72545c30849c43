//! Media types of plugins in registries.

/// A manifest of an artifact.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Docker's older name of a list of manifests.
pub(crate) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// The configuration of a component, as other tools for components expect it.
pub(crate) const COMPONENT_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// An empty configuration, of an artifact without a component.
pub(crate) const EMPTY_CONFIG: &str = "application/vnd.oci.empty.v1+json";

/// A layer with a component.
pub(crate) const COMPONENT: &str = "application/wasm";

/// A layer with an archive, as `toolbay pack` makes it.
pub(crate) const ARCHIVE: &str = "application/vnd.toolbay.plugin.v1.bay";
