//! Sockets of one call: the names that it resolves, and the addresses that it connects to.
//!
//! A name is resolved only if a rule of the grant covers it. The guest receives only those of its
//! addresses that it may connect to. A connection is allowed to an IP literal that a rule lists, or
//! to an address that was resolved in this call from a name in a rule, at a port that the rule
//! allows. No name is resolved a second time for a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use toolbay_model::{ByteReservation, DenialKind};
use toolbay_outgoing::SendError;
use toolbay_policy::{
    DenialReason, NormalizedHost, TcpRequest, TcpRule, check_lookup, filter_addresses,
};
use toolbay_recording::MissingInput;
use wasmtime_wasi::sockets::SocketAddrUse;

use crate::capability::effects::{AskBlocker, SideEffects};
use crate::capability::files::descriptors::OpenDescriptor;
use crate::capability::http::http_call::CallDenials;
use crate::capability::memory_budget::{BudgetExceeded, MemoryBudget};
use crate::capability::sockets::tcp_usage::TcpTraffic;
use crate::context::plugin_connections::{ConnectionRules, PluginConnections};

/// Maximum number of open sockets of a call.
const MAX_SOCKETS: usize = 16;

/// Maximum number of name lookups of a call. Each lookup sends a query to the DNS servers of the
/// name's owner.
const MAX_LOOKUPS: u32 = 64;

/// Maximum number of addresses that a lookup returns to the guest.
const MAX_ADDRESSES: usize = 32;

/// Maximum size of a kernel socket buffer in each direction, in bytes. The kernel allows the same
/// amount again for its bookkeeping.
pub(crate) const KERNEL_BUFFER_BYTES: u64 = 64 << 10;

/// Memory that a socket uses, in bytes: the kernel buffers, and the buffers of one read and one
/// write.
const SOCKET_MEMORY_BYTES: usize = 384 << 10;

/// Memory that a lookup uses until it completes or its handle is dropped, in bytes.
pub(crate) const LOOKUP_MEMORY_BYTES: usize = 8 << 10;

/// Memory that a remembered address uses in addition to its name, in bytes.
const ADDRESS_MEMORY_BYTES: usize = 128;

/// The sockets of one call.
pub(crate) struct CallSockets {
    gate: Arc<AddressGate>,
    memory_budget: MemoryBudget,
    deadline: Instant,
    lookup_count: u32,
    /// The resources of each WASI 0.2 socket, by its entry in the resource table.
    reservations: BTreeMap<u32, SocketResources>,
    /// Reference whose count is the number of sockets plus one.
    socket_count: Arc<()>,
}

/// The descriptor and the memory that a socket uses.
pub(crate) struct SocketResources {
    _descriptor: OpenDescriptor,
    _memory: ByteReservation,
    _socket_count: Arc<()>,
}

/// Access check for names and addresses.
pub(crate) struct AddressGate {
    rules: Option<Arc<ConnectionRules>>,
    /// The resolved names, by their addresses.
    resolved_names: Mutex<BTreeMap<IpAddr, BTreeSet<String>>>,
    denials: Arc<CallDenials>,
    effects: SideEffects,
    tcp_usage: Arc<TcpTraffic>,
}

/// Reason why a lookup failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolveFailure {
    /// The grant does not allow it.
    Denied,
    /// The name is invalid.
    Malformed,
    /// The name has no address, or the resolver did not answer.
    Failed,
    /// The call exceeded the number of lookups, its deadline, or its memory.
    LimitReached,
}

/// Reason why no socket was created.
#[derive(Debug)]
pub(crate) enum CreateSocketError {
    /// The call has too many sockets, or the server has no descriptor left.
    Limit,
    /// The call has no memory left.
    Memory(BudgetExceeded),
}

/// Returns whether the address can be the target of a connection. Port 0 is not valid, nor are
/// unspecified, multicast and IPv4-mapped IPv6 addresses. For the latter, an IPv4 socket exists.
pub(crate) fn is_connectable(address: SocketAddr) -> bool {
    let ip = address.ip();
    address.port() != 0 && ip == ip.to_canonical() && !ip.is_unspecified() && !ip.is_multicast()
}

/// Result of resolving a name or an IP literal.
pub(crate) type LookupResult = Result<Vec<IpAddr>, ResolveFailure>;

