//! The conversations of clients: combinations of negotiation mode and transport.

/// A conversation of a client: the way in which it negotiates the revision, and the transport.
pub(super) type ClientConversation = (&'static str, &'static str);

/// The conversations of a client that supports both eras, with and without sessions.
pub(super) const BOTH_ERAS: &[ClientConversation] = &[
    ("legacy", "stdio"),
    ("auto", "stdio"),
    ("legacy", "http"),
    ("auto", "http"),
];

/// The conversations of a client that supports both eras and the HTTP+SSE transport (2024-11-05).
pub(super) const BOTH_ERAS_AND_SSE: &[ClientConversation] = &[
    ("legacy", "stdio"),
    ("auto", "stdio"),
    ("legacy", "http"),
    ("auto", "http"),
    ("legacy", "sse"),
];

/// The conversations of a client that supports only sessions, and the HTTP+SSE transport
/// (2024-11-05).
pub(super) const SESSIONS_AND_SSE: &[ClientConversation] =
    &[("legacy", "stdio"), ("legacy", "http"), ("legacy", "sse")];
