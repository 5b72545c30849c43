//! The page of the book and the dashboard: the server has every metric that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::exposition::{Exposition, Family};
use super::{RATES, call, scrape};
use crate::support::{Folder, HttpServer, hostile, keeper};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/metrics.md");
const DASHBOARD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/src/grafana-dashboard.json"
);

/// The markers around the part of the page that the test generates.
const MARKS: [&str; 2] = ["<!-- table -->\n", "<!-- end of table -->\n"];

/// Returns the metrics of a server that reports every family.
fn scrape_every_family() -> Exposition {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("keeper.wasm", keeper());
    folder.put("keeper.toml", "[permissions.state]\nsize = \"1MiB\"\n");
    let config = format!(
        "{RATES}[audit]\nfolder = \"log\"\n[state]\nfolder = \"kept\"\n[otel]\nendpoint = \"http://127.0.0.1:9\"\n"
    );
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    call(&server, "echo", json!({"text": "a"}));
    call(&server, "hoard", json!({}));
    super::wait_until(&server, "the state is there", |metrics| {
        metrics.samples("toolbay_state_bytes").count() == 1
    });
    scrape(&server)
}

/// Returns the labels of a family, without the bounds of a histogram.
fn labels(family: &Family) -> String {
    let names: BTreeSet<&str> = family
        .samples
        .iter()
        .flat_map(|sample| sample.labels.keys().map(String::as_str))
        .collect();
    let names: Vec<String> = names
        .into_iter()
        .filter(|name| *name != "le")
        .map(|name| format!("`{name}`"))
        .collect();
    names.join(", ")
}

fn table(metrics: &Exposition) -> String {
    let mut table = "| metric | type | labels | is |\n| --- | --- | --- | --- |\n".to_owned();
    for family in &metrics.families {
        let Family {
            name, kind, help, ..
        } = family;
        let _ = writeln!(
            table,
            "| `{name}` | {kind} | {} | {} |",
            labels(family),
            help.trim_end_matches('.')
        );
    }
    table
}

/// Returns the table in its current form, for other pages.
pub(crate) fn current_table() -> String {
    table(&scrape_every_family())
}

#[test]
fn the_table_of_the_book_has_every_metric() {
    let metrics = scrape_every_family();
    let silent: Vec<&str> = metrics
        .families
        .iter()
        .filter(|family| family.samples.is_empty())
        .map(|family| family.name.as_str())
        .collect();
    assert!(silent.is_empty(), "their labels are not known: {silent:?}");
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let wanted = [
        before,
        MARKS[0],
        "\n",
        &table(&metrics),
        "\n",
        MARKS[1],
        after,
    ]
    .concat();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &wanted).unwrap();
        return;
    }
    assert_eq!(
        page, wanted,
        "docs/src/metrics.md is stale: UPDATE_DOCS=1 cargo test -p toolbay --test it metrics::book"
    );
}

/// Returns the names of our metrics in a text, and the labels that the text uses with each.
fn queried_labels(query: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    for begin in ["toolbay_", "process_"] {
        for (at, _) in query.match_indices(begin) {
            if query[..at].ends_with(is_name) {
                continue;
            }
            let rest = &query[at..];
            let (name, rest) =
                rest.split_at(rest.find(|char| !is_name(char)).unwrap_or(rest.len()));
            let labels = found.entry(name.to_owned()).or_default();
            let Some(inside) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
                continue;
            };
            let names = inside.0.split(',').map(|part| {
                part.split(['=', '!', '~'])
                    .next()
                    .unwrap_or_default()
                    .trim()
            });
            labels.extend(names.map(str::to_owned));
        }
    }
    found
}

/// Fails if a text uses a metric or a label that no server has.
fn check_query(place: &str, text: &str, metrics: &Exposition) -> usize {
    let asked = queried_labels(text);
    for (name, labels) in &asked {
        let samples: Vec<_> = metrics.samples(name).collect();
        assert!(!samples.is_empty(), "{place}: no server has {name}");
        // Prometheus adds these labels.
        for label in labels
            .iter()
            .filter(|label| !["job", "instance"].contains(&label.as_str()))
        {
            assert!(
                samples[0].labels.contains_key(label),
                "{place}: {name} has no label {label}"
            );
        }
    }
    asked.len()
}

/// Finds every string under a key in a value.
fn collect_strings<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => {
            for item in items {
                collect_strings(item, key, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == key => found.push(text),
                    member => collect_strings(member, key, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_query_of_the_dashboard_and_of_the_book_is_about_a_metric_that_exists() {
    let metrics = scrape_every_family();
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(DASHBOARD).unwrap()).unwrap();
    let mut queries = Vec::new();
    let mut variables = Vec::new();
    collect_strings(&dashboard, "expr", &mut queries);
    collect_strings(&dashboard["templating"], "query", &mut variables);
    assert!(queries.len() >= 15 && !variables.is_empty());
    for query in queries {
        assert!(
            check_query(&format!("the query {query}"), query, &metrics) > 0,
            "{query} is about nothing of ours"
        );
    }
    for query in variables {
        check_query(&format!("the variable {query}"), query, &metrics);
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let written = page.split_once(MARKS[1]).unwrap().1;
    assert!(check_query("docs/src/metrics.md", written, &metrics) > 5);
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len());
}

#[test]
fn the_metrics_and_labels_of_a_query_are_found() {
    let asked = queried_labels(
        "sum by (tool) (rate(toolbay_calls_total{tool=~\"$tool\", outcome!=\"ok\"}[5m])) / not_toolbay_x",
    );
    let labels: BTreeSet<String> = ["tool", "outcome"].map(str::to_owned).into();
    assert_eq!(
        asked,
        BTreeMap::from([("toolbay_calls_total".to_owned(), labels)])
    );
}
