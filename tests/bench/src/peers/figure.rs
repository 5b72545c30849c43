//! The compared figures.

use toolbay_report::Unit;

/// One figure of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    Cold,
    Idle,
    Own,
    AloneMedian,
    AloneTail,
    AloneCpu,
    Eight,
    EightCpu,
    SixtyFour,
    SixtyFourCpu,
    Mebibyte,
    BesideTwo,
    BesideEight,
    SessionAlone,
    SessionEight,
    SessionSixtyFour,
    SessionCpu,
    StatelessAlone,
    StatelessEight,
    StatelessSixtyFour,
    StatelessCpu,
}

impl Figure {
    pub(super) const ALL: [Self; 21] = [
        Self::Cold,
        Self::Idle,
        Self::Own,
        Self::AloneMedian,
        Self::AloneTail,
        Self::AloneCpu,
        Self::Eight,
        Self::EightCpu,
        Self::SixtyFour,
        Self::SixtyFourCpu,
        Self::Mebibyte,
        Self::BesideTwo,
        Self::BesideEight,
        Self::SessionAlone,
        Self::SessionEight,
        Self::SessionSixtyFour,
        Self::SessionCpu,
        Self::StatelessAlone,
        Self::StatelessEight,
        Self::StatelessSixtyFour,
        Self::StatelessCpu,
    ];

    /// Returns a description.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Cold => "start to the first answer of a call",
            Self::Idle => "resident memory, idle",
            Self::Own => "resident memory, idle, without pages of the program and of libraries",
            Self::AloneMedian => "stdio, one call at a time, p50",
            Self::AloneTail => "stdio, one call at a time, p99",
            Self::AloneCpu => "stdio, one call at a time, processor time of the server",
            Self::Eight => "stdio, 8 callers",
            Self::EightCpu => "stdio, 8 callers, processor time of a call",
            Self::SixtyFour => "stdio, 64 callers",
            Self::SixtyFourCpu => "stdio, 64 callers, processor time of a call",
            Self::Mebibyte => "stdio, 1 MiB there and back, p50",
            Self::BesideTwo => "stdio, p99 beside 2 calls that compute",
            Self::BesideEight => "stdio, p99 beside 8 calls that compute",
            Self::SessionAlone => "HTTP with sessions, one call at a time, p50",
            Self::SessionEight => "HTTP with sessions, 8 clients",
            Self::SessionSixtyFour => "HTTP with sessions, 64 clients",
            Self::SessionCpu => "HTTP with sessions, 64 clients, processor time of a call",
            Self::StatelessAlone => "HTTP without sessions, one call at a time, p50",
            Self::StatelessEight => "HTTP without sessions, 8 clients",
            Self::StatelessSixtyFour => "HTTP without sessions, 64 clients",
            Self::StatelessCpu => "HTTP without sessions, 64 clients, processor time of a call",
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Cold | Self::Mebibyte | Self::BesideTwo | Self::BesideEight => Unit::Milliseconds,
            Self::Idle | Self::Own => Unit::Mebibytes,
            Self::AloneMedian
            | Self::AloneTail
            | Self::AloneCpu
            | Self::EightCpu
            | Self::SixtyFourCpu
            | Self::SessionAlone
            | Self::SessionCpu
            | Self::StatelessAlone
            | Self::StatelessCpu => Unit::Microseconds,
            Self::Eight
            | Self::SixtyFour
            | Self::SessionEight
            | Self::SessionSixtyFour
            | Self::StatelessEight
            | Self::StatelessSixtyFour => Unit::PerSecond,
        }
    }
}
