//! Tests of `fair_semaphore`.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::*;

type Acquiring = Pin<Box<dyn Future<Output = FairPermits> + Send>>;

fn acquiring(
    semaphore: &Arc<FairSemaphore>,
    party: PartyId,
    amount: u32,
    turn: WaitPriority,
) -> Acquiring {
    let semaphore = Arc::clone(semaphore);
    Box::pin(async move { semaphore.acquire(party, amount, turn).await })
}

/// Polls once, and returns the permits if they are granted.
async fn now(acquiring: &mut Acquiring) -> Option<FairPermits> {
    poll_fn(|task| {
        Poll::Ready(match acquiring.as_mut().poll(task) {
            Poll::Ready(permits) => Some(permits),
            Poll::Pending => None,
        })
    })
    .await
}

/// Returns a future that waits for a permit.
async fn queued(semaphore: &Arc<FairSemaphore>, party: PartyId, turn: WaitPriority) -> Acquiring {
    let mut acquiring = acquiring(semaphore, party, 1, turn);
    assert!(now(&mut acquiring).await.is_none());
    acquiring
}

#[tokio::test]
async fn a_permit_goes_to_the_party_with_the_fewest() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(4));
    let mut many: Vec<_> = (0..3)
        .map(|_| semaphore.try_acquire(1, 1).unwrap())
        .collect();
    let few = semaphore.try_acquire(2, 1).unwrap();
    let mut first = queued(&semaphore, 1, WaitPriority::New).await;
    let mut second = queued(&semaphore, 2, WaitPriority::New).await;
    let mut third = queued(&semaphore, 3, WaitPriority::New).await;
    many.pop();
    assert!(now(&mut first).await.is_none() && now(&mut second).await.is_none());
    let third = now(&mut third).await.expect("it holds no permits");
    many.pop();
    let first = now(&mut first)
        .await
        .expect("both hold equally many, and this one was served longer ago");
    assert!(now(&mut second).await.is_none());
    drop((few, third, many, first));
    assert!(now(&mut second).await.is_some());
}

#[tokio::test]
async fn within_a_party_resumed_waiters_go_first_then_the_oldest() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(1));
    let held = semaphore.try_acquire(1, 1).unwrap();
    let mut first = queued(&semaphore, 1, WaitPriority::New).await;
    let mut second = queued(&semaphore, 1, WaitPriority::New).await;
    let mut again = queued(&semaphore, 1, WaitPriority::Resumed).await;
    drop(held);
    assert!(now(&mut first).await.is_none() && now(&mut second).await.is_none());
    drop(now(&mut again).await.unwrap());
    assert!(now(&mut second).await.is_none());
    drop(now(&mut first).await.unwrap());
    drop(now(&mut second).await.unwrap());
    assert_eq!(semaphore.permits_in_use(), 0);
}

#[tokio::test]
async fn resumed_waiters_do_not_starve_new_ones() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(1));
    let mut held = semaphore.try_acquire(1, 1).unwrap();
    let mut new = queued(&semaphore, 1, WaitPriority::New).await;
    for _ in 0..MAX_CONSECUTIVE_RESUMES {
        let mut again = queued(&semaphore, 1, WaitPriority::Resumed).await;
        drop(held);
        assert!(now(&mut new).await.is_none());
        held = now(&mut again).await.unwrap();
    }
    let mut again = queued(&semaphore, 1, WaitPriority::Resumed).await;
    drop(held);
    assert!(now(&mut again).await.is_none());
    drop(now(&mut new).await.unwrap());
    assert!(now(&mut again).await.is_some());
}

#[tokio::test]
async fn a_party_without_permits_does_not_wait_behind_a_larger_request() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(4));
    let _held =
        [(1, 2), (3, 1)].map(|(party, amount)| semaphore.try_acquire(party, amount).unwrap());
    let mut much = acquiring(&semaphore, 3, 3, WaitPriority::New);
    assert!(now(&mut much).await.is_none());
    let mut little = acquiring(&semaphore, 2, 1, WaitPriority::New);
    assert!(
        now(&mut little).await.is_some(),
        "it holds the fewest permits, and enough are free"
    );
}

#[tokio::test]
async fn a_wait_that_is_dropped_in_any_state_loses_no_permit() {
    // States of the future before it is dropped: not polled, waiting, granted, polled after the
    // grant.
    for looks in [0, 1, 2, 3] {
        for turn in [WaitPriority::Resumed, WaitPriority::New] {
            let semaphore = Arc::new(FairSemaphore::without_party_limit(2));
            let mut held = vec![
                semaphore.try_acquire(1, 1).unwrap(),
                semaphore.try_acquire(1, 1).unwrap(),
            ];
            let mut gone = acquiring(&semaphore, 2, 1, turn);
            let mut taken = None;
            if looks > 0 {
                assert!(now(&mut gone).await.is_none());
            }
            if looks > 1 {
                held.pop();
            }
            if looks > 2 {
                taken = now(&mut gone).await;
                assert!(taken.is_some());
            }
            drop(gone);
            drop(taken);
            held.clear();
            assert_eq!(semaphore.permits_in_use(), 0, "{looks}");
            let all: Vec<_> = (0..2)
                .map(|_| semaphore.try_acquire(3, 1).expect("no party waits"))
                .collect();
            drop(all);
            assert!(semaphore.lock().parties.values().all(PartyState::is_idle));
        }
    }
}

