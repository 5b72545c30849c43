//! The sources of the settings, and mistakes in them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use toolbay_testkit::OtlpCollector;

use super::{call, otel, span_attributes};
use crate::requests::{create_authority, start_tls_server};
use crate::support::{DEADLINE, Folder, HttpServer, TinyComponent, ToolbayCommand};

/// Returns the error of `toolbay serve` for a mistake.
fn startup_error(config: &str, variables: &[(&str, &str)]) -> String {
    let folder = Folder::new();
    folder.write_config(config);
    let mut command = ToolbayCommand::new(&folder).args(["serve"]);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    let outcome = command.run();
    assert_eq!(outcome.code, 64, "{outcome}");
    outcome
        .stderr
        .trim_end()
        .replace(&format!("{}/", folder.root().display()), "")
}

#[test]
fn a_mistake_ends_the_program_with_an_error_without_secrets() {
    let file = |text: &str| startup_error(&format!("[otel]\n{text}"), &[]);
    let on = "endpoint = \"http://127.0.0.1:9\"\n";
    let said = [
        file("endpoit = \"http://127.0.0.1:9\""),
        file("endpoint = \"127.0.0.1:4317\""),
        file("endpoint = \"http://ada:s3cret@collector\""),
        file("endpoint = \"http://collector/?key=s3cret\""),
        file("sample_ratio = 2"),
        file("metrics_interval = \"0s\""),
        file("timeout = \"2h\""),
        file("resource = 7"),
        file("headers = { x-key = { value = \"s3cret\" } }"),
        file("headers = { \"x key\" = \"s3cret\" }"),
        file("headers = { host = \"s3cret\" }"),
        file("headers = { x-key = { environment = \"A\", format = \"Bearer\" } }"),
        file("extra_ca = [\"none.pem\"]"),
        file(&format!(
            "{on}headers = {{ x-key = {{ environment = \"NOT_SET_AT_ALL\" }} }}"
        )),
        file(&format!(
            "{on}headers = {{ x-key = {{ file = \"none\" }} }}"
        )),
        startup_error("", &[("TOOLBAY_OTEL_SAMPLE_RATIO", "much")]),
        startup_error("", &[("TOOLBAY_OTEL_HEADERS", "s3cret")]),
        startup_error(
            "[otel]\nuse_environment = true",
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://ada:s3cret@a")],
        ),
        startup_error(
            &format!("[otel]\n{on}use_environment = true"),
            &[("OTEL_EXPORTER_OTLP_HEADERS", "s3cret")],
        ),
    ];
    // Each error names its key or its variable.
    for line in &said {
        assert!(
            ["otel", "OTEL", "endpoit"]
                .iter()
                .any(|name| line.contains(name)),
            "{line}"
        );
        assert!(!line.contains("s3cret"), "{line}");
    }
}

#[test]
fn headers_come_from_files_and_variables() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let collector = OtlpCollector::start();
    folder.write_config(&otel(
        &collector,
        "[otel.headers]\nauthorization = { environment = \"A_TOKEN\", format = \"Bearer {}\" }\nx-key = { file = \"key\" }\n",
    ));
    std::fs::write(folder.sibling_path("key"), "of-a-file\n").unwrap();
    std::fs::set_permissions(
        folder.sibling_path("key"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let command = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("A_TOKEN", "s3cret");
    let server = HttpServer::run(command).wait_until_ready();
    let received = collector.wait_until("a request", |received| !received.requests.is_empty());
    let (head, _) = &received.requests[0];
    assert!(
        head.contains("authorization: Bearer s3cret\r\n") && head.contains("x-key: of-a-file\r\n"),
        "{head}"
    );
    assert!(!server.log.text().contains("s3cret"));
}

#[test]
fn a_collector_is_trusted_if_its_authority_is_listed() {
    let folder = Folder::new();
    let (address, requests) = start_tls_server(&create_authority(&folder));
    let config = format!(
        "[otel]\nendpoint = \"https://localhost:{}\"\nmetrics_interval = \"100ms\"\n",
        address.port()
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    server
        .log
        .wait_for("cannot send metrics to https://localhost");
    assert!(
        requests.try_recv().is_err(),
        "sent to somebody who is not trusted"
    );
    drop(server);
    let _server =
        HttpServer::start_with_config(&folder, &format!("{config}extra_ca = [\"ca.pem\"]\n"))
            .wait_until_ready();
    let request = requests.recv_timeout(DEADLINE).unwrap();
    assert!(
        request.starts_with("POST /v1/metrics HTTP/1.1\r\n"),
        "{request}"
    );
}

#[test]
fn opentelemetry_variables_apply_only_if_the_configuration_allows_them() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let collector = OtlpCollector::start();
    folder.write_config(&format!(
        "[otel]\nuse_environment = true\nresource = {{ team = \"own\" }}\n{}",
        super::RATES
    ));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b".to_owned()),
        ("OTEL_SERVICE_NAME", "tools".to_owned()),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "team=theirs,deployment.environment.name=test,service.name=x".to_owned(),
        ),
    ];
    let mut command = ToolbayCommand::new(&folder).args(["serve", "--http", "127.0.0.1:0"]);
    for (name, value) in &variables {
        command = command.env(name, value);
    }
    let server = HttpServer::run(command).wait_until_ready();
    call(&server, "a", json!({}), json!({}));
    let received = collector.wait_until("a span", |received| {
        span_attributes(received, "tools/call a").len() == 1
    });
    let resource = |name: &str| received.resource[name].as_str();
    assert_eq!(
        (
            resource("service.name"),
            resource("team"),
            resource("deployment.environment.name")
        ),
        ("tools", "own", "test")
    );
    assert!(
        received.requests[0].0.contains("x-key: a b\r\n"),
        "{}",
        received.requests[0].0
    );
}

#[test]
fn disabled_signals_are_not_sent_and_traces_can_be_sampled() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let collector = OtlpCollector::start();
    let server = HttpServer::start_with_config(&folder, &otel(&collector, "traces = false"))
        .wait_until_ready();
    call(
        &server,
        "a",
        json!({}),
        json!({"traceparent": super::PARENT}),
    );
    let before = collector.received().metric_reports;
    collector.wait_until("two reports", |received| {
        received.metric_reports >= before + 2
    });
    drop(server);
    let received = collector.received();
    assert!(received.spans.is_empty() && received.logs.is_empty());
    let collector = OtlpCollector::start();
    let server = HttpServer::start_with_config(
        &folder,
        &otel(&collector, "metrics = false\nsample_ratio = 0"),
    )
    .wait_until_ready();
    call(&server, "a", json!({}), json!({}));
    call(
        &server,
        "a",
        json!({}),
        json!({"traceparent": super::PARENT}),
    );
    let received = collector.wait_until("the caller's trace", |received| received.spans.len() == 1);
    drop(server);
    assert_eq!(
        (received.metric_reports, collector.received().spans.len()),
        (0, 1)
    );
}
