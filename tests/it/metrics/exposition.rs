//! A strict parser of the metrics formats: anything that could confuse a reader fails the test.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a sample.
pub(super) type Labels = BTreeMap<String, String>;

/// Parsed metrics of a server.
#[derive(Debug)]
pub(super) struct Exposition {
    pub(super) families: Vec<Family>,
}

/// A family of samples, under its name in the older format: the name of a counter ends in `_total`.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) help: String,
    pub(super) kind: String,
    pub(super) samples: Vec<Sample>,
}

/// A sample.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) value: f64,
}

impl Exposition {
    /// Parses the text format of Prometheus (0.0.4) or, if `open` is set, OpenMetrics (1.0).
    pub(super) fn parse(text: &str, open: bool) -> Self {
        assert!(text.ends_with('\n') && !text.contains('\r'));
        let body = if open {
            text.strip_suffix("# EOF\n").expect("an end mark")
        } else {
            text
        };
        let mut families = Vec::<Family>::new();
        let mut seen = BTreeSet::new();
        let mut lines = body.lines();
        while let Some(line) = lines.next() {
            if let Some(head) = line.strip_prefix("# HELP ") {
                let (name, help) = head.split_once(' ').unwrap();
                let kind = lines
                    .next()
                    .and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")))
                    .expect(line);
                assert!(is_name(name, ":"), "{name}");
                assert!(!help.contains('\\') && help.ends_with('.'), "{help}");
                let name = if open && kind == "counter" {
                    format!("{name}_total")
                } else {
                    name.to_owned()
                };
                assert!(seen.insert(name.clone()), "{name} twice");
                families.push(Family {
                    name,
                    help: help.to_owned(),
                    kind: kind.to_owned(),
                    samples: Vec::new(),
                });
            } else {
                let family = families.last_mut().expect("a sample without a family");
                family.samples.push(parse_sample(line));
            }
        }
        families.iter().for_each(check_family);
        Self { families }
    }

    /// Returns the samples with this name.
    pub(super) fn samples(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.families
            .iter()
            .flat_map(|family| &family.samples)
            .filter(move |sample| sample.name == name)
    }

    /// Returns the value of the only sample that has this name and these labels among its own; 0 if
    /// there is none.
    pub(super) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            labels
                .iter()
                .all(|(name, value)| sample.labels.get(*name).is_some_and(|own| own == value))
        };
        let found: Vec<&Sample> = self.samples(name).filter(has).collect();
        assert!(found.len() <= 1, "{name} {labels:?}: {found:?}");
        found.first().map_or(0.0, |sample| sample.value)
    }

    /// Like [`Self::value`], for whole numbers.
    pub(super) fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let value = self.value(name, labels).to_string();
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} {labels:?} is {value}"))
    }

    /// Returns every sample that can only grow, by its name and labels.
    pub(super) fn monotonic_samples(&self) -> BTreeMap<(String, Labels), f64> {
        let growing = self
            .families
            .iter()
            .filter(|family| ["counter", "histogram"].contains(&family.kind.as_str()));
        let samples = growing.flat_map(|family| &family.samples);
        samples
            .map(|sample| ((sample.name.clone(), sample.labels.clone()), sample.value))
            .collect()
    }
}

fn is_name(name: &str, further: &str) -> bool {
    let first = |byte: char| byte.is_ascii_alphabetic() || byte == '_' || further.contains(byte);
    name.starts_with(first)
        && name
            .chars()
            .all(|byte| first(byte) || byte.is_ascii_digit())
}

/// Parses `name{label="value",…} number`.
fn parse_sample(line: &str) -> Sample {
    let (name, mut rest) = line.split_at(line.find(['{', ' ']).expect(line));
    assert!(is_name(name, ":"), "{line}");
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"").expect(line);
            assert!(is_name(label, ""), "{line}");
            let mut value = String::new();
            let mut end = None;
            let mut chars = after.char_indices();
            while let Some((at, char)) = chars.next() {
                match char {
                    '"' => {
                        end = Some(at);
                        break;
                    }
                    '\\' => value.push(match chars.next().expect(line).1 {
                        'n' => '\n',
                        char @ ('\\' | '"') => char,
                        other => panic!("\\{other} in {line}"),
                    }),
                    char => value.push(char),
                }
            }
            assert!(
                labels.insert(label.to_owned(), value).is_none(),
                "{label} twice in {line}"
            );
            let after = &after[end.expect(line) + 1..];
            if let Some(after) = after.strip_prefix('}') {
                rest = after;
                break;
            }
            inside = after.strip_prefix(',').expect(line);
        }
    }
    let number = rest.strip_prefix(' ').expect(line);
    assert!(
        !number.contains(' '),
        "neither a time nor an exemplar: {line}"
    );
    Sample {
        name: name.to_owned(),
        labels,
        value: number.parse().expect(line),
    }
}

/// Checks that the samples belong to one family and that each occurs once.
fn check_family(family: &Family) {
    let Family {
        name,
        kind,
        samples,
        ..
    } = family;
    let mut seen = BTreeSet::new();
    for sample in samples {
        assert!(
            seen.insert((&sample.name, &sample.labels)),
            "twice: {sample:?}"
        );
        assert!(sample.value.is_finite(), "{sample:?}");
        match kind.as_str() {
            "counter" => assert!(
                sample.name == *name && name.ends_with("_total") && sample.value >= 0.0,
                "{sample:?}"
            ),
            "gauge" => assert_eq!(sample.name, *name),
            "histogram" => assert!(
                ["_sum", "_count", "_bucket"]
                    .iter()
                    .any(|end| sample.name == format!("{name}{end}")),
                "{sample:?}"
            ),
            other => panic!("{name} is a {other}"),
        }
    }
    if kind == "histogram" {
        check_histogram(name, samples);
    }
}

/// Checks that each histogram has its buckets in order, a sum and a count.
fn check_histogram(name: &str, samples: &[Sample]) {
    let by_labels = |end: &str| -> BTreeMap<&Labels, f64> {
        let wanted = format!("{name}{end}");
        samples
            .iter()
            .filter(|sample| sample.name == wanted)
            .map(|sample| (&sample.labels, sample.value))
            .collect()
    };
    let counts = by_labels("_count");
    let sums = by_labels("_sum");
    let bucket = format!("{name}_bucket");
    let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.name == bucket) {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le").expect("a bound").parse().unwrap();
        buckets
            .entry(labels)
            .or_default()
            .push((bound, sample.value));
    }
    for (labels, buckets) in &buckets {
        assert!(
            buckets.is_sorted_by(|one, two| one.0 < two.0 && one.1 <= two.1),
            "{name} {labels:?} {buckets:?}"
        );
        let (last, all) = buckets.last().unwrap();
        assert!(
            last.is_infinite() && counts.get(labels) == Some(all),
            "{name} {labels:?}"
        );
        assert!(
            sums.get(labels).is_some_and(|sum| *sum >= 0.0),
            "{name} {labels:?}"
        );
    }
    assert_eq!(
        (counts.len(), sums.len()),
        (buckets.len(), buckets.len()),
        "{name}"
    );
}
