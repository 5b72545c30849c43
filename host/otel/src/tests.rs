//! Tests against a collector that decodes and checks requests, and against faulty collectors.

use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use toolbay_model::TraceContext;
use toolbay_testkit::{CollectorBehavior, DEADLINE, OtlpCollector, attribute_map};
use url::Url;

use crate::timing::ExportTiming;
use crate::{
    ExportHeaders, ExporterGuard, FinishedSpan, HistogramPoint, LogEvent, LogSeverity,
    MetricFamily, MetricNumber, MetricPoint, MetricPoints, OtelSettings, SignalKind, SpanEvent,
    SpanSide, SpanStatus, Telemetry, TraceSampler,
};

const SOON: Duration = Duration::from_millis(1);

fn settings(endpoint: &str) -> OtelSettings {
    let mut headers = ExportHeaders::default();
    headers.add("authorization", "Bearer s3cret").unwrap();
    OtelSettings {
        endpoint: Url::parse(endpoint).unwrap(),
        headers,
        extra_ca_files: Vec::new(),
        timeout: DEADLINE,
        metrics_interval: SOON,
        traces: true,
        metrics: true,
        logs: true,
        resource: vec![("service.name".to_owned(), "toolbay".to_owned())],
    }
}

/// No delays, but long deadlines for the collector.
fn timing() -> ExportTiming {
    ExportTiming {
        batch_delay: SOON,
        initial_retry_delay: SOON,
        max_retry_delay: SOON,
        retry_timeout: DEADLINE,
        shutdown_timeout: DEADLINE,
    }
}

fn started(settings: OtelSettings, timing: ExportTiming) -> (Telemetry, ExporterGuard) {
    let telemetry = Telemetry::with_timing(settings, timing);
    let ending = telemetry.start(Vec::new).unwrap();
    (telemetry, ending)
}

fn span(name: &str) -> FinishedSpan {
    let started_at = SystemTime::now();
    FinishedSpan {
        context: TraceSampler::new(1.0).start_span(None).unwrap(),
        parent: None,
        parent_is_remote: false,
        name: name.to_owned(),
        kind: SpanSide::Internal,
        started_at,
        ended_at: started_at,
        attributes: Vec::new(),
        events: Vec::new(),
        status: SpanStatus::Unset,
    }
}

fn record(message: &str) -> LogEvent {
    let at = SystemTime::now();
    let severity = LogSeverity::Warn;
    LogEvent {
        at,
        severity,
        message: message.to_owned(),
        attributes: Vec::new(),
        span: None,
    }
}

fn lost(telemetry: &Telemetry, signal: SignalKind) -> u64 {
    telemetry
        .lost_items()
        .into_iter()
        .find(|(known, _)| *known == signal)
        .unwrap()
        .1
}

fn wait_until(expectation: &str, done: impl Fn() -> bool) {
    let started_at = Instant::now();
    while !done() {
        assert!(started_at.elapsed() < DEADLINE, "{expectation}");
        std::thread::yield_now();
    }
}

