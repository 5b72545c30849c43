//! Toolbay.
