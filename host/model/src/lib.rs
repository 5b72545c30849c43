//! The types that all parts of Toolbay share, as plain data.
//!
//! Definitions of tools, prompts, resources and skills, results of calls, limits, errors, usage,
//! and the [`CallObserver`] of a running call. This crate reads no files, starts no threads, and
//! does not depend on wasmtime, JSON-RPC or the revisions of MCP. Values come from serde or from
//! the crate that creates them, and every other crate uses them.

mod answer;
mod approval;
mod completion;
mod content;
mod cpu_time;
mod definition;
mod digest;
mod error;
mod exchange;
mod header;
mod icon;
mod identity;
mod interrupt;
mod json;
mod limits;
mod manner;
mod meta;
mod name;
mod observer;
mod oversize;
mod preference;
mod prompt;
mod question;
mod rate_limit;
mod rejection;
mod request;
mod resource;
mod skill;
mod tool;
mod trace;
mod usage;
mod violation;

pub mod setting;
pub mod text;
pub mod uri;

pub use self::answer::{CallFailure, CallResult};
pub use self::approval::{ApprovalState, MissingApproval, WhyUnapproved};
pub use self::completion::{CompletionReference, CompletionRequest, CompletionResult};
pub use self::content::{
    ContentBlock, ContentBody, EmbeddedResource, MediaContent, ResourceContent, ResourceLink, ToolOutput,
};
pub use self::cpu_time::thread_cpu_time;
pub use self::definition::{ComponentDescription, EffectHints, ToolDefinition};
pub use self::digest::Digest;
pub use self::error::{CallError, ErrorKind, Limit};
pub use self::exchange::HttpExchange;
pub use self::header::{HeaderKind, ParamHeader};
pub use self::icon::{Icon, IconTheme};
pub use self::identity::CallerIdentity;
pub use self::interrupt::Interrupt;
pub use self::json::{JsonSize, JsonText};
pub use self::limits::{ClampedLimit, LimitValue, Limits, LimitsPatch, milliseconds, serialize_amounts};
pub use self::manner::GuestServerProtocol;
pub use self::meta::is_reserved_meta;
pub use self::name::{TOOL_NAME, is_name, is_tool_name};
pub use self::observer::{CallObserver, LogLevel, NoopObserver, ProgressUpdate, UseKind};
pub use self::oversize::OversizePolicy;
pub use self::preference::{ArgumentCheck, CallerPreferences, SchemaForm};
pub use self::prompt::{Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptOutput};
pub use self::question::{
    AskedAbout, CallJournal, Question, QuestionKind, QuestionKindSet, QuestionRound, RecordedEffect,
};
pub use self::rate_limit::{RateLimit, ToolRateLimit};
pub use self::rejection::{CallRejection, CapacityLimit, RejectionReason};
pub use self::request::{CallReply, CallRequest, TargetKind};
pub use self::resource::{ListedResource, ResourceDefinition, ResourceItem};
pub use self::skill::Skill;
pub use self::tool::{TaskSupport, Tool};
pub use self::trace::TraceContext;
pub use self::usage::CallUsage;
pub use self::violation::SchemaViolation;
