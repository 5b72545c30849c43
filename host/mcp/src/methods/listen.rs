//! `subscriptions/listen`: notifications for clients without a session.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, watch};

use crate::caller::Caller;
use crate::changes::{self, NotificationPace};
use crate::entry;
use crate::host::Host;
use crate::jsonrpc::{self, Error, INVALID_REQUEST, Request, RequestId};
use crate::list::ListChange;
use crate::outbox::{Outbox, OutgoingMessage};
use crate::params::read;
use crate::quota::QuotaPortion;
use crate::revision::Revision;
use crate::rules::RequestContext;
use crate::session::{Session, SessionChannel};
use crate::updates::{LONGEST, MOST, SubscriptionRefused, UpdateSubscriber};
use crate::view::CallerView;

/// Longest id of a task that is looked for, in bytes.
const LONGEST_ID: usize = 128;

/// What it takes to watch a task, in bytes.
const WATCH: usize = 512;

/// Key of the subscription's id in `_meta`.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

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
    resource_subscriptions: FilterNames<LONGEST>,
    #[serde(default)]
    task_ids: FilterNames<LONGEST_ID>,
}

/// The URIs or ids in a filter, each once: as many as a subscriber can name, of which each has at most so many bytes. Others
/// are not honoured, so they are not kept.
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
            if name.len() <= BYTES && self.0.len() < MOST {
                self.0.insert(name);
            }
        }
        Ok(self)
    }
}

impl ListenFilter {
    /// The changes of lists that are requested.
    fn news(&self) -> Vec<ListChange> {
        let wanted = |news: &ListChange| match news {
            ListChange::Tools => self.tools_list_changed,
            ListChange::Prompts => self.prompts_list_changed,
            ListChange::Resources => self.resources_list_changed,
        };
        ListChange::ALL.into_iter().filter(wanted).collect()
    }
}

/// Opens a subscription. Changes from now on that `caller` can see are reported, even if the acknowledgement is delayed.
///
/// # Errors
///
/// The request is malformed, its id is in use, or the client has too many requests open.
pub(crate) fn open(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    rules: &RequestContext,
    reply: &Outbox,
) -> Result<(), Error> {
    if !session.has_room() {
        return Err(Error::new(INVALID_REQUEST, "this client has too many open requests"));
    }
    // What the filter takes until it is granted.
    let held = session.intake.take(&caller.name, request.params.map_or(0, |params| params.get().len()));
    let held = held.map_err(|none| Error::new(INVALID_REQUEST, entry::busy(none).reason.to_string()))?;
    let ListenParams { notifications: filter } = read(request.params)?;
    let known = session.host.view(&caller.rights);
    if session.channel == SessionChannel::Shared && !filter.news().is_empty() {
        session.negotiated.send_modify(|negotiated| negotiated.follows_lists = true);
    }
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let request =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let (told, caller, reply, revision) = (Arc::clone(session), caller.clone(), reply.clone(), rules.revision);
    let declares_tasks = rules.capabilities.has_tasks();
    session.spawn(async move {
        let (session, id) = (told, &request.id);
        if !filter.resource_subscriptions.0.is_empty() {
            // Which resources there are is known when the plugins that existed at startup are loaded.
            tokio::select! {
                () = session.host.complete() => {}
                () = request.cancelled.cancelled() => {}
                () = session.life.closing.cancelled() => {}
            }
        }
        let subscriber = session.host.updates().subscriber();
        let mut granted = tokio::select! {
            granted = grant(&*session.host, &caller, &subscriber, &filter) => granted,
            () = request.cancelled.cancelled() => Map::new(),
            () = session.life.closing.cancelled() => Map::new(),
        };
        let news = filter.news();
        let ListenFilter { task_ids: FilterNames(ids), .. } = filter;
        let watched = if declares_tasks { watch(&session, &caller, ids, revision).await } else { Vec::new() };
        drop(held);
        if !watched.is_empty() {
            granted.insert("taskIds".into(), watched.iter().map(|watched| Value::from(&*watched.id)).collect());
        }
        // Nothing of the subscription is sent before this.
        let acknowledged = json!({"notifications": granted, "_meta": {SUBSCRIPTION_ID: id}});
        reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
        drop(acknowledged);
        let listening = async {
            tokio::select! {
                () = listen(&session, &caller, &news, &subscriber, known, id, &reply) => {}
                () = tell_of_tasks(&session, &caller, watched, id, revision, &reply) => {}
            }
        };
        let ends_here = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => false,
            () = session.life.closing.cancelled() => true,
            () = reply.closed() => false,
            () = listening => false,
        };
        if session.in_flight.finish(&request) && ends_here {
            conclude(&session, id, revision, &reply).await;
        }
    });
    Ok(())
}

