//! An OpenTelemetry collector over OTLP/HTTP. It decodes the requests, validates them against the
//! specification, and can simulate faulty collectors.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking, as the types say"
)]

mod check;

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
pub use opentelemetry_proto::tonic::trace::v1::Span as SpanMessage;
use parking_lot::{Condvar, Mutex, MutexGuard};
use prost::Message as _;

use crate::{DEADLINE, read_request};

/// The behavior of the collector after it has read a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectorBehavior {
    /// Accepts the request and stores the data.
    Accept,
    /// Accepts the request, stores the data, and responds with this body.
    AcceptWithBody(Vec<u8>),
    /// Responds with this status code and these header lines. Does not store the data.
    Reject(u16, String),
    /// Never responds.
    Ignore,
    /// Closes the connection without a response.
    Close,
    /// Writes these bytes instead of an HTTP response, and closes the connection.
    WriteRaw(Vec<u8>),
    /// Accepts the request, stores the data, and responds with an endless body.
    EndlessBody,
}

/// A running collector.
#[derive(Debug)]
pub struct OtlpCollector {
    /// The address on which the collector listens.
    pub address: SocketAddr,
    shared: Arc<SharedCollector>,
}

#[derive(Debug)]
struct SharedCollector {
    state: Mutex<CollectorState>,
    changed: Condvar,
}

#[derive(Debug)]
struct CollectorState {
    behavior: CollectorBehavior,
    received: ReceivedTelemetry,
}

/// The data that the collector has received so far.
#[derive(Clone, Debug, Default)]
pub struct ReceivedTelemetry {
    /// The head and the body of each request, including requests that were not accepted.
    pub requests: Vec<(String, Vec<u8>)>,
    /// The accepted spans.
    pub spans: Vec<SpanMessage>,
    /// The accepted log records.
    pub logs: Vec<LogRecord>,
    /// The metrics of the newest accepted export request.
    pub metrics: Vec<Metric>,
    /// Number of accepted export requests with metrics.
    pub metric_reports: usize,
    /// The attributes of the resource.
    pub resource: BTreeMap<String, String>,
    /// Descriptions of the problems with the requests.
    pub faults: Vec<String>,
}

impl OtlpCollector {
    /// Starts a collector on a free port that accepts every request.
    pub fn start() -> Self {
        Self::with_listener(
            TcpListener::bind("127.0.0.1:0").unwrap(),
            CollectorBehavior::Accept,
        )
    }

    /// Starts a collector on a free port with this behavior.
    pub fn with_behavior(manner: CollectorBehavior) -> Self {
        Self::with_listener(TcpListener::bind("127.0.0.1:0").unwrap(), manner)
    }

    /// Starts a collector on `listener` with this behavior.
    pub fn with_listener(listener: TcpListener, manner: CollectorBehavior) -> Self {
        let state = CollectorState {
            behavior: manner,
            received: ReceivedTelemetry::default(),
        };
        let shared = Arc::new(SharedCollector {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let address = listener.local_addr().unwrap();
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                thread::spawn(move || drop(serving.serve_connection(stream)));
            }
        });
        Self { address, shared }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the behavior for the following requests.
    pub fn set_behavior(&self, manner: CollectorBehavior) {
        self.shared.state().behavior = manner;
    }

    /// Returns the data that was received so far.
    ///
    /// # Panics
    ///
    /// Panics if a request was invalid.
    pub fn received(&self) -> ReceivedTelemetry {
        let received = self.shared.state().received.clone();
        assert!(received.faults.is_empty(), "{:#?}", received.faults);
        received
    }

    /// Waits until `wanted` accepts the received data, and returns the data.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than [`DEADLINE`], or if a request was invalid.
    pub fn wait_until(
        &self,
        what: &str,
        wanted: impl Fn(&ReceivedTelemetry) -> bool,
    ) -> ReceivedTelemetry {
        let begun = Instant::now();
        let mut state = self.shared.state();
        while !wanted(&state.received) {
            assert!(
                state.received.faults.is_empty(),
                "{:#?}",
                state.received.faults
            );
            let left = DEADLINE.checked_sub(begun.elapsed());
            let left = left
                .unwrap_or_else(|| panic!("the collector waits for {what}: {:#?}", state.received));
            self.shared.changed.wait_for(&mut state, left);
        }
        drop(state);
        self.received()
    }
}

