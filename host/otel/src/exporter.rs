//! The exporter thread, which runs a task for each signal.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Alive, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use tokio::runtime::Builder;
use tokio::select;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::RetryBackoff;
use crate::client::{RetryPolicy, SignalClient};
use crate::encode::{self, ResourceAttributes};
use crate::health::{ExportHealth, report_unsent};
use crate::metric_family::MetricFamily;
use crate::queue::{MAX_BATCH_ITEMS, SignalQueue};
use crate::shared_state::{TelemetryState, mark_exporter_thread};
use crate::signal::SignalKind;
use crate::timing::ExportTiming;

/// Function that returns the current metrics. It may block briefly.
pub(crate) type MetricSource = Arc<dyn Fn() -> Vec<MetricFamily> + Send + Sync>;

/// Maximum number of blocking threads, which resolve host names and collect metrics.
const MAX_BLOCKING_THREADS: usize = 4;

/// Shuts the exporter thread down when it is dropped. Waits briefly until the remaining items are
/// sent.
#[derive(Debug)]
pub struct ExporterGuard {
    token: CancellationToken,
    /// In a mutex, because an embedder can share the server between threads.
    thread_end: Mutex<Receiver<()>>,
    timeout: Duration,
}

impl Drop for ExporterGuard {
    fn drop(&mut self) {
        self.token.cancel();
        // The thread never sends a value. The receiver disconnects when the thread ends.
        let ended = self.thread_end.get_mut();
        let waited = ended.recv_timeout(self.timeout);
        if waited == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the server ends before the thread of telemetry does (otel)");
        }
    }
}

/// Reason that the exporter thread cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// Starts the exporter thread.
///
/// # Errors
///
/// Returns the reason if the thread cannot be started or a certificate file is invalid.
pub(crate) fn start(
    inner: Arc<TelemetryState>,
    measure: MetricSource,
) -> Result<ExporterGuard, StartError> {
    let settings = &inner.settings;
    let tls = (settings.endpoint.scheme() == "https")
        .then(|| crate::tls::connector(&settings.extra_ca_files))
        .transpose();
    let tls = tls.map_err(|why| StartError(format!("otel.extra_ca: {why}")))?;
    let clients = SignalKind::ALL.map(|signal| SignalClient::new(settings, signal, tls.clone()));
    let [traces, metrics, logs] = clients;
    let clients = [
        traces.map_err(StartError)?,
        metrics.map_err(StartError)?,
        logs.map_err(StartError)?,
    ];
    let token = CancellationToken::new();
    let (alive, ended) = channel();
    let patience = inner.timing.end + Duration::from_millis(500);
    let ending = ExporterGuard {
        token: token.clone(),
        thread_end: Mutex::new(ended),
        timeout: patience,
    };
    let builder = thread::Builder::new().name("toolbay-otel".to_owned());
    let failed = |error| StartError(format!("cannot start the thread of telemetry: {error}"));
    builder
        .spawn(move || run_thread(&inner, clients, measure, &token, alive))
        .map_err(failed)?;
    Ok(ending)
}

fn run_thread(
    inner: &Arc<TelemetryState>,
    clients: [SignalClient; 3],
    measure: MetricSource,
    token: &CancellationToken,
    alive: Alive<()>,
) {
    mark_exporter_thread();
    let runtime = match Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(
                "no telemetry is sent (otel): the system has no resources for it: {error}"
            );
            return;
        }
    };
    let end = inner.timing.end;
    runtime.block_on(async {
        let late = async {
            token.cancelled().await;
            sleep(end).await;
        };
        select! {
            () = run_signals(inner, clients, measure, token) => {}
            () = late => {}
        }
    });
    // Blocking tasks that are still running have nothing to export.
    runtime.shutdown_background();
    report_unsent(SignalKind::Traces, inner.spans.close());
    report_unsent(SignalKind::Logs, inner.records.close());
    drop(alive);
}

async fn run_signals(
    inner: &Arc<TelemetryState>,
    clients: [SignalClient; 3],
    measure: MetricSource,
    token: &CancellationToken,
) {
    let resource = ResourceAttributes::new(&inner.settings.resource);
    let [traces, metrics, logs] = clients;
    let sender = |signal, client| SignalSender::new(inner, signal, client, token.clone());
    let spans = async {
        if inner.settings.traces {
            let encode = |spans| encode::encode_spans(&resource, spans);
            send_items(&inner.spans, sender(SignalKind::Traces, traces), encode).await;
        }
    };
    let records = async {
        if inner.settings.logs {
            let encode = |records| encode::encode_logs(&resource, records);
            send_items(&inner.records, sender(SignalKind::Logs, logs), encode).await;
        }
    };
    let measured = async {
        if inner.settings.metrics {
            send_reports(
                inner,
                sender(SignalKind::Metrics, metrics),
                &resource,
                measure,
            )
            .await;
        }
    };
    tokio::join!(spans, records, measured);
}

