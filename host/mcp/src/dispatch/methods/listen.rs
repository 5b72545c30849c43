//! `subscriptions/listen`: notifications for clients without a session.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use toolbay_background::QuotaPortion;

use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::resource_subscriptions::{
    MAX_SUBSCRIPTIONS, MAX_URI_BYTES, SubscriptionRefused, UpdateSubscriber,
};
use crate::host::caller::Caller;
use crate::host::list_source::{ListSource, LoadedPart};
use crate::lists::list_kind::ListChange;
use crate::lists::list_state::CallerView;
use crate::plugin_request::params_memory::busy_rejection;
use crate::protocol::jsonrpc::{self, Error, INVALID_REQUEST, Request, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::session::change_notifications::{self, NotificationPace};
use crate::session::client_session::{Session, SessionChannel};

/// Maximum length of a task id in a filter, in bytes.
const MAX_TASK_ID_BYTES: usize = 128;

/// Quota charge of a watched task, in bytes.
const WATCHED_TASK_BYTES: usize = 512;

#[derive(Deserialize)]
struct ListenParams {
    notifications: ListenFilter,
}

/// The notifications that a subscriber requests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListenFilter {
    #[serde(default)]
    tools_list_changed: bool,
    #[serde(default)]
    prompts_list_changed: bool,
    #[serde(default)]
    resources_list_changed: bool,
    #[serde(default)]
    resource_subscriptions: FilterNames<MAX_URI_BYTES>,
    #[serde(default)]
    task_ids: FilterNames<MAX_TASK_ID_BYTES>,
}

/// Deduplicated URIs or ids in a filter. Entries beyond the limit of a subscriber, and entries of
/// more than `BYTES` bytes, are not honoured and therefore dropped.
#[derive(Default)]
struct FilterNames<const BYTES: usize>(BTreeSet<String>);

impl<'de, const BYTES: usize> Deserialize<'de> for FilterNames<BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'de, const BYTES: usize> Visitor<'de> for FilterNames<BYTES> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(name) = list.next_element::<String>()? {
            if name.len() <= BYTES && self.0.len() < MAX_SUBSCRIPTIONS {
                self.0.insert(name);
            }
        }
        Ok(self)
    }
}

impl ListenFilter {
    /// Returns the list changes that the filter requests.
    fn list_changes(&self) -> Vec<ListChange> {
        let is_requested = |change: &ListChange| match change {
            ListChange::Tools => self.tools_list_changed,
            ListChange::Prompts => self.prompts_list_changed,
            ListChange::Resources => self.resources_list_changed,
        };
        ListChange::ALL.into_iter().filter(is_requested).collect()
    }
}

/// Opens a subscription. Subsequent changes that `caller` can see are reported, even if the
/// acknowledgement is delayed.
///
/// # Errors
///
/// Returns an error if the request is malformed, its id is in use, or the client has too many open
/// requests.
pub(crate) fn open(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    context: &RequestContext,
    reply: &Outbox,
) -> Result<(), Error> {
    if !session.can_accept_request() {
        return Err(Error::new(
            INVALID_REQUEST,
            "this client has too many open requests",
        ));
    }
    // Reservation for the filter until it is granted.
    let reserved = session.request_quota.try_reserve(
        &caller.name,
        request.params.map_or(0, |params| params.get().len()),
    );
    let reservation = reserved.map_err(|exhausted| {
        Error::new(
            INVALID_REQUEST,
            busy_rejection(exhausted).reason.to_string(),
        )
    })?;
    let ListenParams {
        notifications: filter,
    } = read(request.params)?;
    let initial_view = session.server.lists().view(&caller.rights);
    if session.channel == SessionChannel::Shared && !filter.list_changes().is_empty() {
        session
            .negotiated
            .send_modify(|negotiated| negotiated.follows_lists = true);
    }
    let registered = session
        .in_flight
        .register(&request.id, session.shutdown.ended.child_token());
    let request = registered.ok_or_else(|| {
        Error::new(
            INVALID_REQUEST,
            "a request with this id is already in progress",
        )
    })?;
    let owned_session = Arc::clone(session);
    let caller = caller.clone();
    let reply = reply.clone();
    let revision = context.revision;
    let declares_tasks = context.capabilities.supports_tasks();
    session.spawn(async move {
        let session = owned_session;
        let id = &request.id;
        if !filter.resource_subscriptions.0.is_empty() {
            // The set of resources is complete when the plugins that existed at startup are loaded.
            tokio::select! {
                () = session.server.loading().wait_for(LoadedPart::Everything) => {}
                () = request.cancelled.cancelled() => {}
                () = session.shutdown.closing.cancelled() => {}
            }
        }
        let subscriber = session.server.updates().subscriber();
        let mut granted = tokio::select! {
            granted = apply_filter(session.server.lists(), &caller, &subscriber, &filter) => granted,
            () = request.cancelled.cancelled() => Map::new(),
            () = session.shutdown.closing.cancelled() => Map::new(),
        };
        let list_changes = filter.list_changes();
        let ListenFilter { task_ids: FilterNames(ids), .. } = filter;
        let watched_tasks = if declares_tasks { watch_tasks(&session, &caller, ids, revision).await } else { Vec::new() };
        drop(reservation);
        if !watched_tasks.is_empty() {
            granted.insert("taskIds".into(), watched_tasks.iter().map(|watched| Value::from(&*watched.id)).collect());
        }
        // The acknowledgement is the first message of the subscription.
        let meta = subscription_meta(id);
        let acknowledged = SubscriptionParams { notifications: Some(granted), meta: &meta };
        reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
        drop(acknowledged);
        let listening = async {
            tokio::select! {
                () = notify_of_changes(&session, &caller, &list_changes, &subscriber, initial_view, &meta, &reply) => {}
                () = notify_of_tasks(&session, &caller, watched_tasks, &meta, revision, &reply) => {}
            }
        };
        let is_ended_by_server = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => false,
            () = session.shutdown.closing.cancelled() => true,
            () = reply.closed() => false,
            () = listening => false,
        };
        if session.in_flight.finish(&request) && is_ended_by_server {
            send_final_result(&session, id, revision, &reply).await;
        }
    });
    Ok(())
}

