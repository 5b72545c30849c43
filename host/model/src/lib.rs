//! The types that all parts of Toolbay share, as plain data.
//!
//! Definitions of tools, prompts, resources and skills, results of calls, limits, errors, usage, and the [`Observer`] of a running
//! call. Nothing here reads a file, starts a thread, or knows wasmtime, JSON-RPC or the revisions of MCP. Values come
//! from serde or from the crate that creates them, and every other crate uses them.

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

pub use self::answer::{Answer, Failure};
pub use self::approval::{Approval, Unapproved, WhyUnapproved};
pub use self::completion::{CompletionRequest, Completions, Reference};
pub use self::content::{Body, Content, Media, Output, Resource, ResourceContent, ResourceLink};
pub use self::cpu_time::thread_cpu_time;
pub use self::definition::{Annotations, Description, ToolDefinition};
pub use self::digest::Digest;
pub use self::error::{CallError, ErrorKind, Limit};
pub use self::exchange::Exchange;
pub use self::header::{HeaderKind, ParamHeader};
pub use self::icon::{Icon, Theme};
pub use self::identity::Identity;
pub use self::interrupt::Interrupt;
pub use self::json::{Json, JsonSize};
pub use self::limits::{Amount, Clamp, Limits, LimitsPatch, milliseconds, serialize_amounts};
pub use self::manner::Manner;
pub use self::meta::is_reserved_meta;
pub use self::name::{TOOL_NAME, is_name, is_tool_name};
pub use self::observer::{LogLevel, Observer, Progress, Quiet, UseKind};
pub use self::oversize::Oversize;
pub use self::preference::{ArgumentCheck, Preferences, SchemaForm};
pub use self::prompt::{Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptOutput};
pub use self::question::{Answerable, AskedAbout, Effect, Interview, Journal, Question, QuestionKind};
pub use self::rate_limit::{RateLimit, ToolRateLimit};
pub use self::rejection::{Bound, Reason, Rejection};
pub use self::request::{Reply, Request, TargetKind};
pub use self::resource::{ListedResource, ResourceDefinition, ResourceItem};
pub use self::skill::Skill;
pub use self::tool::{TaskSupport, Tool};
pub use self::trace::Trace;
pub use self::usage::Usage;
pub use self::violation::Violation;
