//! Sampling of traces.

use toolbay_model::TraceContext;

/// Decides which traces are recorded: a ratio of the traces that start here. Traces of a caller are
/// recorded if the caller records them.
#[derive(Clone, Copy, Debug)]
pub struct TraceSampler {
    /// Exclusive upper bound: a trace is recorded if the last 56 bits of its id are less than this
    /// number.
    threshold: u64,
}

/// Number of values of 56 bits, which is the part of a trace id that is random according to W3C
/// Trace Context.
const RANDOM_RANGE: u64 = 1 << 56;

impl TraceSampler {
    /// Creates a sampler that records this ratio of traces, from 0 to 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the product is between 0 and 2^56, and a ratio is no more exact than that"
    )]
    pub fn new(ratio: f64) -> Self {
        Self {
            threshold: (ratio.clamp(0.0, 1.0) * RANDOM_RANGE as f64) as u64,
        }
    }

    /// Returns the trace context of a call: a child of its caller's span, or the root of a new
    /// trace. Returns `None` if the system provides no random bytes.
    pub fn start_span(self, caller: Option<&TraceContext>) -> Option<TraceContext> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).ok()?;
        let (span, trace) = random.split_first_chunk::<8>()?;
        if let Some(caller) = caller {
            return Some(caller.child(*span));
        }
        let trace: [u8; 16] = trace.try_into().ok()?;
        let (_, last) = trace.split_last_chunk::<8>()?;
        let sampled = u64::from_be_bytes(*last) % RANDOM_RANGE < self.threshold;
        TraceContext::root(trace, *span, sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_traces_are_recorded_at_the_ratio() {
        let recorded = |ratio| {
            let traces = (0..1000).map(|_| TraceSampler::new(ratio).start_span(None).unwrap());
            traces.filter(TraceContext::is_sampled).count()
        };
        assert_eq!(
            [recorded(0.0), recorded(1.0), recorded(7.0)],
            [0, 1000, 1000]
        );
        // Nineteen standard deviations.
        assert!((200..800).contains(&recorded(0.5)));
    }

    #[test]
    fn a_caller_decides_for_its_own_traces() {
        for (flags, sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let caller = TraceContext::parse(
                &format!("00-{}-{}-{flags}", "ab".repeat(16), "cd".repeat(8)),
                None,
                None,
            )
            .unwrap();
            for ratio in [0.0, 1.0] {
                let child = TraceSampler::new(ratio).start_span(Some(&caller)).unwrap();
                assert_eq!(
                    (child.trace_id.as_str(), child.is_sampled()),
                    (caller.trace_id.as_str(), sampled)
                );
                assert_ne!(child.span_id, caller.span_id);
            }
        }
    }
}