#[test]
fn a_span_arrives_as_it_was() {
    let collector = OtlpCollector::start();
    let (telemetry, ending) = started(settings(&format!("{}/base/", collector.url())), timing());
    let caller = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let caller = TraceContext::parse(caller, Some("vendor=1".to_owned()), None).unwrap();
    let context = TraceSampler::new(0.0).start_span(Some(&caller)).unwrap();
    let started_at = SystemTime::now();
    let later = |milliseconds| started_at + Duration::from_millis(milliseconds);
    telemetry.record_span(FinishedSpan {
        context: context.clone(),
        parent: Some(caller.span_id.clone()),
        parent_is_remote: true,
        name: "tools/call echo".to_owned(),
        kind: SpanSide::Server,
        started_at,
        ended_at: later(5),
        attributes: vec![
            ("a".into(), "text".into()),
            ("b".into(), crate::AttributeValue::Integer(-7)),
            ("c".into(), crate::AttributeValue::Float(0.5)),
            ("d".into(), crate::AttributeValue::Bool(true)),
        ],
        events: vec![SpanEvent {
            at: later(2),
            name: "guest",
        }],
        status: SpanStatus::Error("why".to_owned()),
    });
    let received = collector.wait_until("the span", |received| !received.spans.is_empty());
    let span = &received.spans[0];
    let digits = |id: &[u8]| hex::encode(id);
    assert_eq!(
        (digits(&span.trace_id), digits(&span.span_id)),
        (caller.trace_id.clone(), context.span_id.clone())
    );
    assert_eq!(
        (digits(&span.parent_span_id), span.trace_state.as_str()),
        (caller.span_id.clone(), "vendor=1")
    );
    // Sampled, and the parent is known to be remote.
    assert_eq!((span.flags, span.kind), (0x301, 2));
    assert_eq!(
        span.end_time_unix_nano - span.start_time_unix_nano,
        5_000_000
    );
    assert_eq!(
        span.events[0].time_unix_nano - span.start_time_unix_nano,
        2_000_000
    );
    let status = span.status.clone().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "why"));
    let attributes: Vec<(String, String)> = attribute_map(&span.attributes).into_iter().collect();
    let attributes: Vec<(&str, &str)> = attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        attributes,
        [("a", "text"), ("b", "-7"), ("c", "0.5"), ("d", "true")]
    );
    assert_eq!(received.resource["service.name"], "toolbay");
    let (head, _) = received
        .requests
        .iter()
        .find(|(head, _)| head.contains("traces"))
        .unwrap();
    assert!(
        head.starts_with("POST /base/v1/traces HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("authorization: Bearer s3cret\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: {}\r\n", collector.address)),
        "{head}"
    );
    drop(ending);
    assert_eq!(telemetry.lost_items().map(|(_, lost)| lost), [0; 3]);
}

#[test]
fn log_lines_and_metrics_arrive_as_they_were() {
    let collector = OtlpCollector::start();
    let telemetry = Telemetry::with_timing(settings(&collector.url()), timing());
    let labels = || vec![("tool", "echo".to_owned())];
    let buckets = vec![(0.1, 2), (1.0, 3), (f64::INFINITY, 1)];
    let families = vec![
        MetricFamily {
            name: "calls",
            help: "Calls.",
            points: MetricPoints::Counter(vec![MetricPoint {
                labels: labels(),
                value: MetricNumber::Integer(6),
            }]),
        },
        MetricFamily {
            name: "memory_bytes",
            help: "Memory.",
            points: MetricPoints::Gauge(vec![MetricPoint {
                labels: Vec::new(),
                value: MetricNumber::Float(1.5),
            }]),
        },
        MetricFamily {
            name: "call_seconds",
            help: "Times.",
            points: MetricPoints::Histogram(vec![MetricPoint {
                labels: labels(),
                value: HistogramPoint {
                    sum: 4.5,
                    count: 6,
                    buckets,
                },
            }]),
        },
        MetricFamily {
            name: "nothing",
            help: "Nothing.",
            points: MetricPoints::Gauge(Vec::new()),
        },
    ];
    let ending = telemetry.start(move || families.clone()).unwrap();
    let context = TraceSampler::new(1.0).start_span(None).unwrap();
    let ids = Some((context.trace_id.clone(), context.span_id.clone()));
    telemetry.record_log_event(LogEvent {
        attributes: vec![("n".into(), crate::AttributeValue::Integer(1))],
        span: ids,
        ..record("refused")
    });
    telemetry.record_log_event(record("alone"));
    let received = collector.wait_until("all", |received| {
        received.logs.len() == 2 && received.metric_reports > 1
    });
    let [refused, alone] = &received.logs[..] else {
        panic!()
    };
    assert_eq!(
        (
            hex::encode(&refused.trace_id),
            hex::encode(&refused.span_id)
        ),
        (context.trace_id, context.span_id)
    );
    assert_eq!(
        (refused.severity_number, refused.severity_text.as_str()),
        (13, "WARN")
    );
    assert_eq!(attribute_map(&refused.attributes)["n"], "1");
    assert!(alone.trace_id.is_empty() && format!("{:?}", alone.body).contains("alone"));
    let lines: Vec<String> = received
        .metrics
        .iter()
        .map(|metric| format!("{} {:?} {:?}", metric.name, metric.unit, metric.data))
        .collect();
    let text = lines.join("\n");
    assert_eq!(received.metrics.len(), 3, "{text}");
    for part in [
        "calls \"\"",
        "AsInt(6)",
        "memory \"By\"",
        "AsDouble(1.5)",
        "call \"s\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains("bucket_counts: [2, 3, 1], explicit_bounds: [0.1, 1.0]"),
        "{text}"
    );
    drop(ending);
}

