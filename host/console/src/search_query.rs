//! Search over the words of names and descriptions, in any order and with typing mistakes.

/// Maximum length of a search, in bytes.
const MAX_QUERY_BYTES: usize = 500;

/// Maximum number of words of a search.
const MAX_QUERY_WORDS: usize = 10;

/// Maximum number of bytes of a text that are searched for similar words. Plugins supply the texts.
const MAX_SIMILAR_BYTES: usize = 4_000;

/// Minimum length of a word that may contain a typing mistake, in characters. Most short words are
/// similar to each other.
const MIN_SIMILAR_CHARS: usize = 4;

/// Minimum length of a word that may contain two typing mistakes, in characters.
const MIN_TWO_MISTAKES_CHARS: usize = 8;

/// The words of a search. Each must occur in a text, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    words: Vec<String>,
}

/// The degree to which a text matches a search. The best one sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchMatch {
    /// The text contains all words.
    Contained,
    /// The text contains words that differ from those of the search by a typing mistake.
    Similar,
}

impl SearchQuery {
    /// Parses the text of a search. Separators such as `_`, `-` and `.` separate words.
    pub fn parse(text: &str) -> Self {
        let text = text
            .get(..text.floor_char_boundary(MAX_QUERY_BYTES))
            .unwrap_or_default();
        let words = normalize(text);
        Self {
            words: words
                .split_whitespace()
                .take(MAX_QUERY_WORDS)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Returns whether the search has no words, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the match of an item with these texts, or `None` if it does not match. A word can be
    /// in any of the texts.
    pub fn find<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Option<SearchMatch> {
        if self.is_empty() {
            return Some(SearchMatch::Contained);
        }
        let mut searched = String::new();
        for text in texts {
            searched.push_str(&normalize(text));
            searched.push(' ');
            // A search such as `readfile` finds `readFile`, too.
            if text.chars().any(char::is_uppercase) {
                searched.push_str(&text.to_lowercase());
                searched.push(' ');
            }
        }
        let missing: Vec<&String> = self
            .words
            .iter()
            .filter(|word| !searched.contains(word.as_str()))
            .collect();
        if missing.is_empty() {
            return Some(SearchMatch::Contained);
        }
        let end = searched.floor_char_boundary(MAX_SIMILAR_BYTES);
        let beginning = searched.get(..end).unwrap_or_default();
        missing
            .into_iter()
            .all(|word| {
                beginning
                    .split_whitespace()
                    .any(|other| is_similar(word, other))
            })
            .then_some(SearchMatch::Similar)
    }

    /// Returns the items that contain the words. If there are none, returns the items with similar
    /// words, and true.
    pub fn select<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        find: impl Fn(&Self, &T) -> Option<SearchMatch>,
    ) -> (Vec<T>, bool) {
        let (mut contained, mut similar) = (Vec::new(), Vec::new());
        for item in items {
            match find(self, &item) {
                Some(SearchMatch::Contained) => contained.push(item),
                Some(SearchMatch::Similar) if contained.is_empty() => similar.push(item),
                Some(SearchMatch::Similar) | None => {}
            }
        }
        if contained.is_empty() && !similar.is_empty() {
            (similar, true)
        } else {
            (contained, false)
        }
    }
}

/// Returns the lower-case words of a text, separated by spaces. A new word starts at a capital
/// letter after a small one, as in `readFile`.
fn normalize(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut is_after_small = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() {
            words.push(' ');
            is_after_small = false;
            continue;
        }
        if letter.is_uppercase() && is_after_small {
            words.push(' ');
        }
        is_after_small = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words
}

/// Returns whether `word` is `other`, or its beginning, with a typing mistake.
fn is_similar(word: &str, other: &str) -> bool {
    let length = word.chars().count();
    let max_distance = match length {
        0..MIN_SIMILAR_CHARS => return false,
        MIN_SIMILAR_CHARS..MIN_TWO_MISTAKES_CHARS => 1,
        _ => 2,
    };
    let other_length = other.chars().count();
    if other_length + max_distance < length {
        return false;
    }
    // A search is often the beginning of a word, such as `wether` of `weather's`.
    let lengths = length.saturating_sub(1)..=length + 1;
    lengths
        .chain([other_length])
        .filter(|end| *end <= other_length && end.abs_diff(length) <= max_distance)
        .any(|end| {
            let start: String = other.chars().take(end).collect();
            strsim::osa_distance(word, &start) <= max_distance
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(query: &str, texts: &[&str]) -> Option<SearchMatch> {
        SearchQuery::parse(query).find(texts.iter().copied())
    }

    #[test]
    fn words_match_in_any_order_and_over_several_texts() {
        let texts = ["calculate_sum", "calculator", "Adds two numbers."];
        for query in [
            "",
            "  ",
            "calculate sum",
            "sum calculate",
            "sum_calculate",
            "SUM",
            "numbers calculator",
            "culate",
        ] {
            assert_eq!(find(query, &texts), Some(SearchMatch::Contained), "{query}");
        }
        assert_eq!(find("sum product", &texts), None);
        for query in ["read file", "readfile", "readFile", "file"] {
            let found = find(query, &["readFile"]);
            assert_eq!(found, Some(SearchMatch::Contained), "{query}");
        }
        assert_eq!(find("größe", &["GRÖßE"]), Some(SearchMatch::Contained));
    }

    #[test]
    fn a_typing_mistake_is_tolerated_in_long_words() {
        let texts = ["calculate_statistics", "weather forecasts"];
        for query in [
            "statisitcs",
            "calcualte",
            "wether",
            "forecst weathr",
            "statstics calculate",
        ] {
            assert_eq!(find(query, &texts), Some(SearchMatch::Similar), "{query}");
        }
        for query in ["smu", "forest hill", "calendar", "wxyz"] {
            assert_eq!(find(query, &texts), None, "{query}");
        }
    }

    #[test]
    fn similar_items_are_shown_only_if_none_contains_the_words() {
        let names = ["weather", "wether", "text"];
        let select = |query: &str| {
            SearchQuery::parse(query).select(names, |query, name| query.find([*name]))
        };
        assert_eq!(select("wether"), (vec!["wether"], false));
        assert_eq!(select("weathre"), (vec!["weather"], true));
        assert_eq!(select("none"), (vec![], false));
        assert_eq!(select("").0.len(), 3);
    }

    #[test]
    fn long_searches_and_texts_are_bounded() {
        let long = "wrd ".repeat(100_000);
        assert_eq!(SearchQuery::parse(&long).words.len(), MAX_QUERY_WORDS);
        let one = "é".repeat(100_000);
        assert!(SearchQuery::parse(&one).words[0].len() <= MAX_QUERY_BYTES);
        let late = format!("{}weather", "x ".repeat(MAX_SIMILAR_BYTES));
        assert_eq!(find("weather", &[&late]), Some(SearchMatch::Contained));
        assert_eq!(find("wether", &[&late]), None);
        assert_eq!(find("wether", &[&one, "weather"]), None);
    }
}
