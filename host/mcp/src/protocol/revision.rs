//! The supported revisions of MCP and their differences: one row per revision, one flag per
//! difference.

use std::fmt;

/// A dated revision of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

/// The differences between revisions, as flags. Every flag changes the output to clients; the tests
/// in `testing::revision_flags` verify that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one difference between dated documents, and independent"
)]
pub(crate) struct RevisionFeatures {
    /// The date that identifies the revision.
    pub(crate) date: &'static str,
    /// Sessions start with `initialize`, which negotiates the revision. Without sessions, every
    /// request states its own revision.
    pub(crate) sessions: bool,
    /// The methods `ping`, `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe`.
    pub(crate) session_methods: bool,
    /// The method `server/discover`.
    pub(crate) discover: bool,
    /// The method `subscriptions/listen`.
    pub(crate) subscriptions: bool,
    /// JSON-RPC batches.
    pub(crate) batches: bool,
    /// Annotations of tools.
    pub(crate) annotations: bool,
    /// Audio content.
    pub(crate) audio: bool,
    /// A message with progress.
    pub(crate) progress_message: bool,
    /// Titles of tools, prompts, their arguments, resources and of the server.
    pub(crate) titles: bool,
    /// Output schemas and structured content.
    pub(crate) structured: bool,
    /// Output schemas and structured content of any JSON type; otherwise objects only.
    pub(crate) any_structure: bool,
    /// Links to resources as content.
    pub(crate) resource_links: bool,
    /// The time when content or a resource was last modified.
    pub(crate) last_modified: bool,
    /// `_meta` in the definitions of tools, prompts and resources, and in the contents of
    /// resources.
    pub(crate) definition_meta: bool,
    /// Icons of tools, prompts, resources and the server; the server's description and website.
    pub(crate) icons: bool,
    /// The capability `completions`. The method `completion/complete` is older.
    pub(crate) completions: bool,
    /// Completion of an argument receives the arguments before it.
    pub(crate) completion_context: bool,
    /// A resource that does not exist has its own error code.
    pub(crate) not_found_code: bool,
    /// Questions with forms for the user to fill in.
    pub(crate) forms: bool,
    /// Questions with forms have a mode; the other mode sends the user to a page.
    pub(crate) elicitation_modes: bool,
    /// The fields of forms can have titled and multiple choices, and defaults of any type.
    pub(crate) rich_forms: bool,
    /// A question that sends the user to a page has an id.
    pub(crate) elicitation_ids: bool,
    /// The client's model can use tools, and what it reads and writes can have several blocks.
    pub(crate) sampling_tools: bool,
    /// Questions are part of a result, and their answers are part of the next request. Otherwise
    /// questions are requests to the client.
    pub(crate) input_requests: bool,
    /// An error without a request has no id. Otherwise its id is `null`, as it is before a session
    /// has negotiated a revision.
    pub(crate) errors_without_id: bool,
    /// Arguments that do not match the schema are a result with `isError` (SEP-1303); otherwise a
    /// protocol error.
    pub(crate) invalid_arguments_are_results: bool,
    /// Results contain `resultType` and the server's name and version.
    pub(crate) result_type: bool,
    /// Lists and contents of resources state for how long, and for which scope, they can be cached.
    pub(crate) caching_hints: bool,
    /// A missing client capability has its own error code.
    pub(crate) capability_code: bool,
    /// A client can request that a call becomes a task, and query its tasks.
    pub(crate) tasks: bool,
    /// The extension in which the server decides whether a call becomes a task.
    pub(crate) tasks_extension: bool,
    /// Over HTTP, headers repeat parts of the body and are checked against it.
    pub(crate) http_headers: bool,
    /// Over HTTP, the response to an unknown method has status 404; otherwise 200 with an error.
    pub(crate) http_not_found: bool,
    /// Over HTTP, the stream of a session starts with an event without a message, and clients that
    /// have its id poll (SEP-1699).
    pub(crate) polling: bool,
}

const V2024_11_05: RevisionFeatures = RevisionFeatures {
    date: "2024-11-05",
    sessions: true,
    session_methods: true,
    discover: false,
    subscriptions: false,
    batches: false,
    annotations: false,
    audio: false,
    progress_message: false,
    titles: false,
    structured: false,
    any_structure: false,
    resource_links: false,
    last_modified: false,
    definition_meta: false,
    icons: false,
    completions: false,
    completion_context: false,
    not_found_code: true,
    forms: false,
    elicitation_modes: false,
    rich_forms: false,
    elicitation_ids: false,
    sampling_tools: false,
    input_requests: false,
    errors_without_id: false,
    invalid_arguments_are_results: false,
    result_type: false,
    caching_hints: false,
    capability_code: false,
    tasks: false,
    tasks_extension: false,
    http_headers: false,
    http_not_found: false,
    polling: false,
};

const V2025_03_26: RevisionFeatures = RevisionFeatures {
    date: "2025-03-26",
    batches: true,
    annotations: true,
    audio: true,
    progress_message: true,
    completions: true,
    ..V2024_11_05
};

const V2025_06_18: RevisionFeatures = RevisionFeatures {
    date: "2025-06-18",
    batches: false,
    titles: true,
    structured: true,
    resource_links: true,
    last_modified: true,
    definition_meta: true,
    completion_context: true,
    forms: true,
    ..V2025_03_26
};

const V2025_11_25: RevisionFeatures = RevisionFeatures {
    date: "2025-11-25",
    icons: true,
    elicitation_modes: true,
    rich_forms: true,
    elicitation_ids: true,
    sampling_tools: true,
    errors_without_id: true,
    invalid_arguments_are_results: true,
    tasks: true,
    polling: true,
    ..V2025_06_18
};

const V2026_07_28: RevisionFeatures = RevisionFeatures {
    date: "2026-07-28",
    sessions: false,
    session_methods: false,
    discover: true,
    subscriptions: true,
    any_structure: true,
    elicitation_ids: false,
    input_requests: true,
    not_found_code: false,
    result_type: true,
    caching_hints: true,
    capability_code: true,
    tasks: false,
    tasks_extension: true,
    http_headers: true,
    http_not_found: true,
    polling: false,
    ..V2025_11_25
};

impl Revision {
    /// All supported revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision, also used for output to programs that are not clients.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The newest revision with sessions: `initialize` offers it if the requested one is not
    /// supported.
    pub const NEWEST_SESSION: Self = Self::V2025_11_25;

    /// The revision of a request that has no session and no header for it (2025-06-18, "Protocol
    /// Version Header").
    pub(crate) const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// Returns the revision's row of the table.
    pub(crate) const fn features(self) -> &'static RevisionFeatures {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }

    /// Returns the revision with this date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == date)
    }

    /// Returns the dates of all supported revisions, newest first.
    pub fn dates() -> Vec<&'static str> {
        Self::ALL
            .iter()
            .rev()
            .map(|revision| revision.as_str())
            .collect()
    }

    /// Returns the date of the revision.
    pub fn as_str(self) -> &'static str {
        self.features().date
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_and_formatted() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("2024-10-07"), None);
        assert!(Revision::ALL.is_sorted_by_key(|revision| revision.as_str()));
    }

    #[test]
    fn the_constants_for_the_newest_revisions_are_correct() {
        assert_eq!(Revision::ALL.last(), Some(&Revision::NEWEST));
        let with_sessions = Revision::ALL
            .into_iter()
            .rfind(|revision| revision.features().sessions);
        assert_eq!(with_sessions, Some(Revision::NEWEST_SESSION));
    }
}
