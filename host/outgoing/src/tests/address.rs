//! Tests of the filter for resolved addresses.

use std::sync::atomic::Ordering;

use http::Response;

use super::setup::{Server, TestNetwork, get, read, send, text};
use crate::SendError;
use crate::pool_partition::PoolPartition;

#[tokio::test]
async fn a_name_that_leads_inside_is_denied() {
    let world = TestNetwork::new();
    let outlet = world.client_for(&["http://inside.example"], &[], 4);
    for addresses in [
        &["127.0.0.1"][..],
        &["169.254.169.254"],
        &["::ffff:10.0.0.1"],
        &["::1", "fd00::1", "10.0.0.1", "0.0.0.0", "64:ff9b::7f00:1"],
    ] {
        world.names.set("inside.example", &[addresses]);
        let error = send(&outlet, get("http://inside.example/"))
            .await
            .map(drop)
            .unwrap_err();
        let SendError::AddressesRefused(refused) = &error else {
            panic!("{addresses:?}: {error:?}")
        };
        assert_eq!(refused.addresses().len(), addresses.len());
        assert_eq!(
            error.to_string(),
            "This tool may not connect to the address of this host."
        );
        assert!(
            error.details().unwrap().contains("private_networks = "),
            "{error:?}"
        );
    }
    assert_eq!(outlet.connections(), (0, 4));
}

#[tokio::test]
async fn an_ip_literal_is_filtered_as_well() {
    let world = TestNetwork::new();
    let outlet = world.client_for(&["http://127.0.0.1:9"], &["10.0.0.0/8"], 4);
    for url in [
        "http://127.0.0.1:9/",
        "http://2130706433:9/",
        "http://127.1:9/",
    ] {
        let error = send(&outlet, get(url)).await.map(drop).unwrap_err();
        assert!(
            matches!(error, SendError::AddressesRefused(_)),
            "{url}: {error:?}"
        );
    }
    assert_eq!(world.names.lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_ones_are_used() {
    let server = Server::http(None, |_| async { Response::new(text("here")) }).await;
    let world = TestNetwork::new();
    world.names.set(
        "server.example",
        &[&["169.254.169.254", "10.0.0.1", "127.0.0.1", "::1"]],
    );
    let outlet = world.client(&server, 4);
    assert_eq!(
        read(send(&outlet, get(&server.url("http", "/"))).await.unwrap())
            .await
            .unwrap(),
        "here"
    );
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_asked_once_for_each_connection() {
    let server = Server::http(None, |_| async { Response::new(text("here")) }).await;
    let world = TestNetwork::new();
    world
        .names
        .set("server.example", &[&["127.0.0.1"], &["10.0.0.1"]]);
    let outlet = world.client(&server, 4);
    let url = server.url("http", "/");
    // The connection is reused: the name is not resolved.
    for _ in 0..3 {
        assert_eq!(
            read(send(&outlet, get(&url)).await.unwrap()).await.unwrap(),
            "here"
        );
        assert_eq!(world.names.lookups.load(Ordering::SeqCst), 1);
    }
    // Another credential requires another connection, and by now the name has a private address.
    let error = outlet
        .send(
            get(&url),
            &PoolPartition::from_secret(b"token"),
            super::setup::PATIENT,
            tokio::time::Instant::now() + super::setup::LONG,
            &super::setup::unlimited(),
        )
        .await
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, SendError::AddressesRefused(_)), "{error:?}");
    assert_eq!(world.names.lookups.load(Ordering::SeqCst), 2);
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn names_without_addresses() {
    let world = TestNetwork::new();
    world.names.set("empty.example", &[&[]]);
    let outlet = world.client_for(&["http://empty.example", "http://unknown.example"], &[], 4);
    let error = async |url| send(&outlet, get(url)).await.map(drop).unwrap_err();
    assert_eq!(error("http://empty.example/").await, SendError::NoAddress);
    let unknown = error("http://unknown.example/").await;
    assert_eq!(
        unknown,
        SendError::Resolve("unknown.example: no such name".to_owned())
    );
    assert_eq!(
        unknown.to_string(),
        "The name of the host could not be resolved."
    );
}
