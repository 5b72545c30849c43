//! The types that all parts of Toolbay share, as plain data.
//!
//! Definitions of tools, prompts, resources and skills, results of calls, limits, errors, usage,
//! the [`ByteBudget`] against which memory is counted, and the [`CallObserver`] of a running call.
//! This crate reads no files, starts no threads, and does not depend on wasmtime, JSON-RPC or the
//! revisions of MCP. Other crates construct or deserialize the values, and exchange them.

mod approval;
mod byte_budget;
mod call_result;
mod caller_preferences;
mod completion;
mod content;
mod cpu_time;
mod definition;
mod digest;
mod error;
mod grant_end;
mod guest_server_protocol;
mod header;
mod http_exchange;
mod icon;
mod identity;
mod interrupt;
mod json;
mod limits;
mod meta;
mod name;
mod observer;
mod oversize_policy;
mod prompt;
mod question;
mod rate_limit;
mod rejection;
mod request;
mod resource;
mod similar_name;
mod skill;
mod tool;
mod trace;
mod usage;
mod violation;

pub mod setting;
pub mod text;
pub mod uri;

pub use self::approval::{ApprovalState, MissingApproval, MissingApprovalReason};
pub use self::byte_budget::{BudgetExhausted, ByteBudget, ByteReservation};
pub use self::call_result::{CallFailure, CallResult, UnknownTarget};
pub use self::caller_preferences::{ArgumentCheck, CallerPreferences, SchemaForm};
pub use self::completion::{CompletionReference, CompletionRequest, CompletionResult};
pub use self::content::{
    ContentBlock, ContentBody, EmbeddedResource, MediaContent, ResourceContent, ResourceLink,
    ToolOutput,
};
pub use self::cpu_time::thread_cpu_time;
pub use self::definition::{ComponentDescription, EffectHints, ToolDefinition};
pub use self::digest::Digest;
pub use self::error::{CallError, ErrorKind, Limit};
pub use self::grant_end::GrantEnd;
pub use self::guest_server_protocol::GuestServerProtocol;
pub use self::header::{HeaderKind, ParamHeader};
pub use self::http_exchange::HttpExchange;
pub use self::icon::{Icon, IconTheme};
pub use self::identity::CallerIdentity;
pub use self::interrupt::Interrupt;
pub use self::json::{JsonSize, JsonText};
pub use self::limits::{
    ClampedLimit, LimitValue, Limits, LimitsPatch, milliseconds, serialize_amounts,
};
pub use self::meta::is_reserved_meta;
pub use self::name::{MAX_MCP_TOOL_NAME_BYTES, is_name, is_tool_name};
pub use self::observer::{CallObserver, DenialKind, LogLevel, NoopObserver, ProgressUpdate};
pub use self::oversize_policy::OversizePolicy;
pub use self::prompt::{Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptOutput};
pub use self::question::{
    CallJournal, Question, QuestionKind, QuestionKindSet, QuestionRound, QuestionSubject,
    RecordedEffect,
};
pub use self::rate_limit::{RateLimit, ToolRateLimit};
pub use self::rejection::{CallRejection, CapacityLimit, RejectionReason};
pub use self::request::{CallReply, CallRequest, TargetKind};
pub use self::resource::{ListedResource, ResourceDefinition, ResourceItem};
pub use self::similar_name::{similar_names, suggestion_question};
pub use self::skill::Skill;
pub use self::tool::{TaskSupport, Tool};
pub use self::trace::TraceContext;
pub use self::usage::CallUsage;
pub use self::violation::SchemaViolation;