impl CallSockets {
    pub(crate) fn new(
        connections: &PluginConnections,
        denials: Arc<CallDenials>,
        effects: SideEffects,
        traffic: TcpTraffic,
        memory_budget: MemoryBudget,
        deadline: Instant,
    ) -> Self {
        let traffic = Arc::new(traffic);
        let gate = AddressGate {
            rules: connections.rules(),
            resolved_names: Mutex::default(),
            denials,
            effects,
            tcp_usage: traffic,
        };
        Self {
            gate: Arc::new(gate),
            memory_budget,
            deadline,
            lookup_count: 0,
            reservations: BTreeMap::new(),
            socket_count: Arc::default(),
        }
    }

    /// Returns the access check, which runs whenever the guest's sockets are about to use an
    /// address.
    pub(crate) fn gate(&self) -> Arc<AddressGate> {
        Arc::clone(&self.gate)
    }

    /// Returns the counters of connections and of their bytes.
    pub(crate) fn tcp_usage(&self) -> Arc<TcpTraffic> {
        Arc::clone(&self.gate.tcp_usage)
    }

    /// Reserves the resources of a new socket. `acquire_descriptor` acquires its descriptor.
    pub(crate) fn reserve(
        &self,
        acquire_descriptor: impl FnOnce() -> Option<OpenDescriptor>,
    ) -> Result<SocketResources, CreateSocketError> {
        let acquired = if Arc::strong_count(&self.socket_count) <= MAX_SOCKETS {
            acquire_descriptor()
        } else {
            None
        };
        let descriptor = acquired.ok_or_else(|| {
            self.gate.denials.report_denial(
                DenialKind::Tcp,
                "This call already has the maximum number of open sockets.",
                None,
            );
            CreateSocketError::Limit
        })?;
        let memory = self
            .memory_budget
            .reserve(SOCKET_MEMORY_BYTES)
            .map_err(CreateSocketError::Memory)?;
        Ok(SocketResources {
            _descriptor: descriptor,
            _memory: memory,
            _socket_count: Arc::clone(&self.socket_count),
        })
    }

    /// Stores the resources of a socket until it is [released](Self::release).
    pub(crate) fn attach(&mut self, rep: u32, resources: SocketResources) {
        self.reservations.insert(rep, resources);
    }

    /// Releases the resources of a socket.
    pub(crate) fn release(&mut self, rep: u32) {
        self.reservations.remove(&rep);
    }

    /// Starts to resolve a name. An IP literal resolves to itself; whether the guest may connect to
    /// it is checked later.
    pub(crate) fn resolve(
        &mut self,
        name: &str,
    ) -> Result<impl Future<Output = LookupResult> + Send + use<>, ResolveFailure> {
        let gate = self.gate();
        let host = match check_lookup(name, gate.rules()) {
            Ok(host) => host,
            Err(DenialReason::Authority(malformed)) => {
                gate.denials.report_denial(
                    DenialKind::NameLookup,
                    &format!("The name to resolve {malformed}."),
                    None,
                );
                return Err(ResolveFailure::Malformed);
            }
            Err(denied) => {
                gate.report_denial(DenialKind::NameLookup, &denied);
                return Err(ResolveFailure::Denied);
            }
        };
        self.lookup_count += 1;
        if self.lookup_count > MAX_LOOKUPS {
            gate.denials.report_denial(
                DenialKind::NameLookup,
                "This call has reached the maximum number of name lookups.",
                None,
            );
            return Err(ResolveFailure::LimitReached);
        }
        let deadline = self.deadline;
        let memory_budget = self.memory_budget.clone();
        Ok(async move {
            match (host, gate.rules.clone()) {
                (NormalizedHost::Ip(address), _) => Ok(vec![address]),
                (NormalizedHost::Name(name), Some(connection_rules)) => {
                    gate.effects.mark_unsupported(MissingInput::Connections);
                    let lookup = gate.resolve_allowed(&connection_rules, name, &memory_budget);
                    tokio::time::timeout_at(deadline.into(), lookup)
                        .await
                        .unwrap_or(Err(ResolveFailure::LimitReached))
                }
                (NormalizedHost::Name(_), None) => Err(ResolveFailure::Denied),
            }
        })
    }
}

impl AddressGate {
    fn rules(&self) -> &[TcpRule] {
        self.rules
            .as_ref()
            .map_or(&[], |connection_rules| connection_rules.rules.as_slice())
    }

    fn report_denial(&self, kind: DenialKind, denied: &DenialReason) {
        self.denials
            .report_denial(kind, &denied.to_string(), denied.remedy().as_deref());
    }

