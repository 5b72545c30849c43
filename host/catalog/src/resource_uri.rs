//! URIs and URI templates of resources, and how they are matched within a budget.

pub(crate) mod match_budget;
pub(crate) mod uri;
pub(crate) mod uri_matcher;
pub(crate) mod uri_spelling;
pub(crate) mod uri_template;
