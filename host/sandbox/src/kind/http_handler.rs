//! Handlers of HTTP requests: components that export `wasi:http/incoming-handler` of WASI 0.2, or
//! `wasi:http/handler` of WASI 0.3.

use wasmtime::Store;
use wasmtime::component::InstancePre;
use wasmtime_wasi_http::p2::bindings::{Proxy, ProxyPre};
use wasmtime_wasi_http::p3::bindings::{Service, ServicePre};

use crate::component::wasi_p3_names::is_wasi_p3;
use crate::store::state::StoreState;

/// The interfaces that make a component an HTTP handler, without their versions.
pub(crate) const HANDLER_INTERFACES: [&str; 2] = [WASI_P2_HANDLER, WASI_P3_HANDLER];

const WASI_P2_HANDLER: &str = "wasi:http/incoming-handler";
const WASI_P3_HANDLER: &str = "wasi:http/handler";

/// A linked handler.
pub(crate) enum HandlerPre {
    /// A handler of WASI 0.2.
    P2(ProxyPre<StoreState>),
    /// A handler of WASI 0.3.
    P3(ServicePre<StoreState>),
}

/// An instance of a handler.
pub(crate) enum HandlerInstance {
    P2(Proxy),
    P3(Service),
}

impl HandlerPre {
    /// Links the handler that a component exports as `interface`.
    pub(crate) fn new(pre: InstancePre<StoreState>, interface: &str) -> wasmtime::Result<Self> {
        if is_wasi_p3(interface) {
            ServicePre::new(pre).map(Self::P3)
        } else {
            ProxyPre::new(pre).map(Self::P2)
        }
    }

    /// Returns the exported interface, without its version.
    pub(crate) fn interface(&self) -> &'static str {
        match self {
            Self::P2(_) => WASI_P2_HANDLER,
            Self::P3(_) => WASI_P3_HANDLER,
        }
    }

    pub(crate) async fn instantiate(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<HandlerInstance> {
        match self {
            Self::P2(pre) => pre
                .instantiate_async(&mut *store)
                .await
                .map(HandlerInstance::P2),
            Self::P3(pre) => pre
                .instantiate_async(&mut *store)
                .await
                .map(HandlerInstance::P3),
        }
    }
}
