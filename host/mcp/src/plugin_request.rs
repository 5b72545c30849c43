//! Requests that enter a plugin: the call, its questions to the client, and the task that it can
//! become.

mod call_driver;
mod call_entry;
mod call_outcome;
mod call_state;
mod completed_call;
pub(crate) mod elicitation;
pub(crate) mod encoded_call;
pub(crate) mod entry_params;
pub(crate) mod input_responses;
pub(crate) mod params_memory;
mod parsed_call;
pub(crate) mod pending_call;
mod question_round;
pub(crate) mod request_run;
mod restored_journal;
mod retained_request;
pub(crate) mod task_decision;
mod task_start;
