//! Toolchains whose components import more than a plugin uses.

/// A toolchain that imports interfaces by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// `componentize-py`, whose interpreter imports all of WASI.
    ComponentizePy,
    /// A JavaScript engine.
    JavaScript,
    /// The compiler and runtime of Go.
    Go,
    /// The C library of a core module.
    CoreModule,
}

/// Bytes that only components with this engine contain.
const ENGINE_MARKS: [(&[u8], Toolchain); 4] = [
    (b"libcomponentize_py_runtime.so", Toolchain::ComponentizePy),
    (b"rquickjs-core", Toolchain::JavaScript),
    (b"StarlingMonkey", Toolchain::JavaScript),
    (b"starlingmonkey", Toolchain::JavaScript),
];

/// Interfaces that the standard library of a language imports, by prefix.
const STANDARD_LIBRARY: [&str; 5] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
];

impl Toolchain {
    /// Finds the engine that a component contains.
    pub(super) fn find_engine(component: &[u8]) -> Option<Self> {
        ENGINE_MARKS
            .iter()
            .find(|(mark, _)| memchr::memmem::find(component, mark).is_some())
            .map(|(_, toolchain)| *toolchain)
    }

    /// Finds the toolchain by its entry in the list of producers, and by the kind of the file.
    pub(super) fn find_producer(made_with: &[String], kind: &str) -> Option<Self> {
        if made_with.iter().any(|name| name.starts_with("Go ")) {
            return Some(Self::Go);
        }
        kind.starts_with("a core module")
            .then_some(Self::CoreModule)
    }

    /// Returns the name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ComponentizePy => "the toolchain (componentize-py)",
            Self::JavaScript => "the toolchain (its JavaScript engine)",
            Self::Go => "the toolchain (Go)",
            Self::CoreModule => "the toolchain (its standard library)",
        }
    }

    /// Returns whether its components import the interface in any case.
    pub(super) fn imports_by_default(self, import: &str) -> bool {
        match self {
            // The SDK's world also has HTTP and state.
            Self::ComponentizePy => import.starts_with("wasi:"),
            Self::JavaScript | Self::Go | Self::CoreModule => STANDARD_LIBRARY
                .iter()
                .any(|prefix| import.starts_with(prefix)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_are_recognized() {
        let go = ["Go go1.26".to_owned()];
        let python = b"xx\0libcomponentize_py_runtime.so\0";
        assert_eq!(
            Toolchain::find_engine(python),
            Some(Toolchain::ComponentizePy)
        );
        assert_eq!(Toolchain::find_engine(b"\0asm"), None);
        assert_eq!(
            Toolchain::find_producer(&go, "a core module"),
            Some(Toolchain::Go)
        );
        assert_eq!(
            Toolchain::find_producer(&[], "a core module that"),
            Some(Toolchain::CoreModule)
        );
        assert_eq!(Toolchain::find_producer(&[], "a component"), None);
        let sockets = "wasi:sockets/tcp@0.2.0";
        assert!(Toolchain::ComponentizePy.imports_by_default(sockets));
        assert!(!Toolchain::Go.imports_by_default(sockets));
        assert!(!Toolchain::ComponentizePy.imports_by_default("toolbay:plugin/host@0.2.0"));
        assert!(Toolchain::JavaScript.imports_by_default("wasi:cli/environment@0.2.0"));
    }
}
