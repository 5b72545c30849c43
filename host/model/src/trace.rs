//! The position of a call in a distributed trace (W3C Trace Context): the caller's span and the
//! call's own span.

/// Maximum length of a `tracestate` or `baggage` that is forwarded, in bytes: the limit of the
/// specification of baggage.
const MAX_FORWARDED_BYTES: usize = 8192;

/// A span of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the trace, as 32 hexadecimal digits.
    pub trace_id: String,
    /// The id of this span, as 16 hexadecimal digits.
    pub span_id: String,
    /// The trace flags, as two hexadecimal digits.
    flags: String,
    /// `tracestate`, unchanged.
    pub state: Option<String>,
    /// `baggage`, unchanged.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// Parses a `traceparent` with its accompanying values. Returns `None` if it is invalid.
    pub fn parse(parent: &str, state: Option<String>, baggage: Option<String>) -> Option<Self> {
        let mut parts = parent.trim().split('-');
        let version = parts.next()?;
        let trace = parts.next()?;
        let span = parts.next()?;
        let flags = parts.next()?;
        let hex = |text: &str, length| {
            text.len() == length
                && text
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_nonzero = |text: &str| text.bytes().any(|byte| byte != b'0');
        // Later versions can have further parts at the end; this version must not.
        let has_valid_version =
            hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        if !(has_valid_version
            && hex(trace, 32)
            && is_nonzero(trace)
            && hex(span, 16)
            && is_nonzero(span)
            && hex(flags, 2))
        {
            return None;
        }
        let if_forwardable = |text: Option<String>| {
            text.filter(|text| {
                !text.is_empty()
                    && text.len() <= MAX_FORWARDED_BYTES
                    && !text.chars().any(char::is_control)
            })
        };
        Some(Self {
            trace_id: trace.to_owned(),
            span_id: span.to_owned(),
            flags: flags.to_owned(),
            state: if_forwardable(state),
            baggage: if_forwardable(baggage),
        })
    }

    /// Creates the first span of a new trace. Returns `None` if one of the ids, which are random,
    /// is all zeros.
    pub fn root(trace: [u8; 16], span: [u8; 8], sampled: bool) -> Option<Self> {
        let trace = u128::from_be_bytes(trace);
        let span = u64::from_be_bytes(span);
        let flags = if sampled { "01" } else { "00" }.to_owned();
        let ids = (format!("{trace:032x}"), format!("{span:016x}"));
        (trace != 0 && span != 0).then_some(Self {
            trace_id: ids.0,
            span_id: ids.1,
            flags,
            state: None,
            baggage: None,
        })
    }

    /// Returns the trace flags.
    pub fn flags(&self) -> u8 {
        u8::from_str_radix(&self.flags, 16).unwrap_or_default()
    }

    /// Returns whether the service that started the span records it.
    pub fn is_sampled(&self) -> bool {
        self.flags() & 1 == 1
    }

    /// Returns a new span of the same trace with this one as its parent. `id` is a random id. If it
    /// is all zeros, which is invalid, the child has the id of its parent: the trace is less
    /// detailed but correct.
    #[must_use]
    pub fn child(&self, id: [u8; 8]) -> Self {
        let id = u64::from_be_bytes(id);
        let span = if id == 0 {
            self.span_id.clone()
        } else {
            format!("{id:016x}")
        };
        Self {
            span_id: span,
            ..self.clone()
        }
    }

    /// Returns the `traceparent` for requests that are part of this span.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{}", self.trace_id, self.span_id, self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn a_child_span_belongs_to_the_trace_of_its_parent() {
        let parent = TraceContext::parse(PARENT, Some("a=1".into()), Some(String::new())).unwrap();
        assert_eq!(
            (
                parent.traceparent().as_str(),
                parent.state.as_deref(),
                &parent.baggage
            ),
            (PARENT, Some("a=1"), &None)
        );
        let child = parent.child([1; 8]);
        let other = parent.child([2; 8]);
        assert_ne!(child.span_id, parent.span_id);
        assert_ne!(child.span_id, other.span_id);
        let parsed = TraceContext::parse(&child.traceparent(), child.state.clone(), None).unwrap();
        assert_eq!(parsed, child);
    }

    #[test]
    fn a_new_trace_has_ids_and_flags() {
        let root = TraceContext::root([0xab; 16], [7; 8], true).unwrap();
        assert_eq!(
            root.traceparent(),
            "00-abababababababababababababababab-0707070707070707-01"
        );
        assert_eq!(
            TraceContext::parse(&root.traceparent(), None, None),
            Some(root.clone())
        );
        assert!(root.is_sampled() && root.child([1; 8]).is_sampled());
        assert!(
            !TraceContext::root([1; 16], [1; 8], false)
                .unwrap()
                .is_sampled()
        );
        assert_eq!(TraceContext::root([0; 16], [7; 8], true), None);
        assert_eq!(TraceContext::root([7; 16], [0; 8], true), None);
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let parse = |text: &str| TraceContext::parse(text, None, None);
        for text in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-1",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(
            parse("01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x").is_some(),
            "a later version"
        );
        let long = TraceContext::parse(
            PARENT,
            Some("x".repeat(MAX_FORWARDED_BYTES + 1)),
            Some("a\nb".into()),
        )
        .unwrap();
        assert_eq!((long.state, long.baggage), (None, None));
    }
}