#[test]
fn remaining_items_are_sent_at_the_end() {
    let collector = OtlpCollector::start();
    let never = ExportTiming {
        batch_delay: Duration::from_hours(1),
        ..timing()
    };
    let (telemetry, ending) = started(
        OtelSettings {
            metrics_interval: never.batch_delay,
            ..settings(&collector.url())
        },
        never,
    );
    // Fewer than fit in one request.
    (0..500).for_each(|_| telemetry.record_span(span("a")));
    telemetry.record_log_event(record("a"));
    drop(ending);
    let received = collector.received();
    assert_eq!(
        (
            received.spans.len(),
            received.logs.len(),
            received.metric_reports
        ),
        (500, 1, 1)
    );
    telemetry.record_span(span("late"));
    assert_eq!(lost(&telemetry, SignalKind::Traces), 1);
}

#[test]
fn a_signal_that_is_off_is_not_sent() {
    let collector = OtlpCollector::start();
    let settings = OtelSettings {
        traces: false,
        metrics: false,
        ..settings(&collector.url())
    };
    let (telemetry, ending) = started(settings, timing());
    telemetry.record_log_event(record("a"));
    drop(ending);
    let heads: Vec<String> = collector
        .received()
        .requests
        .into_iter()
        .map(|(head, _)| head)
        .collect();
    assert!(
        !heads.is_empty() && heads.iter().all(|head| head.contains("/v1/logs")),
        "{heads:?}"
    );
}

#[test]
fn temporary_failures_are_retried_without_losses() {
    let manners = [
        CollectorBehavior::Reject(429, "Retry-After: 0\r\n".to_owned()),
        CollectorBehavior::Reject(503, String::new()),
        CollectorBehavior::Reject(502, String::new()),
        CollectorBehavior::Close,
        CollectorBehavior::WriteRaw(b"\0\0\0\0\r\n\r\n".to_vec()),
        CollectorBehavior::WriteRaw(b"HTTP/1.1 200 OK\r\n".to_vec()),
        CollectorBehavior::WriteRaw(
            [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 1 << 20]].concat(),
        ),
    ];
    for manner in manners {
        let collector = OtlpCollector::with_behavior(manner.clone());
        let settings = OtelSettings {
            metrics: false,
            ..settings(&collector.url())
        };
        let (telemetry, ending) = started(settings, timing());
        telemetry.record_span(span("a"));
        collector.wait_until("it is tried again", |received| received.requests.len() >= 3);
        collector.set_behavior(CollectorBehavior::Accept);
        let received = collector.wait_until("it is taken", |received| !received.spans.is_empty());
        assert_eq!(received.spans.len(), 1, "{manner:?}");
        drop(ending);
        assert_eq!(lost(&telemetry, SignalKind::Traces), 0, "{manner:?}");
    }
}

#[test]
fn permanently_rejected_items_are_counted_as_lost() {
    for status in [302, 400, 401, 404, 500] {
        let elsewhere = OtlpCollector::start();
        let location = format!("Location: {}/v1/traces\r\n", elsewhere.url());
        let collector = OtlpCollector::with_behavior(CollectorBehavior::Reject(status, location));
        let (telemetry, ending) = started(
            OtelSettings {
                metrics: false,
                ..settings(&collector.url())
            },
            timing(),
        );
        telemetry.record_span(span("a"));
        wait_until("it is lost", || lost(&telemetry, SignalKind::Traces) == 1);
        collector.set_behavior(CollectorBehavior::Accept);
        telemetry.record_span(span("b"));
        let received = collector.wait_until("the next one is taken", |received| {
            !received.spans.is_empty()
        });
        assert_eq!(received.spans[0].name, "b", "{status}");
        drop(ending);
        assert!(
            elsewhere.received().requests.is_empty(),
            "credentials are sent nowhere else"
        );
    }
}

