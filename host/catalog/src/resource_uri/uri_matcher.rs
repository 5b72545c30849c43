//! Finds which of many URI templates a URI matches. Only templates with a matching prefix are
//! tried, all within one budget.

use crate::resource_uri::match_budget::{MatchBudget, MatchBudgetExhausted};
use crate::resource_uri::uri::MatchedUri;
use crate::resource_uri::uri_template::UriTemplate;

/// An index of URI templates by their prefixes.
#[derive(Clone, Debug, Default)]
pub struct UriMatcher {
    /// The prefixes, in ascending order of their texts.
    prefixes: Vec<TemplatePrefix>,
}

/// The templates that have the same prefix.
#[derive(Clone, Debug)]
struct TemplatePrefix {
    text: Box<str>,
    /// The index of the longest other prefix that is a prefix of this one.
    parent: Option<usize>,
    /// The indexes of the templates, in ascending order.
    templates: Vec<usize>,
}

impl UriMatcher {
    /// Builds the index. Templates are numbered in the order of the iterator.
    pub(crate) fn new<'a>(templates: impl Iterator<Item = &'a UriTemplate>) -> Self {
        let mut sorted: Vec<(&str, usize)> = templates
            .enumerate()
            .map(|(number, template)| (template.prefix(), number))
            .collect();
        sorted.sort_unstable();
        let (mut prefixes, mut ancestors): (Vec<TemplatePrefix>, Vec<usize>) =
            (Vec::new(), Vec::new());
        for (text, number) in sorted {
            if let Some(last) = prefixes.last_mut().filter(|last| *last.text == *text) {
                last.templates.push(number);
                continue;
            }
            let is_prefix = |at: &usize| {
                prefixes
                    .get(*at)
                    .is_some_and(|other| text.starts_with(&*other.text))
            };
            while ancestors.last().is_some_and(|at| !is_prefix(at)) {
                ancestors.pop();
            }
            let parent = ancestors.last().copied();
            ancestors.push(prefixes.len());
            prefixes.push(TemplatePrefix {
                text: text.into(),
                parent,
                templates: vec![number],
            });
        }
        Self { prefixes }
    }

    /// Returns the number of the first template that `uri` matches. `templates` must return the
    /// templates from which the index was built.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget is exhausted.
    pub(crate) fn find_first<'a>(
        &self,
        uri: &str,
        templates: impl Fn(usize) -> Option<&'a UriTemplate>,
        budget: &mut MatchBudget,
    ) -> Result<Option<usize>, MatchBudgetExhausted> {
        // Every prefix of the URI sorts before it, and all texts between the two begin with that
        // prefix.
        let last = self.prefixes.partition_point(|prefix| *prefix.text <= *uri);
        let Some(mut index) = last.checked_sub(1) else {
            return Ok(None);
        };
        budget.spend(uri.len())?;
        let mut candidates = Vec::new();
        let nearest = self.prefixes.get(index).map_or("", |prefix| &*prefix.text);
        let common_length = nearest
            .bytes()
            .zip(uri.bytes())
            .take_while(|(one, other)| one == other)
            .count();
        while let Some(prefix) = self.prefixes.get(index) {
            budget.spend(1)?;
            if prefix.text.len() <= common_length {
                budget.spend(prefix.templates.len())?;
                candidates.extend_from_slice(&prefix.templates);
            }
            let Some(parent) = prefix.parent else {
                break;
            };
            index = parent;
        }
        if candidates.is_empty() {
            return Ok(None);
        }
        let Some(uri) = MatchedUri::parse(uri) else {
            return Ok(None);
        };
        candidates.sort_unstable();
        for number in candidates {
            if let Some(template) = templates(number)
                && template.matches_with_budget(&uri, budget)?
            {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn templates(texts: &[String]) -> Vec<UriTemplate> {
        texts
            .iter()
            .filter_map(|text| UriTemplate::parse(text).ok())
            .collect()
    }

    fn first(
        templates: &[UriTemplate],
        uri: &str,
        steps: &mut MatchBudget,
    ) -> Result<Option<usize>, MatchBudgetExhausted> {
        UriMatcher::new(templates.iter()).find_first(uri, |number| templates.get(number), steps)
    }

    #[test]
    fn templates_with_other_prefixes_cost_nothing() {
        let many: Vec<String> = (0..4000).map(|n| format!("x://{n:04}/{{id}}")).collect();
        let many = templates(&many);
        let mut steps = MatchBudget::new(1000);
        assert_eq!(first(&many, "x://1234/abc", &mut steps), Ok(Some(1234)));
        assert_eq!(first(&many, "x://9999/abc", &mut steps), Ok(None));
        assert!(steps.left() > 900, "{steps:?}");
    }

    #[test]
    fn hostile_templates_cost_no_more_than_the_budget() {
        let body = (0..15)
            .map(|n| format!("{{+w{n}}}x"))
            .collect::<Vec<_>>()
            .concat();
        let many: Vec<String> = (0..3000).map(|n| format!("a:{{+v{n}}}x{body}")).collect();
        let many = templates(&many);
        assert_eq!(many.len(), 3000);
        let uri = format!("a:{}yx", "x".repeat(2000));
        let mut steps = MatchBudget::new(MatchBudget::PER_URI);
        let matching = UriMatcher::new(many.iter());
        // It matches the first one, so no work is spent on the others.
        assert_eq!(
            matching.find_first(&uri, |number| many.get(number), &mut steps),
            Ok(Some(0))
        );
        assert!(steps.left() > MatchBudget::PER_URI - 100_000, "{steps:?}");
        let body = (0..14)
            .map(|n| format!("{{+w{n}}}x"))
            .collect::<Vec<_>>()
            .concat();
        let none: Vec<String> = (0..3000)
            .map(|n| format!("a:{{+v{n}}}x{body}Q{{+z}}"))
            .collect();
        let none = templates(&none);
        assert_eq!(none.len(), 3000);
        let mut request = MatchBudget::new(MatchBudget::PER_REQUEST);
        let uri = format!("a:{}yQz", "x".repeat(2000));
        let matching = UriMatcher::new(none.iter());
        for _ in 0..256 {
            let found = request.with_part(MatchBudget::PER_URI, |steps| {
                matching.find_first(&uri, |number| none.get(number), steps)
            });
            assert_eq!(found, Err(MatchBudgetExhausted));
        }
        assert_eq!(request.left(), 0);
    }

    proptest! {
        #[test]
        fn the_first_is_the_same_as_when_each_is_tried(
            texts in prop::collection::vec("x:[ab/]{0,3}\\{\\+?a\\}([ab/]{1,2}\\{\\+?b\\})?[ab]{0,1}", 1..12),
            uri in "x:[ab/.]{0,8}",
        ) {
            let all = templates(&texts);
            let expected = all.iter().position(|template| template.matches(&uri));
            prop_assert_eq!(first(&all, &uri, &mut MatchBudget::new(usize::MAX)), Ok(expected));
        }
    }
}