/// Sends the items of a queue until the shutdown.
async fn send_items<T>(
    queue: &SignalQueue<T>,
    mut sender: SignalSender,
    encode: impl Fn(Vec<T>) -> Vec<u8>,
) {
    let token = sender.token.clone();
    while !token.is_cancelled() {
        select! {
            () = token.cancelled() => break,
            () = queue.wait_for_items(1) => {}
        }
        select! {
            () = token.cancelled() => {}
            () = queue.wait_for_items(MAX_BATCH_ITEMS) => {}
            () = sleep(sender.timing.delay) => {}
        }
        deliver(queue, &mut sender, &encode).await;
    }
    while deliver(queue, &mut sender, &encode).await {}
}

/// Sends the items of one request. Returns whether there were items and the receiver accepted them.
async fn deliver<T>(
    queue: &SignalQueue<T>,
    sender: &mut SignalSender,
    encode: &impl Fn(Vec<T>) -> Vec<u8>,
) -> bool {
    let batch = queue.take_batch();
    if batch.is_empty() {
        return false;
    }
    let count = batch.len() as u64;
    let body = Bytes::from(encode(batch));
    let lost = |more| {
        queue.add_lost(more);
        queue.dropped_count()
    };
    sender.send_with_retries(body, count, lost).await
}

/// Sends a metrics report at each interval, and a last one at the shutdown.
async fn send_reports(
    inner: &Arc<TelemetryState>,
    mut sender: SignalSender,
    resource: &ResourceAttributes,
    measure: MetricSource,
) {
    let token = sender.token.clone();
    let settings = &inner.settings;
    loop {
        select! {
            () = token.cancelled() => {}
            () = sleep(settings.metrics_interval) => {}
        }
        let last = token.is_cancelled();
        let measure = Arc::clone(&measure);
        let measured = timeout(
            settings.timeout,
            tokio::task::spawn_blocking(move || measure()),
        )
        .await;
        if let Ok(Ok(families)) = measured {
            let body = encode::encode_metrics(resource, families, inner.started, SystemTime::now());
            sender
                .send_report(Bytes::from(body), |more| inner.add_lost_reports(more))
                .await;
        } else {
            sender.health.record_failure(
                "the metrics could not be read in time",
                inner.add_lost_reports(1),
                Instant::now(),
            );
        }
        if last {
            return;
        }
    }
}

/// Sends the requests of one signal.
struct SignalSender {
    signal: SignalKind,
    client: SignalClient,
    health: ExportHealth,
    backoff: RetryBackoff,
    timing: ExportTiming,
    /// Cancelled at the shutdown of the server.
    token: CancellationToken,
}

impl SignalSender {
    fn new(
        inner: &TelemetryState,
        signal: SignalKind,
        client: SignalClient,
        token: CancellationToken,
    ) -> Self {
        let timing = inner.timing;
        let health = ExportHealth::new(signal, inner.settings.endpoint.as_str());
        Self {
            signal,
            client,
            health,
            backoff: RetryBackoff::new(timing.first, timing.longest),
            timing,
            token,
        }
    }

    /// Sends a request with `count` items, and retries while the receiver cannot accept it.
    /// `add_lost` adds to the number of lost items and returns the total. Returns whether the
    /// receiver accepted the request.
    async fn send_with_retries(
        &mut self,
        body: Bytes,
        count: u64,
        lost: impl Fn(u64) -> u64,
    ) -> bool {
        let began = Instant::now();
        loop {
            let failure = match self.client.send(body.clone()).await {
                Ok(response) => {
                    self.handle_success(&response, &lost);
                    return true;
                }
                Err(failure) => failure,
            };
            let over = self.token.is_cancelled() || began.elapsed() >= self.timing.patience;
            let given_up = failure.retry == RetryPolicy::Never || over;
            let lost = lost(if given_up { count } else { 0 });
            self.health
                .record_failure(&failure.reason, lost, Instant::now());
            if !over {
                // Also back off after giving up: the next request would probably fail too.
                self.back_off(failure.retry.requested_delay()).await;
            }
            if given_up {
                return false;
            }
        }
    }

    /// Sends a report without retries, because the next report replaces it.
    async fn send_report(&mut self, body: Bytes, lost: impl Fn(u64) -> u64) {
        match self.client.send(body).await {
            Ok(response) => self.handle_success(&response, &lost),
            Err(failure) => {
                self.health
                    .record_failure(&failure.reason, lost(1), Instant::now());
                if let Some(wished) = failure.retry.requested_delay() {
                    self.back_off(Some(wished)).await;
                }
            }
        }
    }

    /// Handles the response to an accepted request.
    fn handle_success(&mut self, response: &[u8], lost: &impl Fn(u64) -> u64) {
        self.backoff.reset();
        self.health.record_success(lost(0), Instant::now());
        if let Some((count, why)) = encode::decode_rejection(self.signal, response) {
            let lost = lost(count);
            self.health
                .record_rejection(count, &why, lost, Instant::now());
        }
    }

    async fn back_off(&mut self, wished: Option<Duration>) {
        let wait = self.backoff.next_delay(wished);
        select! {
            () = self.token.cancelled() => {}
            () = sleep(wait) => {}
        }
    }
}
