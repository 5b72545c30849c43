//! Second stage: registers a parsed call, so that it can be cancelled, and takes its place in the
//! client's queue.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolbay_background::QuotaPortion;
use toolbay_model::{CallRejection, QuestionKindSet};

use crate::exchange::in_flight::RegisteredRequest;
use crate::exchange::observer::PeerObserver;
use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::host::interface::{ClientCall, QueuePlace, RequestMetadata};
use crate::plugin_request::entry_params::ParamsReader;
use crate::plugin_request::input_responses::RetryInput;
use crate::plugin_request::params_memory::ParamsMemory;
use crate::plugin_request::parsed_call::ParsedCall;
use crate::plugin_request::retained_request::RetainedRequest;
use crate::plugin_request::task_decision::TaskMode;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST, Request, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;

/// A registered call, which can be cancelled.
pub(crate) struct PendingCall {
    pub(super) request: RegisteredRequest,
    pub(super) rules: RequestContext,
    /// Boxed to keep this type small: a call that waits for its caller's answers has no
    /// `ClientCall`.
    pub(super) call: Box<ClientCall>,
    pub(super) progress_token: Option<RequestId>,
    pub(super) place: CallPlace,
    /// `None` if the client answers no questions. In that case the plugin asks none.
    pub(super) retained: Option<RetainedRequest>,
    /// Boxed because few calls have one.
    pub(super) retry: Option<Box<RetryInput>>,
    pub(super) task_mode: TaskMode,
    /// Cancelled when the authorization of the caller is withdrawn.
    pub(super) revoked: CancellationToken,
}

/// The place of a call in its client's queue.
pub(super) enum CallPlace {
    /// The call has a place.
    Taken(Box<dyn QueuePlace>),
    /// The call has none, and its response is the rejection.
    Rejected(Box<CallRejection>),
}

/// A call whose task mode may have been open.
pub(crate) enum ModeResolution {
    /// The call can run: its mode is known.
    Ready(Box<PendingCall>),
    /// The call does not match the task support of the tool. It has ended with this error.
    Refused(Error),
    /// Like `Refused`, but the client has cancelled the call and waits for no error.
    Cancelled,
}

impl PendingCall {
    /// Registers a call with the rights of `caller`.
    ///
    /// # Errors
    ///
    /// A request with its id is in progress.
    pub(super) fn register(
        session: &Session,
        caller: &Caller,
        request: &Request<'_>,
        read: ParamsReader,
        parsed: ParsedCall,
    ) -> Result<Box<Self>, Error> {
        let registered = session
            .in_flight
            .register(&request.id, session.shutdown.ended.child_token());
        let registered = registered.ok_or_else(|| {
            Error::new(
                INVALID_REQUEST,
                "a request with this id is already in progress",
            )
        })?;
        let ParsedCall {
            request: wanted,
            memory,
            task_mode,
            answerable,
            rules,
            ..
        } = parsed;
        let target = wanted.target();
        let retains = answerable != QuestionKindSet::default()
            || task_mode != TaskMode::None
            || session.server.calls().may_ask_operator(target);
        let kept = retains.then_some((request.params, read));
        let CallReservation {
            place,
            held,
            retained,
        } = reserve(session, caller, target, memory, kept);
        let call = ClientCall {
            is_permitted: caller.may_use(target),
            rights: caller.rights.clone(),
            request: wanted,
            unreadable: parsed.unreadable,
            corrected: parsed.corrected,
            capabilities: rules.capabilities.clone(),
            answerable,
            journal: Arc::default(),
            session: session.number_for(&rules),
            trace: parsed.trace,
            metadata: trace_metadata(session, caller, &request.id, &rules),
            arguments: caller.preferences.arguments,
            reservation: held,
        };
        Ok(Box::new(Self {
            request: registered,
            rules,
            call: Box::new(call),
            progress_token: parsed.progress_token,
            place,
            retained,
            retry: parsed.retry,
            task_mode,
            revoked: caller.revoked.clone(),
        }))
    }

    /// Returns the registration of the call.
    pub(crate) fn registration(&self) -> &RegisteredRequest {
        &self.request
    }

    /// Returns the revision of the request.
    pub(crate) fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// Returns the task mode of the call.
    pub(crate) fn task_mode(&self) -> TaskMode {
        self.task_mode
    }

    /// Waits, if necessary, until the task mode of the call is known: tools declare their task
    /// support when their plugins are loaded.
    pub(crate) async fn resolve_task_mode(
        mut self: Box<Self>,
        session: &Session,
    ) -> ModeResolution {
        if matches!(self.place, CallPlace::Rejected(_)) {
            // The call was rejected, so its mode is irrelevant.
            self.task_mode = TaskMode::None;
            return ModeResolution::Ready(self);
        }
        let resolved = tokio::select! {
            biased;
            // The call ends in this case.
            () = self.request.cancelled.cancelled() => Ok(TaskMode::None),
            () = session.shutdown.stopped.cancelled() => Ok(TaskMode::None),
            resolved = self.task_mode.resolve(session, self.call.request.target(), &self.rules) => resolved,
        };
        match resolved {
            Ok(task_mode) => {
                self.task_mode = task_mode;
                ModeResolution::Ready(self)
            }
            Err(error) if session.in_flight.finish(&self.request) => {
                ModeResolution::Refused(error.with_id(&self.request.id))
            }
            Err(_) => ModeResolution::Cancelled,
        }
    }

    /// Returns the observer that sends log messages and progress to the client.
    pub(crate) fn observer(
        &self,
        session: &Session,
        reply: &Outbox,
        cancelled: CancellationToken,
    ) -> PeerObserver {
        PeerObserver::new(
            reply.clone(),
            self.call.request.target(),
            &self.rules,
            self.progress_token.clone(),
            cancelled,
            session.server.updates().clone(),
        )
    }
}

/// The place of a call, and the memory that it holds.
struct CallReservation {
    place: CallPlace,
    /// Reservation for the bytes of its parameters.
    held: QuotaPortion,
    retained: Option<RetainedRequest>,
}

/// Takes a place in the client's queue for a call of `target`, if there is memory for its
/// parameters and for the text of a request that may be parsed again.
fn reserve(
    session: &Session,
    caller: &Caller,
    target: &str,
    memory: ParamsMemory,
    kept: Option<(Option<&RawValue>, ParamsReader)>,
) -> CallReservation {
    let reserved = memory.into_reservation().and_then(|held| {
        let retained = kept
            .map(|(params, read)| RetainedRequest::retain(session, caller, params, read))
            .transpose()?;
        Ok((held, retained))
    });
    match reserved {
        Ok((held, retained)) => CallReservation {
            place: match caller.client.enqueue(target) {
                Ok(place) => CallPlace::Taken(place),
                Err(rejection) => CallPlace::Rejected(Box::new(rejection)),
            },
            held,
            retained,
        },
        Err(rejection) => {
            caller.client.record_rejection(target, rejection);
            CallReservation {
                place: CallPlace::Rejected(Box::new(rejection)),
                held: QuotaPortion::default(),
                retained: None,
            }
        }
    }
}

/// Returns the request metadata for tracing, if tracing is on.
fn trace_metadata(
    session: &Session,
    caller: &Caller,
    id: &RequestId,
    rules: &RequestContext,
) -> Option<Box<RequestMetadata>> {
    session.server.options().is_traced.then(|| {
        Box::new(RequestMetadata {
            id: id.to_string(),
            revision: rules.revision.as_str(),
            is_local: caller.name == Caller::LOCAL,
        })
    })
}