    /// Resolves a name. Returns the addresses that the guest may connect to, and records them for
    /// the name.
    async fn resolve_allowed(
        &self,
        connection_rules: &ConnectionRules,
        name: String,
        memory_budget: &MemoryBudget,
    ) -> LookupResult {
        let resolved = connection_rules
            .lookups
            .resolve(&name, Some(&connection_rules.lookup_slots))
            .await;
        let addresses = resolved.map_err(|error| {
            let details = error.details().unwrap_or_default();
            tracing::debug!(details, "a name was not resolved: {error}");
            ResolveFailure::Failed
        })?;
        let mut allowed = match filter_addresses(&addresses, &connection_rules.allowed_networks) {
            Ok(chosen) => chosen,
            Err(refused) => {
                let remedy = refused.remedy();
                self.denials.report_denial(
                    DenialKind::NameLookup,
                    &SendError::AddressesRefused(refused).to_string(),
                    remedy.as_deref(),
                );
                return Err(ResolveFailure::Denied);
            }
        };
        allowed.truncate(MAX_ADDRESSES);
        let mut resolved_names = self.resolved_names.lock();
        for address in &allowed {
            let names = resolved_names.entry(address.to_canonical()).or_default();
            if !names.contains(&name) {
                memory_budget
                    .charge(ADDRESS_MEMORY_BYTES + name.len())
                    .map_err(|BudgetExceeded| ResolveFailure::LimitReached)?;
                names.insert(name.clone());
            }
        }
        Ok(allowed)
    }

    /// Returns whether the guest's sockets may use an address for this purpose.
    pub(crate) fn allows(&self, address: SocketAddr, purpose: SocketAddrUse) -> bool {
        match purpose {
            SocketAddrUse::TcpConnect => self.allows_connect(address),
            // The system chooses the local address of a connection.
            SocketAddrUse::TcpBind if address.ip().is_unspecified() && address.port() == 0 => true,
            SocketAddrUse::TcpBind | SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => {
                self.denials.report_denial(
                    DenialKind::Tcp,
                    "No tool may accept connections.",
                    None,
                );
                false
            }
            SocketAddrUse::UdpBind | SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
                self.report_udp();
                false
            }
        }
    }

    /// Reports an attempt to connect to an address that is not a host's, such as port 0.
    pub(crate) fn report_invalid_address(&self, address: SocketAddr) {
        if address.port() == 0 {
            self.report_denial(DenialKind::Tcp, &DenialReason::ConnectionPortZero);
        } else {
            let message =
                format!("No tool may connect to {address}: that is not the address of a host.");
            self.denials.report_denial(DenialKind::Tcp, &message, None);
        }
    }

    /// Reports an attempt to use UDP.
    pub(crate) fn report_udp(&self) {
        self.denials.report_denial(
            DenialKind::Udp,
            "No tool may send or receive UDP datagrams.",
            None,
        );
    }

    fn allows_connect(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let port = address.port();
        if let Err(denied) = self.check_rules(ip, port) {
            self.report_denial(DenialKind::Tcp, &denied);
            return false;
        }
        let opened_addresses = self.rules.as_ref().map_or(&[][..], |connection_rules| {
            connection_rules.allowed_networks.as_slice()
        });
        match filter_addresses(&[ip], opened_addresses) {
            Ok(_) if self.tcp_usage.count_connection().is_ok() => {
                self.effects.block_questions(AskBlocker::TcpConnection);
                self.effects.mark_unsupported(MissingInput::Connections);
                true
            }
            Ok(_) => false,
            Err(refused) => {
                let remedy = refused.remedy();
                self.denials.report_denial(
                    DenialKind::Tcp,
                    &SendError::AddressesRefused(refused).to_string(),
                    remedy.as_deref(),
                );
                false
            }
        }
    }

    /// Checks whether a rule allows a connection to an address, either for the address itself or
    /// for a name that resolved to it.
    fn check_rules(&self, ip: IpAddr, port: u16) -> Result<(), DenialReason> {
        let rules = self.rules();
        let Err(denied) = (TcpRequest {
            host: &ip.to_string(),
            port,
        })
        .check(rules) else {
            return Ok(());
        };
        let resolved_names = self.resolved_names.lock();
        let mut name_denial = None;
        for name in resolved_names.get(&ip).into_iter().flatten() {
            match (TcpRequest { host: name, port }).check(rules) {
                Ok(_) => return Ok(()),
                Err(denied) => name_denial = Some(denied),
            }
        }
        // If the guest resolved a name, the denial refers to the name, not to the address.
        Err(name_denial.unwrap_or(denied))
    }
}

#[cfg(test)]
mod tests;