/// Sends the requested notifications until the client disconnects. `initial_view` is the view of
/// the lists at the start of the subscription.
async fn notify_of_changes(
    session: &Session,
    caller: &Caller,
    list_changes: &[ListChange],
    subscriber: &UpdateSubscriber,
    initial_view: CallerView,
    meta: &RawValue,
    reply: &Outbox,
) {
    let lists = async {
        let mut notified_view = initial_view;
        let mut pace = NotificationPace::new();
        while !list_changes.is_empty()
            && session
                .server
                .lists()
                .wait_for_change(notified_view.version)
                .await
                .is_some()
        {
            pace.wait().await;
            let current_view = session.server.lists().view(&caller.rights);
            for change in list_changes
                .iter()
                .filter(|change| change.digest(current_view) != change.digest(notified_view))
            {
                reply
                    .send(notification(
                        change.method(),
                        &SubscriptionParams {
                            notifications: None,
                            meta,
                        },
                    ))
                    .await;
                pace.mark_notified();
            }
            notified_view = current_view;
        }
        // The lists no longer change, but resources may.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = lists => {}
        () = change_notifications::notify_resource_updates(subscriber, &caller.rights, Some(meta), reply) => {}
    }
}

/// A task whose status notifications a client requested.
struct WatchedTask {
    id: Box<str>,
    /// Signals changes of the task; `None` if it has ended.
    changes: Option<watch::Receiver<u64>>,
    /// Reservation from the caller's byte quota.
    _reservation: QuotaPortion,
}

/// Returns the caller's tasks among those that a filter names, as far as the quota allows.
async fn watch_tasks(
    session: &Session,
    caller: &Caller,
    ids: BTreeSet<String>,
    revision: Revision,
) -> Vec<WatchedTask> {
    let tasks = session.server.tasks();
    let mut watched_tasks = Vec::new();
    for id in ids {
        if tasks.get(&caller.name, &id, revision).await.is_none() {
            continue;
        }
        match session
            .server
            .updates()
            .reserve_bytes(&caller.name, WATCHED_TASK_BYTES)
        {
            Ok(reservation) => {
                let changes = tasks
                    .get_live(&caller.name, &id)
                    .map(|live| live.subscribe_changes());
                watched_tasks.push(WatchedTask {
                    id: id.into(),
                    changes,
                    _reservation: reservation,
                });
            }
            Err(exhausted) => {
                tracing::debug!(
                    caller = caller.name,
                    "tasks not watched: {}",
                    SubscriptionRefused::OverQuota(exhausted)
                );
                break;
            }
        }
    }
    watched_tasks
}

