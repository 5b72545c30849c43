//! Names that a caller probably meant instead of an unknown one.

/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of names that are compared. A comparison takes about a microsecond, and a client
/// can cause as many as it likes.
const MAX_COMPARED: usize = 1_000;

/// Maximum length of a name that is compared, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Minimum similarity of a suggestion. Below 0.8, a suggestion is more often wrong than right.
const MIN_SIMILARITY: f64 = 0.8;

/// Maximum difference between the similarities of the first suggestion and of the others.
const MAX_DISTANCE: f64 = 0.1;

/// Minimum length of a name that counts as similar to the longer names that contain it, in bytes.
const MIN_PART_BYTES: usize = 3;

/// Similarity of a name to a longer name that contains it.
const PART_SIMILARITY: f64 = 0.9;

/// Returns the names in `known` that are the most similar to `name`, the most similar first: at
/// most three, and none if `name` itself is known or too long.
///
/// Case and separators count little: clients show `weather.now` as `weather_now`, and people write
/// `weatherNow`.
pub fn similar_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let folded = fold(name);
    let mut similar: Vec<(f64, &str)> = known
        .into_iter()
        .take(MAX_COMPARED)
        .filter(|candidate| candidate.len() <= MAX_NAME_BYTES && *candidate != name)
        .map(|candidate| (similarity(&folded, &fold(candidate)), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = similar.first().map_or(1.0, |(similarity, _)| *similarity);
    similar
        .into_iter()
        .take_while(|(similarity, _)| best - similarity <= MAX_DISTANCE)
        .take(MAX_SUGGESTIONS)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Returns the question whether one of these names was meant, such as `did you mean "a" or "b"?`.
/// `None` without names.
pub fn suggestion_question(names: &[impl AsRef<str>]) -> Option<String> {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("{:?}", name.as_ref()))
        .collect();
    let (last, others) = quoted.split_last()?;
    Some(if others.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", others.join(", "))
    })
}

fn similarity(name: &str, candidate: &str) -> f64 {
    let is_part = name.len() >= MIN_PART_BYTES && candidate.contains(name);
    let part = if is_part { PART_SIMILARITY } else { 0.0 };
    strsim::jaro_winkler(name, candidate).max(part)
}

/// Returns a name in lower case and without separators.
fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | '/' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 6] = [
        "calculate_sum",
        "calculate_total",
        "convert_time",
        "echo",
        "time_now",
        "weather.now",
    ];

    #[test]
    fn the_most_similar_names_are_suggested() {
        let cases: [(&str, &[&str]); 9] = [
            ("ecko", &["echo"]),
            ("convertTime", &["convert_time"]),
            ("weather_now", &["weather.now"]),
            ("sum", &["calculate_sum"]),
            ("calculate", &["calculate_sum", "calculate_total"]),
            ("echo", &[]),
            ("zzz", &[]),
            ("", &[]),
            ("su", &[]),
        ];
        for (name, expected) in cases {
            assert_eq!(similar_names(name, TOOLS), expected, "{name}");
        }
    }

    #[test]
    fn long_and_many_names_are_not_compared() {
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        assert!(similar_names(&long, [long.get(1..).unwrap()]).is_empty());
        assert!(similar_names("aaaa", [long.as_str()]).is_empty());
        let many = std::iter::repeat_n("zzz", MAX_COMPARED).chain(["echo"]);
        assert!(similar_names("ecko", many).is_empty());
        let same = ["echo1", "echo2", "echo3", "echo4"];
        assert_eq!(similar_names("echo", same), ["echo1", "echo2", "echo3"]);
    }

    #[test]
    fn the_question_lists_the_names() {
        let question = |names: &[&str]| suggestion_question(names);
        assert_eq!(question(&[]), None);
        assert_eq!(question(&["a"]).unwrap(), r#"did you mean "a"?"#);
        assert_eq!(
            question(&["a", "b", "c"]).unwrap(),
            r#"did you mean "a", "b" or "c"?"#
        );
    }
}
