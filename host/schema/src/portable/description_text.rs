//! The description of a schema, with the constraints that its keywords cannot express.

/// Maximum length of a sentence that is added to a description, in characters. Longer ones, such as
/// long lists of values, are omitted.
const MAX_SENTENCE_CHARS: usize = 1_000;

/// The sentences of a description.
pub(super) struct DescriptionText(Vec<String>);

impl DescriptionText {
    /// Starts with the description that the plugin wrote.
    pub(super) fn new(description: Option<&str>) -> Self {
        Self(description.map(str::to_owned).into_iter().collect())
    }

    /// Adds a sentence, unless it is too long.
    pub(super) fn add(&mut self, sentence: &str) {
        if sentence.chars().count() <= MAX_SENTENCE_CHARS {
            self.0.push(sentence.to_owned());
        }
    }

    /// Returns the whole text; `None` if it is empty.
    pub(super) fn joined(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(" "))
    }
}
