//! Answers to a guest's questions, in the form in which they are sent to the guest.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

/// Answers to a guest's questions, with the state that the guest attached to them.
#[derive(Clone, Debug, Default)]
pub struct QuestionAnswers<'a> {
    /// Responses by question key. Each is the client's result, a JSON object as text.
    pub responses: BTreeMap<&'a str, &'a str>,
    /// State that the guest attached to its questions.
    pub state: Option<String>,
}

impl QuestionAnswers<'_> {
    /// Returns the request parameters that carry the answers.
    pub(crate) fn to_params(&self) -> Vec<(&'static str, Box<RawValue>)> {
        let responses = self.responses.iter().filter_map(|(key, text)| {
            let answer = RawValue::from_string((*text).to_owned()).ok()?;
            Some((*key, answer))
        });
        let responses: BTreeMap<&str, Box<RawValue>> = responses.collect();
        let responses = Some(responses)
            .filter(|all| !all.is_empty())
            .map(|all| to_raw_value(&all));
        let state = self.state.as_ref().map(to_raw_value);
        let members = [("inputResponses", responses), ("requestState", state)];
        members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.ok()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_present_members_are_sent() {
        assert!(QuestionAnswers::default().to_params().is_empty());
        let answers = QuestionAnswers {
            responses: BTreeMap::from([("a", "{\"b\":1}"), ("c", "no JSON")]),
            state: Some("\"s".into()),
        };
        let members: Vec<(&str, String)> = answers
            .to_params()
            .into_iter()
            .map(|(name, value)| (name, value.get().to_owned()))
            .collect();
        let expected = [
            ("inputResponses", r#"{"a":{"b":1}}"#),
            ("requestState", r#""\"s""#),
        ];
        assert_eq!(
            members,
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }
}
