//! The common layout of all pages.

use maud::{DOCTYPE, Markup, html};

use super::elements::csrf_input;
use crate::assets::{NOTICES, SCRIPT, STYLE};
use crate::paths::PATH;
use crate::sessions::{ConsoleSession, OpenApprovals};

/// The pages in the navigation bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NavigationItem {
    Overview,
    Plugins,
    Tools,
    Calls,
    Denied,
    Approvals,
    Audit,
    Log,
    /// A page that is not in the navigation bar.
    Unlisted,
}

impl NavigationItem {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Overview, "", "Overview"),
        (Self::Plugins, "/plugins", "Plugins"),
        (Self::Tools, "/tools", "Tools"),
        (Self::Calls, "/calls", "Calls"),
        (Self::Denied, "/denials", "Denials"),
        (Self::Approvals, "/approvals", "Approvals"),
        (Self::Audit, "/audit", "Audit log"),
        (Self::Log, "/log", "Log"),
    ];
}

/// Renders a page for a viewer with a session.
pub(super) fn layout(
    session: &ConsoleSession,
    current: NavigationItem,
    title: &str,
    is_live: bool,
    body: &Markup,
) -> Markup {
    document(
        &title_with_count(title, session.open_approvals.count),
        &html! {
            a.skip href="#main" { "Skip to the content" }
            header.bar {
                a.brand href=(PATH) { (logo()) span { "Toolbay" } }
                nav aria-label="Console" {
                    ul {
                        @for (place, path, name) in NavigationItem::ALL {
                            li {
                                a href={ (PATH) (path) } aria-current=[(place == current).then_some("page")] {
                                    (name)
                                    @if place == NavigationItem::Approvals { (waiting_count(session)) }
                                }
                            }
                        }
                    }
                }
                form.who method="post" action={ (PATH) "/logout" } {
                    (csrf_input(session))
                    span title="Whose rights you have here" { (session.viewer.name) }
                    button.quiet type="submit" { "Log out" }
                }
            }
            main #main tabindex="-1" {
                div.heading {
                    h1 { (title) }
                    @if is_live {
                        label.live hidden { input type="checkbox" checked data-live-switch; " Live" }
                    }
                }
                div #away role="status" hidden { }
                (body)
                p.hint.zone { "Times are in UTC." }
            }
        },
    )
}

/// Renders the number of calls that wait for an answer, which a script updates.
fn waiting_count(session: &ConsoleSession) -> Markup {
    let OpenApprovals { count, newest } = session.open_approvals;
    let label = match count {
        1 => "1 call waits".to_owned(),
        count => format!("{count} calls wait"),
    };
    html! {
        " " span.waiting role="status" hidden[count == 0] aria-label=(label) data-waiting={ (PATH) "/waiting" } data-newest=(newest) {
            @if count > 0 { (count) }
        }
    }
}

/// Returns the title of a page, after the number of calls that wait for an answer.
fn title_with_count(title: &str, count: usize) -> String {
    match count {
        0 => title.to_owned(),
        count => format!("({count}) {title}"),
    }
}

/// Renders the HTML document around a page, also without a session.
pub(super) fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Toolbay" }
                link rel="stylesheet" href=(*STYLE.path);
                script src=(*SCRIPT.path) defer {}
                script src=(*NOTICES.path) defer {}
            }
            body { (body) }
        }
    }
}

/// Renders a page for a plugin or tool that does not exist.
pub(crate) fn not_found(session: &ConsoleSession, item_kind: &str) -> Markup {
    let current = if item_kind == "tool" {
        NavigationItem::Tools
    } else {
        NavigationItem::Plugins
    };
    let body = html! {
        p.empty { "There is no such " (item_kind) " now. It may have been removed, or its name may have changed." }
    };
    layout(
        session,
        current,
        &format!("No such {item_kind}"),
        false,
        &body,
    )
}

/// Renders a page for an address that is not one of the console.
pub(crate) fn unknown_page(session: &ConsoleSession) -> Markup {
    let body = html! {
        p.empty { "The console has no page at this address. The navigation leads to those that it has." }
    };
    layout(
        session,
        NavigationItem::Unlisted,
        "No such page",
        false,
        &body,
    )
}

/// Renders a page for a call that is not stored.
pub(crate) fn unknown_call(session: &ConsoleSession) -> Markup {
    let body = html! {
        p.empty { "There is no such call now. The console stores the newest 1,000 calls, and none of an earlier run." }
        p { a href={ (PATH) "/calls" } { "Back to the calls" } }
    };
    layout(session, NavigationItem::Calls, "No such call", false, &body)
}

/// Renders the logo: boxes in a bay.
pub(super) fn logo() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" {
            path d="M3 4v10a6 6 0 0 0 6 6h6a6 6 0 0 0 6-6V4" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" {}
            rect x="7" y="10" width="4.5" height="4.5" rx="1" fill="currentColor" {}
            rect x="12.8" y="10" width="4.5" height="4.5" rx="1" fill="currentColor" opacity=".55" {}
            rect x="9.8" y="4" width="4.5" height="4.5" rx="1" fill="currentColor" opacity=".8" {}
        }
    }
}
