//! Requests that enter a plugin: the call, its questions to the client, and the task that it can
//! become.

pub(crate) mod elicitation;
pub(crate) mod input_responses;
pub(crate) mod request_run;
pub(crate) mod task_decision;
pub(crate) mod task_start;
