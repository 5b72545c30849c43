//! Tests of `resource_subscriptions`.

use futures_util::FutureExt as _;

use super::*;

/// Returns the URIs of which the subscriber would be notified now.
fn take_notifications(subscriber: &UpdateSubscriber) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(uri) = subscriber.next_change(|_| true).now_or_never() {
        assert!(subscriber.clear_mark(&uri));
        told.push(uri.to_string());
    }
    told
}

#[test]
fn a_subscriber_is_notified_once_of_each_subscribed_uri() {
    let updates = ResourceUpdates::default();
    let ada = updates.subscriber();
    let bob = updates.subscriber();
    for uri in ["a://x", "a://y/z", "a://y/z"] {
        ada.add("ada", uri).unwrap();
    }
    bob.add("bob", "a://x").unwrap();
    for _ in 0..3 {
        updates.notify_changed("a://y/z");
        updates.notify_changed("a://x");
        updates.notify_changed("a://other");
    }
    assert_eq!(take_notifications(&ada), ["a://y/z", "a://x"]);
    assert_eq!(take_notifications(&bob), ["a://x"]);
    ada.remove("a://x");
    updates.notify_changed("a://x");
    assert_eq!(
        (
            take_notifications(&ada).len(),
            take_notifications(&bob).len()
        ),
        (0, 1)
    );
}

#[test]
fn a_change_marks_the_ancestors_of_a_resource() {
    let updates = ResourceUpdates::default();
    let told = |named: &str, changed: &str| {
        let subscriber = updates.subscriber();
        subscriber.add("ada", named).unwrap();
        updates.notify_changed(changed);
        take_notifications(&subscriber) == [named]
    };
    assert!(
        told("a://b", "a://b/c/d") && told("a://b/", "a://b/c/d") && told("a://b/c", "a://b/c/d")
    );
    assert!(!told("a://b", "a://bc") && !told("a://b/c/d", "a://b/c") && !told("a:", "a://b"));
    assert!(!told("a:/", "a://b") && !told("a://", "a://b"));
    assert!(told("mem:x", "mem:x/y") && told("mem:x", "mem:x"));
}

#[test]
fn a_uri_with_many_slashes_costs_few_lookups() {
    let long = format!("a://{}", "b/".repeat(1 << 20));
    assert_eq!(ancestors_and_self(&long).count(), 2 * MAX_ANCESTORS);
    assert_eq!(
        ancestors_and_self("a://b/").collect::<Vec<_>>(),
        ["a://b", "a://b/"]
    );
    let umlauts = format!("a:{}", "ü".repeat(MAX_URI_BYTES));
    assert_eq!(ancestors_and_self(&umlauts).count(), 0);
}

#[test]
fn a_change_waits_for_a_stream_that_may_report_it() {
    let updates = ResourceUpdates::default();
    let subscriber = updates.subscriber();
    for uri in ["a:1", "a:2"] {
        subscriber.add("ada", uri).unwrap();
        updates.notify_changed(uri);
    }
    let second = subscriber.next_change(|uri| uri == "a:2").now_or_never();
    assert_eq!(second.as_deref(), Some("a:2"));
    assert!(subscriber.clear_mark("a:2") && !subscriber.clear_mark("a:2"));
    assert!(
        subscriber
            .next_change(|uri| uri == "a:2")
            .now_or_never()
            .is_none()
    );
    assert_eq!(take_notifications(&subscriber), ["a:1"]);
}

#[test]
fn a_change_survives_the_stream_that_it_woke() {
    let updates = ResourceUpdates::default();
    let subscriber = updates.subscriber();
    subscriber.add("ada", "a:1").unwrap();
    let mut old = Box::pin(subscriber.next_change(|_| true));
    let mut new = Box::pin(subscriber.next_change(|_| true));
    assert!(old.as_mut().now_or_never().is_none() && new.as_mut().now_or_never().is_none());
    let woken = futures_util::task::noop_waker();
    let mut context = std::task::Context::from_waker(&woken);
    updates.notify_changed("a:1");
    assert!(old.as_mut().poll(&mut context).is_ready());
    drop(old);
    assert!(new.as_mut().poll(&mut context).is_ready());
}

#[test]
fn subscriptions_are_bounded_for_a_subscriber_and_for_a_caller() {
    let updates = ResourceUpdates::default();
    let subscriber = updates.subscriber();
    let uri = |n: usize| format!("a://{n:0>width$}", width = MAX_URI_BYTES - 4);
    assert_eq!(
        subscriber.add("ada", &"x".repeat(MAX_URI_BYTES + 1)),
        Err(SubscriptionRefused::TooLong)
    );
    let added = (0..10_000)
        .filter(|n| subscriber.add("ada", &format!("a:{n}")).is_ok())
        .count();
    assert_eq!(added, MAX_SUBSCRIPTIONS);
    assert_eq!(
        subscriber.add("ada", "a:x"),
        Err(SubscriptionRefused::TooMany)
    );
    // More sessions do not raise the limit.
    let others: Vec<_> = (0..10).map(|_| updates.subscriber()).collect();
    let refused = (0..10 * MAX_SUBSCRIPTIONS)
        .find_map(|n| others[n / MAX_SUBSCRIPTIONS].add("ada", &uri(n)).err());
    assert_eq!(
        refused,
        Some(SubscriptionRefused::OverQuota(QuotaExhausted::Own(
            MAX_CALLER_BYTES
        )))
    );
    others[9].add("bob", "a:bob").unwrap();
    drop(others);
    subscriber.remove("a:0");
    subscriber.add("ada", "a:x").unwrap();
    drop(subscriber);
    assert_eq!((updates.bytes_of("ada"), updates.bytes_of("bob")), (0, 0));
    assert!(updates.subscriptions().is_empty());
}

#[test]
fn a_cleared_subscription_reports_no_changes() {
    let updates = ResourceUpdates::default();
    let subscriber = updates.subscriber();
    subscriber.add("ada", "a:1").unwrap();
    updates.notify_changed("a:1");
    subscriber.clear();
    updates.notify_changed("a:1");
    assert!(take_notifications(&subscriber).is_empty() && updates.subscriptions().is_empty());
}