/// Reports the state of each task whenever it changes, and of ended tasks once. Changes while a
/// slow client reads are combined into one notification. Nothing is buffered for such a client:
/// notifications are encoded one at a time.
async fn notify_of_tasks(
    session: &Session,
    caller: &Caller,
    watched_tasks: Vec<WatchedTask>,
    meta: &RawValue,
    revision: Revision,
    reply: &Outbox,
) {
    let encoding_lock = &Mutex::new(());
    let notifiers = watched_tasks.into_iter().map(|watched| async move {
        // Moves the whole struct, so that its reservation lasts as long as this future.
        let WatchedTask {
            id: task_id,
            mut changes,
            _reservation,
        } = watched;
        loop {
            let has_changed = match &mut changes {
                Some(changes) => changes.changed().await.is_ok(),
                None => false,
            };
            let _encoding_guard = encoding_lock.lock().await;
            let current = session
                .server
                .tasks()
                .get(&caller.name, &task_id, revision)
                .await;
            // An expired task no longer exists.
            let Some(task) = current else { return };
            let Ok(mut detailed) = task.detailed() else {
                return;
            };
            detailed.meta = Some(meta);
            let message = OutgoingMessage::notification(jsonrpc::notification(
                "notifications/tasks",
                Some(&detailed),
            ));
            drop(detailed);
            let is_last = task.state.is_final() || !has_changed;
            drop(task);
            reply.send(message).await;
            if is_last {
                return;
            }
        }
    });
    futures_util::future::join_all(notifiers).await;
    std::future::pending::<()>().await;
}

/// Returns the part of a filter that is honoured.
async fn apply_filter(
    source: &dyn ListSource,
    caller: &Caller,
    subscriber: &UpdateSubscriber,
    filter: &ListenFilter,
) -> Map<String, Value> {
    let lists = filter
        .list_changes()
        .into_iter()
        .map(|change| (change.filter_member().to_owned(), true.into()));
    let uris = subscribe(source, caller, subscriber, filter).await;
    let resources = (!uris.is_empty()).then(|| ("resourceSubscriptions".to_owned(), uris.into()));
    lists.chain(resources).collect()
}

/// Subscribes to the resources that the filter names. Returns the URIs that are honoured: the
/// resource exists, the caller may read it, and the quota allows it.
async fn subscribe(
    source: &dyn ListSource,
    caller: &Caller,
    subscriber: &UpdateSubscriber,
    filter: &ListenFilter,
) -> Vec<String> {
    let to_listed_uri = |uri: &String| source.listed_uri(uri).unwrap_or_else(|| uri.clone());
    let requested_uris: Vec<String> = filter
        .resource_subscriptions
        .0
        .iter()
        .map(to_listed_uri)
        .collect();
    let mut uris = caller.filter_readable(requested_uris.iter()).await;
    uris.retain(|uri| match subscriber.add(&caller.name, uri) {
        Ok(()) => true,
        Err(refused) => {
            tracing::debug!(
                caller = caller.name,
                uri = jsonrpc::truncate_quote(uri),
                "subscription not honored: {refused}"
            );
            false
        }
    });
    uris
}

/// Ends a subscription from the server's side. Sends only the result, because clients treat a
/// cancellation as a second end.
async fn send_final_result(session: &Session, id: &RequestId, revision: Revision, reply: &Outbox) {
    let mut common = Map::new();
    session.add_common_members(&mut common, revision);
    let meta = match common.shift_remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    let result = FinalResult {
        meta: SubscriptionMeta { id, common: meta },
        common,
    };
    reply
        .send(OutgoingMessage::response(jsonrpc::result(id, &result)))
        .await;
}

/// `_meta` of a subscription. The id is written as the client wrote it.
#[derive(Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RequestId,
    #[serde(flatten)]
    common: Map<String, Value>,
}

/// The parameters of a notification of a subscription.
#[derive(Serialize)]
struct SubscriptionParams<'a> {
    /// The part of the filter that is honoured, for the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<Map<String, Value>>,
    #[serde(rename = "_meta")]
    meta: &'a RawValue,
}

/// The result that ends a subscription.
#[derive(Serialize)]
struct FinalResult<'a> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
    #[serde(flatten)]
    common: Map<String, Value>,
}

/// Returns the `_meta` of the notifications of a subscription.
fn subscription_meta(id: &RequestId) -> Box<RawValue> {
    // An id is valid JSON, so this does not fail.
    to_raw_value(&SubscriptionMeta {
        id,
        common: Map::new(),
    })
    .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn notification(method: &str, params: &impl Serialize) -> OutgoingMessage {
    OutgoingMessage::notification(jsonrpc::notification(method, Some(params)))
}
