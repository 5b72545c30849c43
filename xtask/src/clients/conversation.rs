//! The conversations that clients have.

/// One conversation of a client: how it finds out which revision the server speaks, and by which transport.
pub(super) type Conversation = (&'static str, &'static str);

/// What a client of both eras does.
pub(super) const BOTH_ERAS: &[Conversation] =
    &[("legacy", "stdio"), ("auto", "stdio"), ("legacy", "http"), ("auto", "http")];

/// What a client of both eras does that knows the transport of 2024 as well.
pub(super) const EVERYTHING: &[Conversation] =
    &[("legacy", "stdio"), ("auto", "stdio"), ("legacy", "http"), ("auto", "http"), ("legacy", "sse")];

/// What a client does that knows sessions alone, and the transport of 2024.
pub(super) const SESSIONS: &[Conversation] = &[("legacy", "stdio"), ("legacy", "http"), ("legacy", "sse")];
