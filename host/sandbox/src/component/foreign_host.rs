//! Detection of core modules that were built for another host, by their imports and exports.

use std::collections::BTreeSet;

use toolbay_model::text::clean_line;

/// Maximum length of a quoted name, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Advice that most messages share.
const REBUILD_ADVICE: &str =
    "rebuild it with an SDK of toolbay:plugin, or as a component (wasm32-wasip2)";

/// The import and export names of a core module that reveal its host.
#[derive(Default)]
pub(crate) struct ModuleNames {
    /// The modules that it imports from, each with the name of the first import that this host does
    /// not provide.
    pub(crate) imports: Vec<(String, String)>,
    /// The names of the first functions that it imports from `env`.
    pub(crate) env: BTreeSet<String>,
    /// The names of all functions that it exports.
    pub(crate) exports: BTreeSet<String>,
}

impl ModuleNames {
    /// Returns the host for which the module was built, with advice. Returns `None` if it may be
    /// for this host.
    pub(crate) fn foreign_host(&self) -> Option<String> {
        self.known_host().or_else(|| {
            let (module, name) = self.imports.iter().find(|(module, _)| matches!(module.as_str(), "env" | "a"))?;
            let [module, name] = [module, name].map(|name| clean_line(name, MAX_QUOTED_BYTES));
            Some(format!(
                "a core module that imports {module}.{name}, which this host does not provide: the linker did not find the \
                 function, or the module was built for another host; rebuild it for WASI (wasm32-wasip2 or wasm32-wasi)"
            ))
        })
    }

    /// Like [`foreign_host`](Self::foreign_host), for hosts that are recognized by name.
    fn known_host(&self) -> Option<String> {
        let imports_from = |start: &str| {
            self.imports
                .iter()
                .any(|(module, _)| module.starts_with(start))
        };
        let imports_any = |modules: &[&str]| {
            modules
                .iter()
                .any(|name| self.imports.iter().any(|(m, _)| m == name))
        };
        let imports_env = |start: &str| self.env.iter().any(|name| name.starts_with(start));
        let exports_prefix = |start: &str| self.exports.iter().any(|name| name.starts_with(start));
        if imports_from("__main_module__")
            || (exports_prefix("fd_write") && exports_prefix("cabi_import_realloc"))
        {
            return Some(
                "an adapter between WASI 0.1 and WASI 0.2, with which tools such as `wasm-tools component new --adapt` make \
                 components; put the original module here instead, which needs no adapter"
                    .to_owned(),
            );
        }
        if imports_any(&["wasi_unstable"]) {
            return Some(
                "built for a version of WASI before 0.1; rebuild it with a newer toolchain"
                    .to_owned(),
            );
        }
        if imports_from("wasix_") {
            return Some(
                "built for WASIX (Wasmer), which extends WASI 0.1; rebuild it for wasm32-wasip2 or wasm32-wasip1"
                    .to_owned(),
            );
        }
        if imports_any(&["gojs", "go"]) {
            return Some(
                "built for Go's JavaScript host; rebuild it with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared"
                    .to_owned(),
            );
        }
        if imports_any(&[
            "wbg",
            "__wbindgen_placeholder__",
            "__wbindgen_externref_xform__",
        ]) {
            return Some(
                "built for browsers with wasm-bindgen; rebuild it for wasm32-wasip2".to_owned(),
            );
        }
        if imports_from("extism:host/") || imports_env("extism_") {
            return Some(format!(
                "a plugin for Extism (also used by hyper-mcp), which has its own host interface; {REBUILD_ADVICE}"
            ));
        }
        if exports_prefix("proxy_abi_version") || imports_env("proxy_") {
            return Some(
                "a filter for Envoy and other proxies (proxy-wasm), which is called for each request that passes a proxy, and \
                 has no functions that can be tools"
                    .to_owned(),
            );
        }
        if [
            "spin:",
            "fermyon:spin",
            "spin-",
            "wasi-outbound-http",
            "outbound-redis",
        ]
        .iter()
        .any(|start| imports_from(start))
        {
            return Some(format!(
                "a module for Spin, which imports Spin's own interfaces; build it with a Spin SDK that makes components and \
                 imports only WASI, or {REBUILD_ADVICE}"
            ));
        }
        if imports_any(&["wapc"]) {
            return Some(format!(
                "a module for waPC (wasmCloud before 1.0, Kubewarden); {REBUILD_ADVICE}"
            ));
        }
        if imports_from("fastly_") {
            return Some(format!(
                "a program for Fastly Compute, which has its own host interface; {REBUILD_ADVICE}"
            ));
        }
        let is_emscripten = [
            "emscripten_",
            "_emscripten_",
            "__syscall_",
            "invoke_",
            "__cxa_",
        ]
        .iter()
        .any(|name| imports_env(name));
        (is_emscripten || imports_any(&["a"])).then(|| {
            "built by Emscripten for JavaScript; link it with -sSTANDALONE_WASM, or build it with the WASI SDK"
                .to_owned()
        })
    }

    /// Returns the export with which the module handles requests for Spin.
    pub(crate) fn spin_handler(&self) -> Option<&str> {
        let is_handler = |name: &&String| {
            matches!(
                name.as_str(),
                "handle-http-request" | "handle-redis-message"
            )
        };
        self.exports.iter().find(is_handler).map(String::as_str)
    }

    /// Returns the first import that belongs neither to components nor to WASI 0.1 nor to
    /// `AssemblyScript`, for a message.
    pub(crate) fn unknown_import(&self) -> Option<String> {
        let is_known = |module: &str| {
            module.contains(':') || matches!(module, "wasi_snapshot_preview1" | "$root")
        };
        let (module, name) = self.imports.iter().find(|(module, _)| !is_known(module))?;
        Some(clean_line(&format!("{module}.{name}"), MAX_QUOTED_BYTES))
    }
}
