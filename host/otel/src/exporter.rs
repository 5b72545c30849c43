//! The exporter thread, which runs a task for each signal.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Alive, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
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
        let thread_end = self.thread_end.get_mut();
        let result = thread_end.recv_timeout(self.timeout);
        if result == Err(RecvTimeoutError::Timeout) {
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
    state: Arc<TelemetryState>,
    metric_source: MetricSource,
) -> Result<ExporterGuard, StartError> {
    let settings = &state.settings;
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
    let (thread_alive, thread_end) = channel();
    let drop_timeout = state.timing.shutdown_timeout + Duration::from_millis(500);
    let guard = ExporterGuard {
        token: token.clone(),
        thread_end: Mutex::new(thread_end),
        timeout: drop_timeout,
    };
    let builder = thread::Builder::new().name("toolbay-otel".to_owned());
    let start_error = |error| StartError(format!("cannot start the thread of telemetry: {error}"));
    builder
        .spawn(move || run_thread(&state, clients, metric_source, &token, thread_alive))
        .map_err(start_error)?;
    Ok(guard)
}

fn run_thread(
    state: &Arc<TelemetryState>,
    clients: [SignalClient; 3],
    metric_source: MetricSource,
    token: &CancellationToken,
    thread_alive: Alive<()>,
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
    let end = state.timing.shutdown_timeout;
    runtime.block_on(async {
        let shutdown_deadline = async {
            token.cancelled().await;
            sleep(end).await;
        };
        select! {
            () = run_signals(state, clients, metric_source, token) => {}
            () = shutdown_deadline => {}
        }
    });
    // Blocking tasks that are still running have nothing to export.
    runtime.shutdown_background();
    report_unsent(SignalKind::Traces, state.spans.close());
    report_unsent(SignalKind::Logs, state.records.close());
    drop(thread_alive);
}

async fn run_signals(
    state: &Arc<TelemetryState>,
    clients: [SignalClient; 3],
    metric_source: MetricSource,
    token: &CancellationToken,
) {
    let resource = ResourceAttributes::new(&state.settings.resource);
    let [traces, metrics, logs] = clients;
    let sender = |signal, client| SignalSender::new(state, signal, client, token.clone());
    let spans = async {
        if state.settings.traces {
            let encode = |spans| encode::encode_spans(&resource, spans);
            send_items(&state.spans, sender(SignalKind::Traces, traces), encode).await;
        }
    };
    let records = async {
        if state.settings.logs {
            let encode = |records| encode::encode_logs(&resource, records);
            send_items(&state.records, sender(SignalKind::Logs, logs), encode).await;
        }
    };
    let reports = async {
        if state.settings.metrics {
            send_reports(
                state,
                sender(SignalKind::Metrics, metrics),
                &resource,
                metric_source,
            )
            .await;
        }
    };
    tokio::join!(spans, records, reports);
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
            () = sleep(sender.timing.batch_delay) => {}
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
    let add_lost = |lost_items| {
        queue.add_lost(lost_items);
        queue.dropped_count()
    };
    sender.send_with_retries(body, count, add_lost).await
}

/// Sends a metrics report at each interval, and a last one at the shutdown.
async fn send_reports(
    state: &Arc<TelemetryState>,
    mut sender: SignalSender,
    resource: &ResourceAttributes,
    metric_source: MetricSource,
) {
    let token = sender.token.clone();
    let settings = &state.settings;
    loop {
        select! {
            () = token.cancelled() => {}
            () = sleep(settings.metrics_interval) => {}
        }
        let is_last = token.is_cancelled();
        let collect = Arc::clone(&metric_source);
        let collected = timeout(
            settings.timeout,
            tokio::task::spawn_blocking(move || collect()),
        )
        .await;
        if let Ok(Ok(families)) = collected {
            let body = encode::encode_metrics(resource, families, state.started, SystemTime::now());
            sender
                .send_report(Bytes::from(body), |lost_reports| {
                    state.add_lost_reports(lost_reports)
                })
                .await;
        } else {
            sender.health.record_failure(
                "the metrics could not be read in time",
                state.add_lost_reports(1),
                Instant::now(),
            );
        }
        if is_last {
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
        state: &TelemetryState,
        signal: SignalKind,
        client: SignalClient,
        token: CancellationToken,
    ) -> Self {
        let timing = state.timing;
        let health = ExportHealth::new(signal, state.settings.endpoint.as_str());
        Self {
            signal,
            client,
            health,
            backoff: RetryBackoff::new(timing.initial_retry_delay, timing.max_retry_delay),
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
        add_lost: impl Fn(u64) -> u64,
    ) -> bool {
        let started_at = Instant::now();
        loop {
            let failure = match self.client.send(body.clone()).await {
                Ok(response) => {
                    self.handle_success(&response, &add_lost);
                    return true;
                }
                Err(failure) => failure,
            };
            let has_expired =
                self.token.is_cancelled() || started_at.elapsed() >= self.timing.retry_timeout;
            let gives_up = failure.retry == RetryPolicy::Never || has_expired;
            let total_lost = add_lost(if gives_up { count } else { 0 });
            self.health
                .record_failure(&failure.reason, total_lost, Instant::now());
            if !has_expired {
                // Also back off after giving up: the next request would probably fail too.
                self.back_off(failure.retry.requested_delay()).await;
            }
            if gives_up {
                return false;
            }
        }
    }

    /// Sends a report without retries, because the next report replaces it.
    async fn send_report(&mut self, body: Bytes, add_lost: impl Fn(u64) -> u64) {
        match self.client.send(body).await {
            Ok(response) => self.handle_success(&response, &add_lost),
            Err(failure) => {
                self.health
                    .record_failure(&failure.reason, add_lost(1), Instant::now());
                if let Some(delay) = failure.retry.requested_delay() {
                    self.back_off(Some(delay)).await;
                }
            }
        }
    }

    /// Handles the response to an accepted request.
    fn handle_success(&mut self, response: &[u8], add_lost: &impl Fn(u64) -> u64) {
        self.backoff.reset();
        self.health.record_success(add_lost(0), Instant::now());
        if let Some((count, why)) = encode::decode_rejection(self.signal, response) {
            let total_lost = add_lost(count);
            self.health
                .record_rejection(count, &why, total_lost, Instant::now());
        }
    }

    async fn back_off(&mut self, requested: Option<Duration>) {
        let delay = self.backoff.next_delay(requested);
        select! {
            () = self.token.cancelled() => {}
            () = sleep(delay) => {}
        }
    }
}