#[tokio::test]
async fn parties_with_equally_many_permits_take_turns() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(1));
    let mut held = semaphore.try_acquire(1, 1);
    let mut waiting = Vec::new();
    for party in [1, 1, 1, 2, 2, 3] {
        // Resumed waiters do not displace others.
        waiting.push((
            party,
            queued(&semaphore, party, WaitPriority::Resumed).await,
        ));
    }
    let mut order = Vec::new();
    while let Some(permits) = held.take() {
        drop(permits);
        for (at, (party, acquiring)) in waiting.iter_mut().enumerate() {
            if let Some(permits) = now(acquiring).await {
                order.push(*party);
                held = Some(permits);
                drop(waiting.remove(at));
                break;
            }
        }
    }
    assert_eq!(
        order,
        [1, 2, 3, 1, 2, 1],
        "party 1 was served before the others arrived, then the parties take turns"
    );
}

#[tokio::test]
async fn one_party_never_exceeds_its_limit_or_delays_others() {
    let semaphore = Arc::new(FairSemaphore::new(4, 3));
    let held: Vec<_> = (0..3)
        .map(|_| semaphore.try_acquire(1, 1).unwrap())
        .collect();
    let mut fourth = queued(&semaphore, 1, WaitPriority::Resumed).await;
    let other = semaphore
        .try_acquire(2, 1)
        .expect("the last permit is reserved for others");
    drop(other);
    assert!(now(&mut fourth).await.is_none());
    drop(held);
    assert!(now(&mut fourth).await.is_some());
    assert_eq!(semaphore.permits_in_use(), 0);
    let whole = semaphore
        .try_acquire(1, 9)
        .expect("a party without permits gets all of them");
    assert_eq!(semaphore.permits_in_use(), 4);
    drop(whole);
}

#[test]
fn a_semaphore_without_permits_grants_nothing() {
    assert!(
        Arc::new(FairSemaphore::without_party_limit(0))
            .try_acquire(1, 1)
            .is_none()
    );
}

#[tokio::test]
async fn a_large_request_is_not_starved() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(4));
    let one = semaphore.try_acquire(1, 2).unwrap();
    let two = semaphore.try_acquire(2, 2).unwrap();
    let mut much = acquiring(&semaphore, 3, 4, WaitPriority::New);
    assert!(now(&mut much).await.is_none());
    drop(one);
    assert!(
        semaphore.try_acquire(4, 1).is_none(),
        "the free permits are reserved for it"
    );
    drop(two);
    drop(now(&mut much).await.unwrap());
    assert_eq!(semaphore.permits_in_use(), 0);
}

#[tokio::test]
async fn a_dropped_waiter_leaves_and_its_grant_goes_to_the_next() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(1));
    let held = semaphore.try_acquire(1, 1).unwrap();
    let first = queued(&semaphore, 2, WaitPriority::New).await;
    let second = queued(&semaphore, 3, WaitPriority::New).await;
    let mut third = queued(&semaphore, 4, WaitPriority::New).await;
    drop(first);
    drop(held);
    assert!(
        now(&mut third).await.is_none(),
        "the second waiter was granted the permit"
    );
    drop(second);
    let third = now(&mut third).await.unwrap();
    drop(third);
    assert_eq!(semaphore.permits_in_use(), 0);
    let state = semaphore.lock();
    assert!(
        state.eligible.is_empty() && state.parties.values().all(PartyState::is_idle),
        "the waiters left no state"
    );
}

#[tokio::test]
async fn dropping_a_large_request_lets_a_smaller_one_proceed() {
    let semaphore = Arc::new(FairSemaphore::without_party_limit(2));
    let _held = semaphore.try_acquire(1, 1).unwrap();
    let mut much = acquiring(&semaphore, 2, 2, WaitPriority::New);
    assert!(now(&mut much).await.is_none());
    let mut little = queued(&semaphore, 3, WaitPriority::New).await;
    drop(much);
    assert!(now(&mut little).await.is_some());
}

#[test]
fn under_load_no_permit_is_lost_or_created() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .unwrap();
    let semaphore = Arc::new(FairSemaphore::new(3, 2));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..32_u64)
            .map(|task| {
                let semaphore = Arc::clone(&semaphore);
                tokio::spawn(async move {
                    for round in 0..200_u64 {
                        let turn = if round % 3 == 0 {
                            WaitPriority::Resumed
                        } else {
                            WaitPriority::New
                        };
                        let mut acquiring =
                            acquiring(&semaphore, task % 5, 1 + (round % 2) as u32, turn);
                        if (task + round) % 7 == 0 {
                            // Dropped, whether or not it was granted.
                            drop(now(&mut acquiring).await);
                            tokio::task::yield_now().await;
                            continue;
                        }
                        let permits = acquiring.await;
                        assert!(semaphore.permits_in_use() <= 3);
                        tokio::task::yield_now().await;
                        drop(permits);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(semaphore.permits_in_use(), 0);
    let state = semaphore.lock();
    assert!(state.eligible.is_empty() && state.parties.len() <= MIN_RETAINED_PARTIES);
    assert!(state.parties.values().all(PartyState::is_idle));
}
