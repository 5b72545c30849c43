use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytesize::ByteSize;
use toolbay_model::{CallObserver, Limits, NoopObserver};
use toolbay_outgoing::{LookupLimiter, NameResolver};

use super::*;
use crate::context::replay_log::ReplayTape;
use toolbay_secrets::SecretFilter;

/// Names with their addresses; all other names have none.
struct Names(Vec<(&'static str, Vec<IpAddr>)>);

impl NameResolver for Names {
    fn resolve(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let found = self
            .0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, addresses)| addresses.clone());
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Returns the sockets of a call with these rules and this much memory.
fn sockets(rules: &[&str], opened: &[&str], memory: u64) -> CallSockets {
    let many = (0..100_u8).map(|n| IpAddr::from([8, 8, 4, n])).collect();
    let names = Names(vec![
        (
            "public.example.com",
            vec![ip("8.8.8.8"), ip("2001:4860:4860::8888")],
        ),
        (
            "private.example.com",
            vec![ip("10.0.0.7"), ip("127.0.0.1"), ip("169.254.169.254")],
        ),
        ("mixed.example.com", vec![ip("10.0.0.7"), ip("8.8.8.8")]),
        ("many.example.com", many),
        ("none.example.com", vec![]),
    ]);
    let rules = rules
        .iter()
        .map(|rule| TcpRule::parse(rule).unwrap())
        .collect();
    let opened = opened.iter().map(|address| ip(address).into()).collect();
    let connections =
        PluginConnections::new(Arc::new(LookupLimiter::new(Arc::new(names))), rules, opened);
    let observer: Arc<dyn CallObserver> = Arc::new(NoopObserver);
    let denials = Arc::new(CallDenials::new(
        observer,
        Arc::new(SecretFilter::default()),
    ));
    let account = MemoryBudget::new(ByteSize::b(memory));
    CallSockets::new(
        &connections,
        denials,
        SideEffects::new(
            false,
            &Arc::default(),
            &Limits::DEFAULT,
            &account,
            ReplayTape::default(),
        ),
        TcpTraffic::new(&Limits::DEFAULT),
        account,
        Instant::now() + Duration::from_mins(10),
    )
}

async fn resolved(sockets: &mut CallSockets, name: &str) -> LookupResult {
    sockets.resolve(name)?.await
}

fn connects(sockets: &CallSockets, address: &str) -> bool {
    sockets
        .gate()
        .allows(address.parse().unwrap(), SocketAddrUse::TcpConnect)
}

const EXAMPLE: [&str; 2] = ["*.example.com:443", "8.8.4.4:53"];

#[tokio::test]
async fn an_address_is_known_once_its_name_was_resolved_and_at_the_port_of_the_rule() {
    let mut sockets = sockets(&EXAMPLE, &[], 1 << 20);
    assert!(!connects(&sockets, "8.8.8.8:443"), "no name was resolved");
    assert_eq!(
        resolved(&mut sockets, "Public.Example.COM.")
            .await
            .unwrap()
            .len(),
        2
    );
    assert!(connects(&sockets, "8.8.8.8:443") && connects(&sockets, "[::ffff:8.8.8.8]:443"));
    assert!(connects(&sockets, "[2001:4860:4860::8888]:443"));
    assert!(
        !connects(&sockets, "8.8.8.8:80")
            && !connects(&sockets, "8.8.8.9:443")
            && !connects(&sockets, "8.8.8.8:0")
    );
    assert!(connects(&sockets, "8.8.4.4:53") && !connects(&sockets, "8.8.4.4:443"));
    let denial = sockets.gate.denials.first_denial().unwrap();
    assert_eq!(
        denial,
        "This tool may connect to an IP address only if its grant lists it."
    );
}

#[tokio::test]
async fn a_guest_sees_only_addresses_that_it_may_connect_to() {
    let mut closed = sockets(&EXAMPLE, &[], 1 << 20);
    assert_eq!(
        resolved(&mut closed, "private.example.com").await,
        Err(ResolveFailure::Denied)
    );
    assert_eq!(
        resolved(&mut closed, "mixed.example.com").await,
        Ok(vec![ip("8.8.8.8")])
    );
    assert!(!connects(&closed, "10.0.0.7:443") && !connects(&closed, "169.254.169.254:443"));
    let mut opened = sockets(&EXAMPLE, &["10.0.0.7"], 1 << 20);
    assert_eq!(
        resolved(&mut opened, "private.example.com").await,
        Ok(vec![ip("10.0.0.7")])
    );
    assert!(connects(&opened, "10.0.0.7:443") && !connects(&opened, "127.0.0.1:443"));
    // An opened address is not a rule.
    assert!(!connects(
        &sockets(&EXAMPLE, &["10.0.0.7"], 1 << 20),
        "10.0.0.7:443"
    ));
    // A rule does not open an address.
    assert!(!connects(
        &sockets(&["127.0.0.1:443"], &[], 1 << 20),
        "127.0.0.1:443"
    ));
}

#[tokio::test]
async fn names_beyond_the_rules_are_not_resolved() {
    let mut sockets = sockets(&EXAMPLE, &[], 1 << 20);
    for (name, expected) in [
        ("example.com", Err(ResolveFailure::Denied)),
        ("public.example.org", Err(ResolveFailure::Denied)),
        ("none.example.com", Err(ResolveFailure::Failed)),
        ("unknown.example.com", Err(ResolveFailure::Failed)),
        ("", Err(ResolveFailure::Malformed)),
        ("a@public.example.com", Err(ResolveFailure::Malformed)),
        ("10.0.0.7", Ok(vec![ip("10.0.0.7")])),
        ("::1", Ok(vec![ip("::1")])),
    ] {
        assert_eq!(resolved(&mut sockets, name).await, expected, "{name}");
    }
    // A known address is not necessarily allowed.
    assert!(!connects(&sockets, "10.0.0.7:443"));
}

#[tokio::test]
async fn lookups_of_a_call_are_bounded() {
    let mut call_sockets = sockets(&EXAMPLE, &[], 1 << 20);
    assert_eq!(
        resolved(&mut call_sockets, "many.example.com")
            .await
            .unwrap()
            .len(),
        MAX_ADDRESSES
    );
    for _ in 1..MAX_LOOKUPS {
        resolved(&mut call_sockets, "public.example.com")
            .await
            .unwrap();
    }
    assert_eq!(
        resolved(&mut call_sockets, "public.example.com").await,
        Err(ResolveFailure::LimitReached)
    );
    assert!(
        call_sockets.memory_budget.peak() < (MAX_ADDRESSES + 2) * 2 * ADDRESS_MEMORY_BYTES,
        "resolving a name again reserves nothing"
    );
    let mut without_memory = sockets(&EXAMPLE, &[], 100);
    assert_eq!(
        resolved(&mut without_memory, "public.example.com").await,
        Err(ResolveFailure::LimitReached)
    );
    assert!(!connects(&without_memory, "8.8.8.8:443"));
}

/// Never has an answer.
struct Silent;

impl NameResolver for Silent {
    fn resolve(&self, _: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_lookup_ends_with_the_time_of_the_call() {
    let other = sockets(&EXAMPLE, &[], 1 << 20);
    let rules = vec![TcpRule::parse("a.example.com:1").unwrap()];
    let silent = PluginConnections::new(
        Arc::new(LookupLimiter::new(Arc::new(Silent))),
        rules,
        Vec::new(),
    );
    let mut expiring = CallSockets::new(
        &silent,
        Arc::clone(&other.gate.denials),
        SideEffects::new(
            false,
            &Arc::default(),
            &Limits::DEFAULT,
            &other.memory_budget,
            ReplayTape::default(),
        ),
        TcpTraffic::new(&Limits::DEFAULT),
        other.memory_budget,
        Instant::now(),
    );
    assert_eq!(
        resolved(&mut expiring, "a.example.com").await,
        Err(ResolveFailure::LimitReached)
    );
}

#[test]
fn only_outgoing_connections_are_allowed() {
    let sockets = sockets(&["8.8.8.8:1", "0.0.0.0:1"], &[], 1 << 20);
    let allows = |address: &str, purpose| sockets.gate().allows(address.parse().unwrap(), purpose);
    assert!(
        allows("0.0.0.0:0", SocketAddrUse::TcpBind),
        "every connection begins with this bind"
    );
    assert!(allows("[::]:0", SocketAddrUse::TcpBind));
    assert!(
        !allows("0.0.0.0:80", SocketAddrUse::TcpBind)
            && !allows("127.0.0.1:0", SocketAddrUse::TcpBind)
    );
    for purpose in [
        SocketAddrUse::TcpListen,
        SocketAddrUse::TcpAccept,
        SocketAddrUse::UdpBind,
        SocketAddrUse::UdpSend,
        SocketAddrUse::UdpReceive,
    ] {
        assert!(!allows("8.8.8.8:1", purpose), "{purpose:?}");
    }
    assert!(!allows("0.0.0.0:1", SocketAddrUse::TcpConnect));
}