/// Notifies the client of what it asked for, until it disconnects. `known` is what it knows of the lists.
async fn listen(
    session: &Session,
    caller: &Caller,
    news: &[ListChange],
    subscriber: &UpdateSubscriber,
    known: CallerView,
    id: &RequestId,
    reply: &Outbox,
) {
    let meta = json!({SUBSCRIPTION_ID: id});
    let lists = async {
        let (mut told, mut pace) = (known, NotificationPace::new());
        while !news.is_empty() && session.host.changed(told.listing).await.is_some() {
            pace.wait().await;
            let now = session.host.view(&caller.rights);
            for news in news.iter().filter(|news| news.digest(now) != news.digest(told)) {
                reply.send(notification(news.method(), &json!({"_meta": meta}))).await;
                pace.begin();
            }
            told = now;
        }
        // The lists do not change any more. Resources may.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = lists => {}
        () = changes::updates(subscriber, &caller.rights, Some(&meta), reply) => {}
    }
}

/// A task that a client wants to be told of.
struct WatchedTask {
    id: Box<str>,
    /// Says when something becomes of it; `None` if it has ended.
    changes: Option<watch::Receiver<u64>>,
    /// What this takes of the bytes of its caller.
    _held: QuotaPortion,
}

/// The tasks of the caller among those that a filter names, as far as there is room.
async fn watch(session: &Session, caller: &Caller, ids: BTreeSet<String>, revision: Revision) -> Vec<WatchedTask> {
    let (tasks, mut watched) = (session.host.tasks(), Vec::new());
    for id in ids {
        if tasks.get(&caller.name, &id, revision).await.is_none() {
            continue;
        }
        match session.host.updates().hold(&caller.name, WATCH) {
            Ok(held) => {
                let changes = tasks.live(&caller.name, &id).map(|live| live.changes());
                watched.push(WatchedTask { id: id.into(), changes, _held: held });
            }
            Err(none) => {
                tracing::debug!(caller = caller.name, "tasks not watched: {}", SubscriptionRefused::NoRoom(none));
                break;
            }
        }
    }
    watched
}

/// Tells of each task what it is whenever that changes, and of those that have ended once. Changes that happen while a slow
/// client reads are combined into one notification. Nothing is kept for such a client: one notification at a time is written.
async fn tell_of_tasks(
    session: &Session,
    caller: &Caller,
    watched: Vec<WatchedTask>,
    id: &RequestId,
    revision: Revision,
    reply: &Outbox,
) {
    let (meta, turn) = (&json!({SUBSCRIPTION_ID: id}), &Mutex::new(()));
    let telling = watched.into_iter().map(|watched| async move {
        // All of it: it is counted for as long as this goes on.
        let WatchedTask { id: task, mut changes, _held } = watched;
        loop {
            let goes_on = match &mut changes {
                Some(changes) => changes.changed().await.is_ok(),
                None => false,
            };
            let _turn = turn.lock().await;
            let now = session.host.tasks().get(&caller.name, &task, revision).await;
            // It is forgotten when its time is over.
            let Some(now) = now else { return };
            let Ok(mut detailed) = now.detailed() else { return };
            detailed.summary.insert("_meta".into(), meta.clone());
            let told = OutgoingMessage::notification(jsonrpc::notification("notifications/tasks", Some(&detailed)));
            drop(detailed);
            let ended = now.state.is_final() || !goes_on;
            drop(now);
            reply.send(told).await;
            if ended {
                return;
            }
        }
    });
    futures_util::future::join_all(telling).await;
    std::future::pending::<()>().await;
}

/// The part of a filter that is honoured.
async fn grant(
    host: &dyn Host,
    caller: &Caller,
    subscriber: &UpdateSubscriber,
    filter: &ListenFilter,
) -> Map<String, Value> {
    let lists = filter.news().into_iter().map(|news| (news.filter().to_owned(), true.into()));
    let uris = subscribe(host, caller, subscriber, filter).await;
    let resources = (!uris.is_empty()).then(|| ("resourceSubscriptions".to_owned(), uris.into()));
    lists.chain(resources).collect()
}

/// Subscribes to what the filter names, and returns what is honoured: resources that there are, that the caller may read,
/// and for which there is room.
async fn subscribe(
    host: &dyn Host,
    caller: &Caller,
    subscriber: &UpdateSubscriber,
    filter: &ListenFilter,
) -> Vec<String> {
    let spelled = |uri: &String| host.spelling(uri).unwrap_or_else(|| uri.clone());
    let wanted: Vec<String> = filter.resource_subscriptions.0.iter().map(spelled).collect();
    let mut uris = caller.readable(wanted.iter()).await;
    uris.retain(|uri| match subscriber.add(&caller.name, uri) {
        Ok(()) => true,
        Err(refused) => {
            tracing::debug!(caller = caller.name, uri = jsonrpc::shorten(uri), "subscription not honoured: {refused}");
            false
        }
    });
    uris
}

/// Ends a subscription from the server's side: with its result alone, as clients treat a cancellation as a second end.
async fn conclude(session: &Session, id: &RequestId, revision: Revision, reply: &Outbox) {
    let result = Map::from_iter([("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}))]);
    reply.send(session.result(id, result, Some(revision))).await;
}

fn notification(method: &str, params: &Value) -> OutgoingMessage {
    OutgoingMessage::notification(jsonrpc::notification(method, Some(params)))
}
