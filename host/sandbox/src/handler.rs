//! Handlers of HTTP requests: components that export `wasi:http/incoming-handler` of WASI 0.2, or
//! `wasi:http/handler` of WASI 0.3.

use wasmtime::Store;
use wasmtime::component::InstancePre;
use wasmtime_wasi_http::p2::bindings::{Proxy, ProxyPre};
use wasmtime_wasi_http::p3::bindings::{Service, ServicePre};

use crate::newer::is_newer;
use crate::state::State;

/// The interfaces that make a component an HTTP handler, without their versions.
pub(crate) const INTERFACES: [&str; 2] = [OLDER, NEWER];

const OLDER: &str = "wasi:http/incoming-handler";
const NEWER: &str = "wasi:http/handler";

/// A linked handler.
pub(crate) enum HandlerPre {
    /// A handler of WASI 0.2.
    Older(ProxyPre<State>),
    /// A handler of WASI 0.3.
    Newer(ServicePre<State>),
}

/// An instance of a handler.
pub(crate) enum Handler {
    Older(Proxy),
    Newer(Service),
}

impl HandlerPre {
    /// Links the handler that a component exports as `interface`.
    pub(crate) fn new(pre: InstancePre<State>, interface: &str) -> wasmtime::Result<Self> {
        if is_newer(interface) { ServicePre::new(pre).map(Self::Newer) } else { ProxyPre::new(pre).map(Self::Older) }
    }

    /// Returns the exported interface, without its version.
    pub(crate) fn interface(&self) -> &'static str {
        match self {
            Self::Older(_) => OLDER,
            Self::Newer(_) => NEWER,
        }
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Handler> {
        match self {
            Self::Older(pre) => pre.instantiate_async(&mut *store).await.map(Handler::Older),
            Self::Newer(pre) => pre.instantiate_async(&mut *store).await.map(Handler::Newer),
        }
    }
}