impl SharedCollector {
    fn state(&self) -> MutexGuard<'_, CollectorState> {
        self.state.lock()
    }

    /// Handles the requests of one connection.
    fn serve_connection(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some((head, body)) = read_request(&mut reader)? {
            let manner = {
                let mut state = self.state();
                let manner = state.behavior.clone();
                if matches!(
                    manner,
                    CollectorBehavior::Accept
                        | CollectorBehavior::AcceptWithBody(_)
                        | CollectorBehavior::EndlessBody
                ) {
                    state.received.decode_request(&head, &body);
                }
                state.received.requests.push((head, body));
                manner
            };
            self.changed.notify_all();
            match manner {
                CollectorBehavior::Accept => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
                }
                CollectorBehavior::AcceptWithBody(body) => {
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    )?;
                    stream.write_all(&body)?;
                }
                CollectorBehavior::Reject(status, fields) => {
                    write!(
                        stream,
                        "HTTP/1.1 {status} No\r\n{fields}Content-Length: 0\r\n\r\n"
                    )?;
                }
                // The connection ends when the peer closes it.
                CollectorBehavior::Ignore => {}
                CollectorBehavior::Close => return Ok(()),
                CollectorBehavior::WriteRaw(bytes) => return stream.write_all(&bytes),
                CollectorBehavior::EndlessBody => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")?;
                    loop {
                        stream.write_all(&[b'x'; 4096])?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A sample of a metric: its name, its labels and its value.
type MetricSample = (String, Vec<(String, String)>, String);

impl ReceivedTelemetry {
    /// Returns the counters and gauges of the newest export request, with the names that a
    /// collector gives them for Prometheus.
    pub fn metric_samples(&self) -> Vec<MetricSample> {
        let name = |metric: &Metric| {
            let unit = match metric.unit.as_str() {
                "s" => "_seconds",
                "By" => "_bytes",
                _ => "",
            };
            metric.name.replace('.', "_") + unit
        };
        let points = self.metrics.iter().flat_map(|metric| match &metric.data {
            Some(Data::Sum(sum)) => sum
                .data_points
                .iter()
                .map(|point| (name(metric) + "_total", point))
                .collect(),
            Some(Data::Gauge(gauge)) => gauge
                .data_points
                .iter()
                .map(|point| (name(metric), point))
                .collect(),
            _ => Vec::new(),
        });
        let labels = |pairs: &[KeyValue]| {
            pairs
                .iter()
                .map(|pair| (pair.key.clone(), attribute_text(pair)))
                .collect()
        };
        let value = |value: Option<Number>| match value {
            Some(Number::AsInt(whole)) => whole.to_string(),
            Some(Number::AsDouble(real)) => format!("{real:?}"),
            None => String::new(),
        };
        points
            .map(|(name, point)| (name, labels(&point.attributes), value(point.value)))
            .collect()
    }

    /// Decodes a request, validates it and stores its data.
    fn decode_request(&mut self, head: &str, body: &[u8]) {
        let lower = head.to_ascii_lowercase();
        let first = head.lines().next().unwrap_or_default();
        if !lower.contains("content-type: application/x-protobuf\r\n") {
            self.faults.push(format!("it has no type: {head}"));
        }
        let path = first
            .strip_prefix("POST ")
            .and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
            .unwrap_or_default();
        let resource = match path.rsplit('/').next() {
            Some("traces") => ExportTraceServiceRequest::decode(body).map(|request| {
                let of_resource = request
                    .resource_spans
                    .into_iter()
                    .next()
                    .unwrap_or_default();
                for span in of_resource
                    .scope_spans
                    .into_iter()
                    .flat_map(|scoped| scoped.spans)
                {
                    self.faults.extend(check::check_span(&span));
                    self.spans.push(span);
                }
                of_resource.resource
            }),
            Some("logs") => ExportLogsServiceRequest::decode(body).map(|request| {
                let of_resource = request.resource_logs.into_iter().next().unwrap_or_default();
                for record in of_resource
                    .scope_logs
                    .into_iter()
                    .flat_map(|scoped| scoped.log_records)
                {
                    self.faults.extend(check::check_log_record(&record));
                    self.logs.push(record);
                }
                of_resource.resource
            }),
            Some("metrics") => ExportMetricsServiceRequest::decode(body).map(|request| {
                let of_resource = request
                    .resource_metrics
                    .into_iter()
                    .next()
                    .unwrap_or_default();
                self.metrics = of_resource
                    .scope_metrics
                    .into_iter()
                    .flat_map(|scoped| scoped.metrics)
                    .collect();
                self.metric_reports += 1;
                self.faults
                    .extend(self.metrics.iter().flat_map(check::check_metric));
                of_resource.resource
            }),
            _ => {
                self.faults
                    .push(format!("no signal has this path: {first}"));
                return;
            }
        };
        match resource {
            Ok(resource) => self.resource = attribute_map(&resource.unwrap_or_default().attributes),
            Err(error) => self.faults.push(format!("{path}: {error}")),
        }
    }
}

/// Returns the values of attributes as text, by their names.
pub fn attribute_map(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|pair| (pair.key.clone(), attribute_text(pair)))
        .collect()
}

/// Returns the value of an attribute as text.
pub fn attribute_text(pair: &KeyValue) -> String {
    match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        Some(Value::IntValue(whole)) => whole.to_string(),
        Some(Value::DoubleValue(real)) => real.to_string(),
        other => format!("{other:?}"),
    }
}
