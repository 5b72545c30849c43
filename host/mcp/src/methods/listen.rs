//! `subscriptions/listen`: notifications for clients without a session.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::changes;
use crate::jsonrpc::{self, Error, INVALID_REQUEST, Id, Request};
use crate::list::News;
use crate::outbox::{Outbox, Outgoing};
use crate::params::read;
use crate::revision::Revision;
use crate::rules::Rules;
use crate::session::{Channel, Session};
use crate::tasks::Task;
use crate::updates::{LONGEST, MOST, Subscriber};
use crate::view::View;

/// Key of the subscription's id in `_meta`.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Deserialize)]
struct Params {
    notifications: Filter,
}

/// The notifications that a subscriber requests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default)]
    tools_list_changed: bool,
    #[serde(default)]
    prompts_list_changed: bool,
    #[serde(default)]
    resources_list_changed: bool,
    #[serde(default)]
    resource_subscriptions: Uris,
    #[serde(default)]
    task_ids: Uris,
}

/// The URIs in a filter, each once: as many as a subscriber can name. Others are not honoured, so they are not kept.
#[derive(Default)]
struct Uris(BTreeSet<String>);

impl<'de> Deserialize<'de> for Uris {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Uris::default())
    }
}

impl<'de> Visitor<'de> for Uris {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of URIs")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(uri) = list.next_element::<String>()? {
            if uri.len() <= LONGEST && self.0.len() < MOST {
                self.0.insert(uri);
            }
        }
        Ok(self)
    }
}

impl Filter {
    /// The changes of lists that are requested.
    fn news(&self) -> Vec<News> {
        let wanted = |news: &News| match news {
            News::Tools => self.tools_list_changed,
            News::Prompts => self.prompts_list_changed,
            News::Resources => self.resources_list_changed,
        };
        News::ALL.into_iter().filter(wanted).collect()
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
    rules: &Rules,
    reply: &Outbox,
) -> Result<(), Error> {
    let Params { notifications: filter } = read(request.params)?;
    if !session.has_room() {
        return Err(Error::new(INVALID_REQUEST, "this client has too many open requests"));
    }
    let known = session.host.view(&caller.rights);
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
        let mut granted = grant(&session, &caller, &subscriber, &filter);
        let watched =
            if declares_tasks { watch(&session, &caller, &filter.task_ids.0, revision).await } else { Vec::new() };
        if !watched.is_empty() {
            granted.insert("taskIds".into(), watched.iter().map(|(id, _)| Value::from(id.as_str())).collect());
        }
        // Nothing of the subscription is sent before this.
        let acknowledged = json!({"notifications": granted, "_meta": {SUBSCRIPTION_ID: id}});
        reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
        let news = filter.news();
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
    news: &[News],
    subscriber: &Subscriber,
    known: View,
    id: &Id,
    reply: &Outbox,
) {
    let meta = json!({SUBSCRIPTION_ID: id});
    let lists = async {
        let mut told = known;
        while !news.is_empty() && session.host.changed(told.listing).await.is_some() {
            let now = session.host.view(&caller.rights);
            for news in news.iter().filter(|news| news.digest(now) != news.digest(told)) {
                reply.send(notification(news.method(), &json!({"_meta": meta}))).await;
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

/// The tasks of the caller among those that a filter names, with what becomes of them; `None` for one that has ended.
async fn watch(
    session: &Session,
    caller: &Caller,
    ids: &BTreeSet<String>,
    revision: Revision,
) -> Vec<(String, Watched)> {
    let tasks = session.host.tasks();
    let mut watched = Vec::new();
    for id in ids {
        if tasks.get(&caller.name, id, revision).await.is_some() {
            let changes = tasks.live(&caller.name, id).map(|live| live.watch());
            watched.push((id.clone(), changes));
        }
    }
    watched
}

/// What becomes of a task.
type Watched = Option<tokio::sync::watch::Receiver<Arc<Task>>>;

/// Tells of each task what it is whenever that changes, and of those that have ended once. Changes that happen while a slow
/// client reads are combined into one notification.
async fn tell_of_tasks(
    session: &Session,
    caller: &Caller,
    watched: Vec<(String, Watched)>,
    id: &Id,
    revision: Revision,
    reply: &Outbox,
) {
    let meta = &json!({SUBSCRIPTION_ID: id});
    let telling = watched.into_iter().map(|(task, mut changes)| async move {
        loop {
            let runs = match &mut changes {
                Some(changes) => changes.changed().await.is_ok(),
                None => false,
            };
            let now = match &mut changes {
                Some(changes) if runs => Some(Arc::clone(&changes.borrow_and_update())),
                _ => session.host.tasks().get(&caller.name, &task, revision).await,
            };
            let Some(now) = now else { return };
            let Ok(mut detailed) = now.detailed() else { return };
            detailed.summary.insert("_meta".into(), meta.clone());
            reply.send(Outgoing::notification(jsonrpc::notification("notifications/tasks", Some(&detailed)))).await;
            if now.state.is_final() {
                return;
            }
        }
    });
    futures_util::future::join_all(telling).await;
    std::future::pending::<()>().await;
}

/// The part of a filter that is honoured.
fn grant(session: &Session, caller: &Caller, subscriber: &Subscriber, filter: &Filter) -> Map<String, Value> {
    let lists = filter.news().into_iter().map(|news| (news.filter().to_owned(), true.into()));
    let uris = subscribe(session, caller, subscriber, filter);
    let resources = (!uris.is_empty()).then(|| ("resourceSubscriptions".to_owned(), uris.into()));
    lists.chain(resources).collect()
}

/// Subscribes to what the filter names, and returns what is honoured: resources that there are, that the caller may read,
/// and for which there is room.
fn subscribe(session: &Session, caller: &Caller, subscriber: &Subscriber, filter: &Filter) -> Vec<String> {
    let uris = filter.resource_subscriptions.0.iter().filter(|uri| caller.can_read(&*session.host, uri));
    let honoured = uris.filter(|uri| match subscriber.add(&caller.name, uri) {
        Ok(()) => true,
        Err(refused) => {
            tracing::debug!(caller = caller.name, uri = jsonrpc::shorten(uri), "subscription not honoured: {refused}");
            false
        }
    });
    honoured.cloned().collect()
}

/// Ends a subscription from the server's side.
async fn conclude(session: &Session, id: &Id, revision: Revision, reply: &Outbox) {
    if session.channel == Channel::Shared {
        // One page of the specification requires this notification and another one the result: send both.
        let cancelled = json!({"requestId": id, "reason": "the server is shutting down"});
        reply.send(notification("notifications/cancelled", &cancelled)).await;
    }
    let result = Map::from_iter([("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}))]);
    reply.send(session.result(id, result, Some(revision))).await;
}

fn notification(method: &str, params: &Value) -> Outgoing {
    Outgoing::notification(jsonrpc::notification(method, Some(params)))
}
