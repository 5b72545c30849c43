//! Computations without input or output, of which each kind uses a processor differently.

use std::hint::black_box;

use regex_automata::hybrid::regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What comes of a computation; nothing if there is none of this name.
pub(crate) fn compute(kernel: &str, size: u32) -> Option<String> {
    Some(match kernel {
        "fib" => fib(black_box(size)).to_string(),
        "sha256" => sha256(size),
        "sort" => sort(size),
        "json" => json_text(size)?,
        "regex" => regex(size)?,
        _ => return None,
    })
}

/// Calls of functions that do nearly nothing.
fn fib(n: u32) -> u64 {
    if n < 2 {
        u64::from(n)
    } else {
        fib(n - 1) + fib(n - 2)
    }
}

/// Arithmetic in loops that a compiler unrolls: the digest of so many KiB.
fn sha256(size: u32) -> String {
    let mut digest = Sha256::new();
    let block: Vec<u8> = numbers(1024)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    for _ in 0..size {
        digest.update(&block);
    }
    format!("{:x}", digest.finalize())
}

/// Comparisons, and memory at random: so many numbers.
fn sort(size: u32) -> String {
    let mut all: Vec<u64> = numbers(size).collect();
    all.sort_unstable();
    all.get(all.len() / 2)
        .map(u64::to_string)
        .unwrap_or_default()
}

/// Small allocations and bytes one by one: so many objects are written and read.
fn json_text(size: u32) -> Option<String> {
    let object = |number: u64| {
        let half = f64::from(u32::try_from(number % 1_000_000).unwrap_or_default()) / 2.0;
        json!({"id": number, "name": format!("number {number}"), "tags": ["a", "b"], "half": half})
    };
    let text = Value::from(numbers(size).map(object).collect::<Vec<_>>()).to_string();
    let read: Value = serde_json::from_str(&text).ok()?;
    let sum = read
        .as_array()?
        .iter()
        .filter_map(|object| object.get("name")?.as_str())
        .map(str::len)
        .sum::<usize>();
    Some(format!("{} {sum}", text.len()))
}

/// An automaton over so many lines of a log.
fn regex(size: u32) -> Option<String> {
    let regex = Regex::new(r"(?-u)\b[a-z]+@[a-z]+\.(com|org) took ([0-9]{3,5})ms\b").ok()?;
    let mut cache = regex.create_cache();
    let mut text = String::new();
    for number in numbers(size) {
        let line = format!(
            "2026-01-01 GET /items/{} user@example.com took {}ms\n",
            number % 977,
            number % 100_000
        );
        text.push_str(&line);
    }
    Some(
        regex
            .find_iter(&mut cache, &text)
            .map(|found| found.len())
            .sum::<usize>()
            .to_string(),
    )
}

/// The same numbers everywhere.
fn numbers(count: u32) -> impl Iterator<Item = u64> {
    (0..count).scan(1_u64, |number, _| {
        *number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(*number >> 20)
    })
}
