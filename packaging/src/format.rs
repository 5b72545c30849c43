//! The package formats. To add one, add a row here, a module in `make`, and a module in `trial`
//! that installs it.

use std::path::PathBuf;

use anyhow::Result;

use crate::kit::Kit;
use crate::make::{archive, bundle, deb, formula, image, npm, registry, rpm, wheel};
use crate::trial::{self, Install};

/// A package format.
pub(crate) struct Format {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its description, for `--help`.
    pub(crate) about: &'static str,
    /// Builds its packages and returns their files.
    pub(crate) make: fn(&Kit) -> Result<Vec<PathBuf>>,
    /// Installs the packages as a user would; `None` if the format only describes other packages.
    pub(crate) install: Option<Install>,
}

/// All formats. The last ones describe the preceding ones.
pub(crate) const FORMATS: &[Format] = &[
    Format {
        name: "tar",
        about: "An archive with everything",
        make: archive::make,
        install: Some(trial::archive::install),
    },
    Format {
        name: "npm",
        about: "Packages for npm: a launcher, and the program for one platform",
        make: npm::make,
        install: Some(trial::npm::install),
    },
    Format {
        name: "wheel",
        about: "A wheel for PyPI, for pip",
        make: wheel::make,
        install: Some(trial::wheel::pip),
    },
    Format {
        name: "uvx",
        about: "The same wheel, for uvx",
        make: wheel::make,
        install: Some(trial::wheel::uvx),
    },
    Format {
        name: "deb",
        about: "A package for Debian and Ubuntu",
        make: deb::make,
        install: Some(trial::deb::install),
    },
    Format {
        name: "rpm",
        about: "A package for Fedora, RHEL and openSUSE",
        make: rpm::make,
        install: Some(trial::rpm::install),
    },
    Format {
        name: "image",
        about: "A container image",
        make: image::make,
        install: Some(trial::image::install),
    },
    Format {
        name: "bundle",
        about: "A bundle for desktop clients (MCPB)",
        make: bundle::make,
        install: Some(trial::bundle::install),
    },
    Format {
        name: "formula",
        about: "A formula for Homebrew on Linux",
        make: formula::make,
        install: None,
    },
    Format {
        name: "registry",
        about: "The entry for the MCP registry",
        make: registry::make,
        install: None,
    },
];