#[test]
fn rejected_items_are_counted_and_endless_responses_abandoned() {
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceResponse,
    };
    use prost::Message as _;
    let partial = ExportTracePartialSuccess {
        rejected_spans: 2,
        error_message: "too old".to_owned(),
    };
    let partial = ExportTraceServiceResponse {
        partial_success: Some(partial),
    }
    .encode_to_vec();
    for (manner, expected) in [
        (CollectorBehavior::AcceptWithBody(partial), 2),
        (CollectorBehavior::AcceptWithBody(vec![0xff; 99]), 0),
        (CollectorBehavior::EndlessBody, 0),
    ] {
        let collector = OtlpCollector::with_behavior(manner.clone());
        let (telemetry, ending) = started(
            OtelSettings {
                metrics: false,
                ..settings(&collector.url())
            },
            timing(),
        );
        (0..3).for_each(|_| telemetry.record_span(span("a")));
        collector.wait_until("they are taken", |received| received.spans.len() == 3);
        telemetry.record_span(span("b"));
        collector.wait_until("the next one is taken", |received| {
            received.spans.len() == 4
        });
        drop(ending);
        let lost = lost(&telemetry, SignalKind::Traces);
        assert!(
            if expected > 0 {
                lost >= expected
            } else {
                lost == 0
            },
            "{manner:?}: {lost}"
        );
    }
}

#[test]
fn unresponsive_receiver_times_out_and_overflow_is_counted() {
    let collector = OtlpCollector::with_behavior(CollectorBehavior::Ignore);
    let settings = OtelSettings {
        timeout: Duration::from_millis(50),
        metrics: false,
        ..settings(&collector.url())
    };
    let timing = ExportTiming {
        shutdown_timeout: Duration::from_millis(10),
        ..timing()
    };
    let (telemetry, ending) = started(settings, timing);
    let started_at = Instant::now();
    for _ in 0..10_000 {
        telemetry.record_span(span("a"));
    }
    assert!(
        started_at.elapsed() < Duration::from_secs(5),
        "nobody waits: {:?}",
        started_at.elapsed()
    );
    collector.wait_until("it is tried again", |received| received.requests.len() >= 3);
    // One request is in flight.
    let lost_spans = telemetry.lost_items()[0].1;
    assert!(
        (10_000 - 4096 - 512..=10_000 - 4096).contains(&lost_spans),
        "{lost_spans}"
    );
    drop(ending);
    assert!(lost(&telemetry, SignalKind::Traces) >= 10_000 - 512);
}

#[test]
fn returning_receiver_gets_the_queued_items() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let settings = OtelSettings {
        metrics: false,
        ..settings(&format!("http://{address}"))
    };
    let (telemetry, ending) = started(settings, timing());
    (0..700).for_each(|_| telemetry.record_span(span("a")));
    // Another test may have taken the port.
    let Ok(listener) = TcpListener::bind(address) else {
        return;
    };
    let collector = OtlpCollector::with_listener(listener, CollectorBehavior::Accept);
    collector.wait_until("all", |received| received.spans.len() == 700);
    drop(ending);
    assert_eq!(lost(&telemetry, SignalKind::Traces), 0);
}

#[test]
fn failure_of_one_signal_does_not_delay_the_others() {
    // A collector that only accepts traces responds like this.
    let collector = OtlpCollector::with_behavior(CollectorBehavior::Ignore);
    let settings = OtelSettings {
        timeout: DEADLINE,
        ..settings(&collector.url())
    };
    let (telemetry, ending) = started(
        settings,
        ExportTiming {
            shutdown_timeout: SOON,
            ..timing()
        },
    );
    telemetry.record_span(span("a"));
    collector.wait_until("both wait", |received| {
        let of = |path| {
            received
                .requests
                .iter()
                .any(|(head, _)| head.contains(path))
        };
        of("/v1/traces") && of("/v1/metrics")
    });
    collector.set_behavior(CollectorBehavior::Accept);
    telemetry.record_log_event(record("a"));
    collector.wait_until("the log", |received| received.logs.len() == 1);
    drop(ending);
}

#[test]
fn debug_output_of_settings_hides_secrets() {
    let debug_output = format!("{:?}", Telemetry::new(settings("http://127.0.0.1:4318")));
    assert!(
        debug_output.contains("authorization") && !debug_output.contains("s3cret"),
        "{debug_output}"
    );
}
