//! Tests of `yielding`.

use super::*;

/// Returns `Pending` `n` times and wakes itself each time, as a fuel yield does.
async fn yields(mut n: u32) -> &'static str {
    std::future::poll_fn(|task| {
        if n == 0 {
            return Poll::Ready("done");
        }
        n -= 1;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[tokio::test]
async fn a_yielding_call_finishes_and_lets_others_run() {
    let other = tokio::spawn(async { "other" });
    let meter = CpuMeter::default();
    assert_eq!(
        drive_cooperatively(
            meter.clone(),
            PendingRequests::default(),
            None,
            yields(1000)
        )
        .await,
        "done"
    );
    assert!(!meter.has_idled(), "a call that yields has something to do");
    assert!(other.is_finished(), "the other task ran between two yields");
}

#[tokio::test]
async fn a_call_that_computes_yields_after_each_slice_and_at_once_the_first_time() {
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let computes = |mut steps: u32, each: Duration| {
        std::future::poll_fn(move |task| {
            let start = thread_cpu_time();
            while thread_cpu_time().checked_sub(start).unwrap() < each {
                std::hint::spin_loop();
            }
            steps -= 1;
            if steps == 0 {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
    };
    let meter = CpuMeter::default();
    drive_cooperatively(
        meter.clone(),
        PendingRequests::default(),
        None,
        computes(2, MIN_COMPUTE_STEP * 2),
    )
    .await;
    let first = turns.swap(0, Ordering::Relaxed);
    assert_eq!(first, 1, "it gave way after its first step");
    let before = meter.nanoseconds();
    drive_cooperatively(
        meter.clone(),
        PendingRequests::default(),
        None,
        computes(100, MIN_COMPUTE_STEP * 2),
    )
    .await;
    let slices = (meter.nanoseconds() - before) / u64::try_from(YIELD_SLICE.as_nanos()).unwrap();
    let turns = turns.load(Ordering::Relaxed);
    assert!(
        (2..=slices + 1).contains(&turns),
        "{turns} turns in {slices} slices"
    );
    other.abort();
}

#[tokio::test]
async fn cpu_time_is_counted_and_waiting_is_not() {
    let meter = CpuMeter::default();
    let before = thread_cpu_time();
    let busy = async {
        while thread_cpu_time().checked_sub(before).unwrap() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
    };
    drive_cooperatively(meter.clone(), PendingRequests::default(), None, busy).await;
    let busy = meter.nanoseconds();
    assert!(busy >= 1_900_000, "{busy}");
    drive_cooperatively(
        meter.clone(),
        PendingRequests::default(),
        None,
        tokio::time::sleep(std::time::Duration::from_millis(20)),
    )
    .await;
    let waited = meter.nanoseconds() - busy;
    assert!(waited < 10_000_000, "{waited}");
    assert!(meter.has_idled());
}

#[tokio::test]
async fn a_wake_from_elsewhere_is_not_lost() {
    let (tx, rx) = tokio::sync::oneshot::channel();
    let call = tokio::spawn(drive_cooperatively(
        CpuMeter::default(),
        PendingRequests::default(),
        None,
        rx,
    ));
    tokio::task::yield_now().await;
    tx.send(7).unwrap();
    assert_eq!(call.await.unwrap(), Ok(7));
}

/// Counts how often a call released its permit and acquired one again.
struct CountedPermit {
    is_releasable: bool,
    release_count: AtomicU64,
    acquire_count: AtomicU64,
    /// One permit for each time that the call can continue.
    semaphore: tokio::sync::Semaphore,
}

impl CountedPermit {
    fn new(is_releasable: bool, permits: usize) -> Self {
        let semaphore = tokio::sync::Semaphore::new(permits);
        Self {
            is_releasable,
            release_count: AtomicU64::new(0),
            acquire_count: AtomicU64::new(0),
            semaphore,
        }
    }

    fn counts(&self) -> (u64, u64) {
        (
            self.release_count.load(Ordering::SeqCst),
            self.acquire_count.load(Ordering::SeqCst),
        )
    }
}

impl ComputePermit for CountedPermit {
    fn release(&self) -> bool {
        self.release_count.fetch_add(1, Ordering::SeqCst);
        self.is_releasable
    }

    fn acquire(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.semaphore.acquire().await.unwrap().forget();
            self.acquire_count.fetch_add(1, Ordering::SeqCst);
        })
    }
}

#[tokio::test]
async fn a_call_that_computes_keeps_its_permit() {
    let permit = CountedPermit::new(true, 0);
    drive_cooperatively(
        CpuMeter::default(),
        PendingRequests::default(),
        Some(&permit),
        yields(100),
    )
    .await;
    drive_cooperatively(
        CpuMeter::default(),
        PendingRequests::default(),
        Some(&permit),
        yield_briefly(),
    )
    .await;
    assert_eq!(permit.counts(), (0, 0));
}

#[tokio::test]
async fn a_call_that_waits_releases_its_permit_and_continues_only_with_one() {
    for is_releasable in [true, false] {
        let permit = CountedPermit::new(is_releasable, 0);
        let (tx, rx) = tokio::sync::oneshot::channel();
        let mut call = pin!(drive_cooperatively(
            CpuMeter::default(),
            PendingRequests::default(),
            Some(&permit),
            rx
        ));
        let mut poll_once = async || poll_fn(|task| Poll::Ready(call.as_mut().poll(task))).await;
        assert!(poll_once().await.is_pending());
        assert_eq!(permit.counts(), (1, 0));
        tx.send(7).unwrap();
        if is_releasable {
            assert!(poll_once().await.is_pending(), "no permit is available");
            permit.semaphore.add_permits(1);
        }
        assert_eq!(poll_once().await, Poll::Ready(Ok(7)));
        assert_eq!(permit.counts(), (1, u64::from(is_releasable)));
    }
}

#[tokio::test]
async fn requests_continue_while_a_call_has_no_permit() {
    let permit = CountedPermit::new(true, 0);
    let pending_requests = PendingRequests::default();
    let (sent, is_sent) = tokio::sync::oneshot::channel();
    let (go, may_go) = tokio::sync::oneshot::channel::<()>();
    let requests = pending_requests.clone();
    let call = drive_cooperatively(
        CpuMeter::default(),
        pending_requests,
        Some(&permit),
        async move {
            let _awaited = requests.start(async move {
                may_go.await.unwrap();
                sent.send(()).unwrap();
                std::future::pending().await
            });
            std::future::pending::<()>().await;
        },
    );
    let others = async {
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        is_sent.await.unwrap();
    };
    tokio::select! {
        () = call => unreachable!("it waits forever"),
        () = others => {}
    }
    assert_eq!(permit.counts(), (1, 0));
}
